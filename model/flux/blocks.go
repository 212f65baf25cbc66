package flux

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
)

// qkEps is the epsilon of the norms of queries and keys.
const qkEps = 1e-6

// DoubleBlock is the two-stream block: picture and text keep their own weights and meet in attention.
// Source: Esser et al. 2024, section 4; Diffusers' FluxTransformerBlock.
type DoubleBlock struct {
	nn.Block
	Norm    nn.AdaLayerNorm   `weight:"norm1"`
	NormTxt nn.AdaLayerNorm   `weight:"norm1_context"`
	Attn    nn.JointAttention `weight:"attn"`
	FF      nn.FeedForward    `weight:"ff"`
	FFTxt   nn.FeedForward    `weight:"ff_context"`
	norm2   nn.LayerNorm
}

// The parts of a double block's modulation after shift and scale of attention, which AdaLayerNorm applies itself.
const (
	gateAttn = iota
	shiftMLP
	scaleMLP
	gateMLP
)

func newDoubleBlock(c *Config) *DoubleBlock {
	d := c.Width()
	return &DoubleBlock{
		Norm: nn.NewAdaLayerNorm(d, 6), NormTxt: nn.NewAdaLayerNorm(d, 6), Attn: nn.NewJointAttention(d, c.Heads, c.HeadDim, qkEps, true),
		FF: nn.NewFeedForward(d, 4*d), FFTxt: nn.NewFeedForward(d, 4*d), norm2: nn.NewLayerNorm(d, 1e-6, false),
	}
}

// Forward advances img (B, N, D) and txt (B, L, D) by one block; forImg and forTxt are the norms' modulation, of which
// rows (B) are used.
func (b *DoubleBlock) Forward(img, txt, forImg, forTxt, rows engine.Value, rope nn.Rope) (engine.Value, engine.Value) {
	out := b.Run(func(in []engine.Value) []engine.Value {
		img, txt, forImg, forTxt, rows, rope := in[0], in[1], in[2], in[3], in[4], nn.Rope{Cos: in[5], Sin: in[6]}
		xi, mi := b.Norm.Apply(img, forImg.Gather(rows))
		xt, mt := b.NormTxt.Apply(txt, forTxt.Gather(rows))
		ai, at := b.Attn.Forward(xi, xt, rope)

		img = img.Add(mi[gateAttn].Mul(ai))
		img = img.Add(mi[gateMLP].Mul(b.FF.Forward(b.TapChild("norm2", b.norm2.Forward(img)).Modulate(mi[scaleMLP], mi[shiftMLP]))))

		txt = txt.Add(mt[gateAttn].Mul(at))
		txt = txt.Add(mt[gateMLP].Mul(b.FFTxt.Forward(b.TapChild("norm2_context", b.norm2.Forward(txt)).Modulate(mt[scaleMLP], mt[shiftMLP]))))
		txt = nn.ClipF16(txt)
		b.TapAll(txt, img)
		return []engine.Value{img, txt}
	}, img, txt, forImg, forTxt, rows, rope.Cos, rope.Sin)
	return out[0], out[len(out)-1]
}

// SingleAttention is self-attention without an output projection.
type SingleAttention struct {
	nn.Module
	Q     nn.Linear  `weight:"to_q"`
	K     nn.Linear  `weight:"to_k"`
	V     nn.Linear  `weight:"to_v"`
	NormQ nn.RMSNorm `weight:"norm_q"`
	NormK nn.RMSNorm `weight:"norm_k"`
	heads int
}

// Forward keeps the shape of x (B, L+N, D).
func (a *SingleAttention) Forward(x engine.Value, rope nn.Rope) engine.Value {
	q := a.NormQ.Forward(nn.Heads(a.Q.Forward(x), a.heads))
	k := a.NormK.Forward(nn.Heads(a.K.Forward(x), a.heads))
	v := nn.Heads(a.V.Forward(x), a.heads)
	return a.Tap(rope.Attend(q, k, v))
}

// SingleBlock is the one-stream block over text and picture joined: attention and MLP side by side.
// Source: Diffusers' FluxSingleTransformerBlock.
type SingleBlock struct {
	nn.Block
	Norm    nn.AdaLayerNorm `weight:"norm"`
	ProjMLP nn.Linear       `weight:"proj_mlp"`
	Attn    SingleAttention `weight:"attn"`
	ProjOut nn.Linear       `weight:"proj_out"`
}

func newSingleBlock(c *Config) *SingleBlock {
	d := c.Width()
	return &SingleBlock{
		Norm: nn.NewAdaLayerNorm(d, 3), ProjMLP: nn.NewLinear(d, 4*d, true),
		Attn: SingleAttention{
			Q: nn.NewLinear(d, d, true), K: nn.NewLinear(d, d, true), V: nn.NewLinear(d, d, true),
			NormQ: nn.NewRMSNorm(c.HeadDim, qkEps, false), NormK: nn.NewRMSNorm(c.HeadDim, qkEps, false), heads: c.Heads,
		},
		ProjOut: nn.NewLinear(5*d, d, true),
	}
}

// Forward advances x (B, L+N, D), the text's L rows first, by one block; modulation is the norm's, of which rows (B) are
// used.
func (b *SingleBlock) Forward(x, modulation, rows engine.Value, rope nn.Rope, textRows int) engine.Value {
	return b.Run(func(in []engine.Value) []engine.Value {
		x, modulation, rows, rope := in[0], in[1], in[2], nn.Rope{Cos: in[3], Sin: in[4]}
		n, mod := b.Norm.Apply(x, modulation.Gather(rows))
		gate := mod[0]
		mlp := b.TapChild("act_mlp", b.ProjMLP.Act(n, graph.ActGeluTanh))
		attn := b.Attn.Forward(n, rope)
		x = x.Add(gate.Mul(b.ProjOut.Forward(engine.Concat(2, attn, mlp))))
		x = nn.ClipF16(x)
		b.tapSplit(x, textRows)
		return []engine.Value{x}
	}, x, modulation, rows, rope.Cos, rope.Sin)[0]
}

// tapSplit reports text and picture apart, as Diffusers' block returns them.
func (b *SingleBlock) tapSplit(x engine.Value, textRows int) {
	if e := x.Engine(); e != nil && e.Tapping() {
		b.TapAll(x.Split(1, textRows, x.Dim(1)-textRows)...)
	}
}
