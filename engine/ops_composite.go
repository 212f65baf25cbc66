package engine

import "github.com/gesso-go/gesso/graph"

// Linear returns x·wᵀ + b and then the activation: x (…, K), w (N, K), b (N) or the zero Value for none.
func Linear(x, w, b Value, act graph.Activation) Value {
	if b.Valid() {
		return Record(graph.Linear, graph.LinearAttr{Bias: true, Act: act}, x, w, b)
	}
	return Record(graph.Linear, graph.LinearAttr{Act: act}, x, w)
}

// QuantizedLinear is Linear in 8 bits: w (N, K) is i8, with a scale (N) in f32; see graph.QuantizedLinearAttr.
func QuantizedLinear(x, w, scale, b Value, act graph.Activation) Value {
	if b.Valid() {
		return Record(graph.QuantizedLinear, graph.QuantizedLinearAttr{Bias: true, Act: act}, x, w, scale, b)
	}
	return Record(graph.QuantizedLinear, graph.QuantizedLinearAttr{Act: act}, x, w, scale)
}

// RMSNorm normalises the last axis by its root mean square. The weight (D) may be the zero Value. See
// graph.RMSNormAttr for roundFirst.
func RMSNorm(x, weight Value, eps float64, roundFirst bool) Value {
	a := graph.RMSNormAttr{Eps: eps, RoundFirst: roundFirst}
	if weight.Valid() {
		a.Weight = true
		return Record(graph.RMSNorm, a, x, weight)
	}
	return Record(graph.RMSNorm, a, x)
}

// LayerNorm normalises the last axis. Weight and bias (D) are both given or both the zero Value.
func LayerNorm(x, weight, bias Value, eps float64) Value {
	a := graph.LayerNormAttr{Eps: eps}
	if weight.Valid() {
		a.Affine = true
		return Record(graph.LayerNorm, a, x, weight, bias)
	}
	return Record(graph.LayerNorm, a, x)
}

// GroupNorm normalises groups of neighbouring channels of x (B, …, C) over all positions, and with silu applies it.
func GroupNorm(x, weight, bias Value, groups int, eps float64, silu bool) Value {
	return Record(graph.GroupNorm, graph.GroupNormAttr{Groups: groups, Eps: eps, Silu: silu}, x, weight, bias)
}

// AttentionOptions are the optional operands of Attention.
type AttentionOptions struct {
	Scale  float64 // of the logits; it must be set
	Causal bool
	Bias   Value // added to the logits: (1 or B, 1 or H, N, M)
	Mask   Value // bool, true where a key may be seen: (1 or B, 1 or H, 1 or N, M)
}

// Attention returns softmax(scale·q·kᵀ + bias)·v for q (B, N, H, D), k and v (B, M, G, D); see graph.AttentionAttr.
func Attention(q, k, v Value, o AttentionOptions) Value {
	in := []Value{q, k, v}
	a := graph.AttentionAttr{Scale: o.Scale, Causal: o.Causal}
	if o.Bias.Valid() {
		a.Bias = true
		in = append(in, o.Bias)
	}
	if o.Mask.Valid() {
		a.Mask = true
		in = append(in, o.Mask)
	}
	return Record(graph.Attention, a, in...)
}

// Rope rotates pairs of x (B, N, H, D) by the angles whose cosine and sine are cos and sin (N, D), in f32.
func Rope(x, cos, sin Value, halfSplit bool) Value {
	return Record(graph.Rope, graph.RopeAttr{HalfSplit: halfSplit}, x, cos, sin)
}

// Modulate returns x·(1+scale) + shift, with a rounding after each operation.
func (v Value) Modulate(scale, shift Value) Value {
	return Record(graph.Modulate, nil, v, scale, shift)
}

// Conv2D convolves x (B, H, W, C) with w (O, C, KH, KW) and adds b (O) if it is valid. Low and high are the zero padding
// before and after height and width.
func Conv2D(x, w, b Value, stride int, low, high [2]int) Value {
	a := graph.ConvolutionAttr{Stride: [2]int{stride, stride}, Low: low, High: high}
	if b.Valid() {
		a.Bias = true
		return Record(graph.Convolution, a, x, w, b)
	}
	return Record(graph.Convolution, a, x, w)
}

// UpsampleConv repeats each pixel of x (B, H, W, C) twice along height and width, convolves that with w (O, C, 3, 3), one
// zero all around, and adds b (O) if it is valid.
func UpsampleConv(x, w, b Value) Value {
	if b.Valid() {
		return Record(graph.UpsampleConv, graph.UpsampleConvAttr{Bias: true}, x, w, b)
	}
	return Record(graph.UpsampleConv, graph.UpsampleConvAttr{}, x, w)
}

// UpsampleNearest repeats each pixel of v (B, H, W, C) factor times along height and width.
func (v Value) UpsampleNearest(factor int) Value {
	return Record(graph.UpsampleNearest, graph.UpsampleAttr{Factor: factor}, v)
}
