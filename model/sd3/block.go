package sd3

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// Block is the joint block: picture and text keep their own weights and meet in attention. Blocks of SD3.5-medium's
// first half have a second attention over the picture alone; the last block of every model only reads the text.
// Source: Esser et al. 2024, section 4; Diffusers' JointTransformerBlock.
type Block struct {
	nn.Block
	Norm        nn.AdaLayerNorm            `weight:"norm1"`
	NormTxt     *nn.AdaLayerNorm           `weight:"norm1_context"` // nil in the last block
	NormTxtLast *nn.AdaLayerNormContinuous `weight:"norm1_context"` // nil in all others
	Attn        JointAttention             `weight:"attn"`
	Attn2       *SelfAttention             `weight:"attn2"` // nil without
	FF          nn.FeedForward             `weight:"ff"`
	FFTxt       *nn.FeedForward            `weight:"ff_context"` // nil in the last block
	norm2       nn.LayerNorm
}

// The parts of a block's modulation after shift and scale of attention, which AdaLayerNorm applies itself.
const (
	gateAttn = iota
	shiftMLP
	scaleMLP
	gateMLP
	_ // shift and scale of the second attention
	_
	gateAttn2
)

func newBlock(c *Config, layer int) *Block {
	d, last := c.Width(), layer == c.Layers-1
	b := &Block{
		Norm: nn.NewAdaLayerNorm(d, 6), Attn: newJointAttention(c, last), FF: nn.NewFeedForward(d, 4*d),
		norm2: nn.NewLayerNorm(d, 1e-6, false),
	}
	if c.dual(layer) {
		b.Norm, b.Attn2 = nn.NewAdaLayerNorm(d, 9), newSelfAttention(c)
	}
	if last {
		n := nn.NewAdaLayerNormContinuous(d, d)
		b.NormTxtLast = &n
		return b
	}
	n, ff := nn.NewAdaLayerNorm(d, 6), nn.NewFeedForward(d, 4*d)
	b.NormTxt, b.FFTxt = &n, &ff
	return b
}

// ahead returns the modulation of the picture's and the text's norm, (R, parts·D), for SiLU(temb) (R, D).
func (b *Block) ahead(silu engine.Value) []engine.Value {
	if b.NormTxt == nil {
		return []engine.Value{b.Norm.Ahead(silu), b.NormTxtLast.Ahead(silu)}
	}
	return []engine.Value{b.Norm.Ahead(silu), b.NormTxt.Ahead(silu)}
}

// Forward advances img (B, N, D) and txt (B, L, D) by one block; forImg and forTxt are the norms' modulation, of which
// rows (B) are used. The last block returns txt as it is.
func (b *Block) Forward(img, txt, forImg, forTxt, rows engine.Value) (engine.Value, engine.Value) {
	out := b.Run(func(in []engine.Value) []engine.Value {
		img, txt, forImg, forTxt := in[0], in[1], in[2].Gather(in[4]), in[3].Gather(in[4])
		var xi, xi2 engine.Value
		var mi []engine.Value
		if b.Attn2 != nil {
			xi, xi2, mi = b.Norm.ApplyDual(img, forImg)
		} else {
			xi, mi = b.Norm.Apply(img, forImg)
		}
		var xt engine.Value
		var mt []engine.Value
		if b.NormTxt != nil {
			xt, mt = b.NormTxt.Apply(txt, forTxt)
		} else {
			xt = b.NormTxtLast.Apply(txt, forTxt)
		}
		ai, at := b.Attn.Forward(xi, xt)

		img = img.Add(mi[gateAttn].Mul(ai))
		if b.Attn2 != nil {
			img = img.Add(mi[gateAttn2].Mul(b.Attn2.Forward(xi2)))
		}
		img = img.Add(mi[gateMLP].Mul(b.FF.Forward(b.TapChild("norm2", b.norm2.Forward(img)).Modulate(mi[scaleMLP], mi[shiftMLP]))))
		if b.FFTxt == nil {
			b.TapChild("out1", img)
			return []engine.Value{img}
		}

		txt = txt.Add(mt[gateAttn].Mul(at))
		txt = txt.Add(mt[gateMLP].Mul(b.FFTxt.Forward(b.TapChild("norm2_context", b.norm2.Forward(txt)).Modulate(mt[scaleMLP], mt[shiftMLP]))))
		b.TapAll(txt, img)
		return []engine.Value{img, txt}
	}, img, txt, forImg, forTxt, rows)
	if len(out) < 2 {
		return out[0], txt
	}
	return out[0], out[1]
}
