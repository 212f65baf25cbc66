package nn

import (
	"math"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// Attend is attention with scale 1/√D over heads: q (B, N, H, D), k and v (B, M, H, D), to (B, N, H·D).
func Attend(q, k, v engine.Value) engine.Value {
	return Merge(engine.Attention(q, k, v, engine.AttentionOptions{Scale: 1 / math.Sqrt(float64(q.Dim(3)))}))
}

// Attend rotates queries and keys and attends: (B, N, H, D) each, to (B, N, H·D).
func (r Rope) Attend(q, k, v engine.Value) engine.Value {
	return Attend(engine.Rope(q, r.Cos, r.Sin, false), engine.Rope(k, r.Cos, r.Sin, false), v)
}

// ClipF16 keeps an f16 value finite, and every other one as it is.
func ClipF16(x engine.Value) engine.Value {
	if x.DType() != tensor.F16 {
		return x
	}
	return x.Clamp(-65504, 65504)
}

// JointAttention is attention over text and picture together, each with its own projections: the attention of the
// double blocks of FLUX.1 and FLUX.2.
type JointAttention struct {
	Module
	Q        Linear  `weight:"to_q"`
	K        Linear  `weight:"to_k"`
	V        Linear  `weight:"to_v"`
	Out      Linear  `weight:"to_out.0"`
	TxtQ     Linear  `weight:"add_q_proj"`
	TxtK     Linear  `weight:"add_k_proj"`
	TxtV     Linear  `weight:"add_v_proj"`
	TxtOut   Linear  `weight:"to_add_out"`
	NormQ    RMSNorm `weight:"norm_q"`
	NormK    RMSNorm `weight:"norm_k"`
	TxtNormQ RMSNorm `weight:"norm_added_q"`
	TxtNormK RMSNorm `weight:"norm_added_k"`
	heads    int
}

// NewJointAttention returns an unbound layer of the given width; eps belongs to the norms of queries and keys.
func NewJointAttention(width, heads, headDim int, eps float64, bias bool) JointAttention {
	lin := func() Linear { return NewLinear(width, width, bias) }
	norm := func() RMSNorm { return NewRMSNorm(headDim, eps, false) }
	return JointAttention{
		Q: lin(), K: lin(), V: lin(), Out: lin(), TxtQ: lin(), TxtK: lin(), TxtV: lin(), TxtOut: lin(),
		NormQ: norm(), NormK: norm(), TxtNormQ: norm(), TxtNormK: norm(), heads: heads,
	}
}

// Forward takes img (B, N, D) and txt (B, L, D) to values of the same shapes. The rows of rope are the text's, then the
// picture's.
func (a *JointAttention) Forward(img, txt engine.Value, rope Rope) (engine.Value, engine.Value) {
	heads := func(l *Linear, x engine.Value) engine.Value { return Heads(l.Forward(x), a.heads) }
	q := engine.Concat(1, a.TxtNormQ.Forward(heads(&a.TxtQ, txt)), a.NormQ.Forward(heads(&a.Q, img))) // (B, L+N, H, D/H)
	k := engine.Concat(1, a.TxtNormK.Forward(heads(&a.TxtK, txt)), a.NormK.Forward(heads(&a.K, img)))
	v := engine.Concat(1, heads(&a.TxtV, txt), heads(&a.V, img))
	o := rope.Attend(q, k, v).Split(1, txt.Dim(1), img.Dim(1))
	outImg, outTxt := a.Out.Forward(o[1]), a.TxtOut.Forward(o[0])
	a.TapAll(outImg, outTxt)
	return outImg, outTxt
}
