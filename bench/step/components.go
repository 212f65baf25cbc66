package step

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/clip"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/model/vae"
	"github.com/gesso-go/gesso/tensor"
)

// Lengths of a prompt in tokens.
const (
	clipText = 77
	t5Text   = 256
)

// tokens returns ids (B, n) below vocab.
func tokens(batch, n, vocab int) *tensor.Array {
	ids := make([]int64, batch*n)
	for i := range ids {
		ids[i] = int64(i*7919+1) % int64(vocab)
	}
	return tensor.FromInt64(ids, batch, n)
}

// clipL is CLIP ViT-L/14's text encoder.
func clipL(o *Options, layers []int) (*network, error) {
	c := clip.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Heads, c.MaxPositions = 49408, 768, 3072, layers[0], 12, clipText
	c.HiddenAct = "quick_gelu"
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := clip.New(c)
	return &network{
		model: m, tokens: clipText,
		inputs:  []*tensor.Array{tokens(o.Batch, clipText, c.VocabSize)},
		forward: func(in []engine.Value) []engine.Value { return []engine.Value{m.Forward(in[0])} },
	}, nil
}

// t5XXL is the encoder of T5 v1.1 XXL.
func t5XXL(o *Options, layers []int) (*network, error) {
	c := t5.Defaults()
	c.VocabSize, c.DModel, c.DKV, c.DFF, c.Layers, c.Heads = 32128, 4096, 64, 10240, layers[0], 64
	c.FeedForwardProj = "gated-gelu"
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := t5.New(c)
	n := o.text(t5Text)
	return &network{
		model: m, tokens: n,
		inputs:  []*tensor.Array{tokens(o.Batch, n, c.VocabSize), c.BucketTable(n)},
		forward: func(in []engine.Value) []engine.Value { return []engine.Value{m.Forward(in[0], in[1])} },
	}, nil
}

// decoder is the half of an autoencoder that makes pictures.
type decoder struct {
	Decoder *vae.Decoder `weight:"decoder"`
}

// vaeDecoder decodes with the autoencoder of FLUX.1 and SD3.
func vaeDecoder(o *Options, _ []int) (*network, error) {
	c := vae.Defaults()
	c.LatentChannels, c.BlockOut, c.LayersPerBlock = 16, []int{128, 256, 512, 512}, 2
	c.SampleSize, c.UseQuantConv, c.UsePostQuant = 1024, false, false
	if err := c.Validate(); err != nil {
		return nil, err
	}
	m := vae.New(c)
	h, w := o.Height/8, o.Width/8
	return &network{
		model: &decoder{&m.Decoder}, tokens: h * w,
		inputs:  []*tensor.Array{wave(o.DType, o.Batch, c.LatentChannels, h, w)},
		forward: func(in []engine.Value) []engine.Value { return []engine.Value{m.Decode(in[0])} },
	}, nil
}
