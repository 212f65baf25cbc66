package flux2

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// DoubleBlock is the two-stream block: picture and text keep their own weights and meet in attention.
// Source: Diffusers' Flux2TransformerBlock.
type DoubleBlock struct {
	nn.Block
	Attn  nn.JointAttention `weight:"attn"`
	FF    FeedForward       `weight:"ff"`
	FFTxt FeedForward       `weight:"ff_context"`
	norm  nn.LayerNorm
}

func newDoubleBlock(c *Config) *DoubleBlock {
	return &DoubleBlock{
		Attn: nn.NewJointAttention(c.Width(), c.Heads, c.HeadDim, c.Eps, false), FF: newFeedForward(c), FFTxt: newFeedForward(c), norm: nn.NewLayerNorm(c.Width(), c.Eps, false),
	}
}

// Forward advances img (B, N, D) and txt (B, L, D) by one block; the modulations are (B, 1, 6·D).
func (b *DoubleBlock) Forward(img, txt, modImg, modTxt engine.Value, rope nn.Rope) (engine.Value, engine.Value) {
	out := b.Run(func(in []engine.Value) []engine.Value {
		img, txt, rope := in[0], in[1], nn.Rope{Cos: in[4], Sin: in[5]}
		mi, mt := sets(in[2], 2), sets(in[3], 2)
		norm := func(name string, x engine.Value, m set) engine.Value {
			return b.TapChild(name, b.norm.Forward(x)).Modulate(m.scale, m.shift)
		}
		ai, at := b.Attn.Forward(norm("norm1", img, mi[0]), norm("norm1_context", txt, mt[0]), rope)

		img = img.Add(mi[0].gate.Mul(ai))
		img = img.Add(mi[1].gate.Mul(b.FF.Forward(norm("norm2", img, mi[1]))))

		txt = txt.Add(mt[0].gate.Mul(at))
		txt = txt.Add(mt[1].gate.Mul(b.FFTxt.Forward(norm("norm2_context", txt, mt[1]))))
		txt = nn.ClipF16(txt)
		b.TapAll(txt, img)
		return []engine.Value{img, txt}
	}, img, txt, modImg, modTxt, rope.Cos, rope.Sin)
	return out[0], out[len(out)-1]
}

// ParallelAttention is self-attention and MLP side by side, between one projection in and one out.
// Source: Diffusers' Flux2ParallelSelfAttention, after Dehghani et al. 2023 (ViT-22B).
type ParallelAttention struct {
	nn.Module
	In    nn.Linear  `weight:"to_qkv_mlp_proj"` // rows: query, key, value, gate, up
	Out   nn.Linear  `weight:"to_out"`
	NormQ nn.RMSNorm `weight:"norm_q"`
	NormK nn.RMSNorm `weight:"norm_k"`
	heads int
	mlp   int
}

// Forward keeps the shape of x (B, L+N, D).
func (a *ParallelAttention) Forward(x engine.Value, rope nn.Rope) engine.Value {
	d := x.Dim(2)
	p := a.In.Forward(x).Split(2, d, d, d, 2*a.mlp)
	q, k, v := a.NormQ.Forward(nn.Heads(p[0], a.heads)), a.NormK.Forward(nn.Heads(p[1], a.heads)), nn.Heads(p[2], a.heads)
	return a.Tap(a.Out.Forward(engine.Concat(2, rope.Attend(q, k, v), swiGLU(p[3]))))
}

// SingleBlock is the one-stream block over text and picture joined.
// Source: Diffusers' Flux2SingleTransformerBlock.
type SingleBlock struct {
	nn.Block
	Attn ParallelAttention `weight:"attn"`
	norm nn.LayerNorm
}

func newSingleBlock(c *Config) *SingleBlock {
	d, h := c.Width(), c.Hidden()
	return &SingleBlock{
		Attn: ParallelAttention{
			In: linear(d, 3*d+2*h), Out: linear(d+h, d),
			NormQ: nn.NewRMSNorm(c.HeadDim, c.Eps, false), NormK: nn.NewRMSNorm(c.HeadDim, c.Eps, false), heads: c.Heads, mlp: h,
		},
		norm: nn.NewLayerNorm(d, c.Eps, false),
	}
}

// Forward advances x (B, L+N, D), the text's L rows first, by one block; mod is (B, 1, 3·D).
func (b *SingleBlock) Forward(x, mod engine.Value, rope nn.Rope) engine.Value {
	return b.Run(func(in []engine.Value) []engine.Value {
		x, m, rope := in[0], sets(in[1], 1)[0], nn.Rope{Cos: in[2], Sin: in[3]}
		n := b.TapChild("norm", b.norm.Forward(x)).Modulate(m.scale, m.shift)
		x = nn.ClipF16(x.Add(m.gate.Mul(b.Attn.Forward(n, rope))))
		return []engine.Value{b.Tap(x)}
	}, x, mod, rope.Cos, rope.Sin)[0]
}
