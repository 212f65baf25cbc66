package step

import (
	"slices"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// fluxText is the length of the prompt in tokens: the default of the FLUX pipelines.
const fluxText = 512

// flux1 is FLUX.1-dev: double and single blocks, guidance embedded.
func flux1(o *Options, layers []int) (*network, error) {
	c := flux.Defaults()
	c.Layers, c.SingleLayers, c.GuidanceEmbed = layers[0], layers[1], true
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := flux.New(c)
	h, w := o.Height/16, o.Width/16 // tokens: patches of 2×2 latents of 8×8 pixels
	text := make([][]float64, o.text(fluxText))
	for i := range text {
		text[i] = []float64{0, 0, 0}
	}
	ids := grid(slices.Clone(text), h, w, 3, 1)
	cos, sin := c.Rope(ids)
	rows := make([]int32, o.Batch)
	for i := range rows {
		rows[i] = int32(i)
	}
	return &network{
		model: m, class: "FluxTransformer2DModel", config: c, tokens: len(ids),
		inputs: []*tensor.Array{
			wave(o.DType, o.Batch, h*w, c.InChannels), wave(o.DType, o.Batch, len(text), c.JointDim), wave(o.DType, o.Batch, c.PooledDim),
			wave(o.DType, o.Batch), wave(tensor.F32, o.Batch), cos, sin, tensor.FromInt32(rows, o.Batch),
		},
		forward: func(in []engine.Value) []engine.Value {
			return []engine.Value{m.Forward(flux.Inputs{
				Hidden: in[0], Text: in[1], Rope: nn.Rope{Cos: in[5], Sin: in[6]}, Rows: in[7],
				Modulation: m.Modulation(flux.Conditions{Pooled: in[2], Timestep: in[3], Guidance: in[4]}),
			})}
		},
	}, nil
}
