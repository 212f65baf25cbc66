package step

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/sd3"
	"github.com/gesso-go/gesso/tensor"
)

// sd3Text is the length of the prompt in tokens: CLIP's 77 and T5's 256, the pipeline's default.
const sd3Text = 77 + 256

// sd35Medium is SD3.5-medium: 13 of its 24 blocks attend twice.
func sd35Medium(o *Options, layers []int) (*network, error) {
	c := sd3.Defaults()
	c.Heads, c.CaptionDim, c.PosEmbedMax = 24, 1536, 384
	for i := range 13 {
		c.DualLayers = append(c.DualLayers, i)
	}
	return sd3Network(o, layers, c)
}

// sd35Large is SD3.5-large.
func sd35Large(o *Options, layers []int) (*network, error) {
	c := sd3.Defaults()
	c.Heads, c.CaptionDim, c.PosEmbedMax = 38, 2432, 192
	return sd3Network(o, layers, c)
}

func sd3Network(o *Options, layers []int, c sd3.Config) (*network, error) {
	norm := "rms_norm"
	c.Layers, c.QKNorm = layers[0], &norm
	if err := c.Validate(); err != nil {
		return nil, err
	}
	h, w := o.Height/16*2, o.Width/16*2 // latents of 8×8 pixels, in patches of 2×2
	if err := c.CheckSize(h, w); err != nil {
		return nil, err
	}
	m := sd3.New(c)
	rows := make([]int32, o.Batch)
	for i := range rows {
		rows[i] = int32(i)
	}
	return &network{
		model: m, class: "SD3Transformer2DModel", config: c, tokens: o.text(sd3Text) + h*w/4,
		inputs: []*tensor.Array{
			wave(o.DType, o.Batch, c.InChannels, h, w), wave(o.DType, o.Batch, o.text(sd3Text), c.JointDim), wave(o.DType, o.Batch, c.PooledDim),
			wave(tensor.F32, o.Batch), tensor.FromInt32(rows, o.Batch),
		},
		forward: func(in []engine.Value) []engine.Value {
			return []engine.Value{m.Forward(sd3.Inputs{
				Hidden: in[0], Text: in[1], Rows: in[4],
				Modulation: m.Modulation(sd3.Conditions{Pooled: in[2], Timestep: in[3]}),
			})}
		},
	}, nil
}
