package step

import (
	"slices"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/flux2"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// flux2Dev is FLUX.2-dev.
func flux2Dev(o *Options, layers []int) (*network, error) {
	return flux2Network(o, layers, flux2.Defaults())
}

// klein is a FLUX.2 klein: fewer and narrower blocks, no guidance embedded.
func klein(heads, jointDim int) func(o *Options, layers []int) (*network, error) {
	return func(o *Options, layers []int) (*network, error) {
		c := flux2.Defaults()
		c.Heads, c.JointDim, c.GuidanceEmbed = heads, jointDim, false
		return flux2Network(o, layers, c)
	}
}

func flux2Network(o *Options, layers []int, c flux2.Config) (*network, error) {
	c.Layers, c.SingleLayers = layers[0], layers[1]
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := flux2.New(c)
	h, w := o.Height/16, o.Width/16
	text := make([][]float64, o.text(fluxText))
	for i := range text {
		text[i] = []float64{0, 0, 0, float64(i)}
	}
	ids := grid(slices.Clone(text), h, w, 4, 1)
	cos, sin := c.Rope(ids)
	return &network{
		model: m, class: "Flux2Transformer2DModel", config: c, tokens: len(ids),
		inputs: []*tensor.Array{
			wave(o.DType, o.Batch, h*w, c.InChannels), wave(o.DType, o.Batch, len(text), c.JointDim),
			wave(o.DType, o.Batch), wave(tensor.F32, o.Batch), cos, sin,
		},
		forward: func(in []engine.Value) []engine.Value {
			return []engine.Value{m.Forward(flux2.Inputs{
				Hidden: in[0], Text: in[1], Timestep: in[2], Guidance: in[3], Rope: nn.Rope{Cos: in[4], Sin: in[5]},
			})}
		},
	}, nil
}
