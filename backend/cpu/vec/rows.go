package vec

import (
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// Sum returns Σx, 0 for an empty row.
func (f *Funcs) Sum(x []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return f.k.sum(&x[0], len(x))
}

// MaxOf returns the largest element, NaN if any is NaN, -Inf for an empty row.
func (f *Funcs) MaxOf(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	return f.k.rowMax(&x[0], len(x))
}

// Dot returns Σx·y over len(x) elements, each product fused into its sum.
func (f *Funcs) Dot(x, y []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return f.k.dot(&x[0], &y[:len(x)][0], len(x))
}

// SumSquares returns Σx².
func (f *Funcs) SumSquares(x []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return f.k.sumSquares(&x[0], len(x))
}

// SumSquaresFrom returns Σ(x-c)².
func (f *Funcs) SumSquaresFrom(x []float32, c float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return f.k.sumSquaresFrom(&x[0], c, len(x))
}

// LayerNorm sets dst to (x-mean)/√(variance+eps)·weight+bias over one row of D elements, unrounded; the variance is the
// mean squared deviation, taken in a second pass. Weight (D) may be nil, bias (D) too.
func (f *Funcs) LayerNorm(dst, x, weight, bias []float32, eps float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	mean := f.k.sum(&x[0], n) / float32(n)
	variance := float64(f.k.sumSquaresFrom(&x[0], mean, n)) / float64(n)
	rstd := float32(1 / math.Sqrt(variance+float64(eps)))
	switch {
	case weight == nil && bias == nil:
		f.k.normalize(&dst[0], &x[0], mean, rstd, n)
	case bias == nil:
		f.k.normalizeWeight(&dst[0], &x[0], &weight[:n][0], mean, rstd, n)
	case weight == nil:
		f.k.normalize(&dst[0], &x[0], mean, rstd, n)
		f.k.add(&dst[0], &dst[0], &bias[:n][0], n)
	default:
		f.k.normalizeAffine(&dst[0], &x[0], &weight[:n][0], &bias[:n][0], mean, rstd, n)
	}
}

// RMSNorm sets dst to x/√(mean x²+eps)·weight over one row of D elements. Weight (D) may be nil.
//
// Mid is the type to which the normalised value is rounded before the weight multiplies it: F32 for torch.nn.RMSNorm,
// which rounds only its result; BF16 or F16 for the RMSNorm of Diffusers, T5, Mistral and Qwen. The result itself is
// left to the caller to round.
func (f *Funcs) RMSNorm(dst, x, weight []float32, eps float32, mid tensor.DType) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	mean := float64(f.k.sumSquares(&x[0], n)) / float64(n)
	rstd := float32(1 / math.Sqrt(mean+float64(eps)))
	if weight == nil {
		f.k.mulScalar(&dst[0], &x[0], rstd, n)
		return
	}
	k := f.k.scaleWeight
	switch mid {
	case tensor.BF16:
		k = f.k.scaleWeightBF16
	case tensor.F16:
		k = f.k.scaleWeightF16
	}
	k(&dst[0], &x[0], &weight[:n][0], rstd, n)
}

// Softmax sets dst to exp(x-max x)/Σexp(x-max x) over one row, unrounded. A row of -Inf gives NaN, as does a NaN or +Inf
// anywhere in the row.
func (f *Funcs) Softmax(dst, x []float32) {
	n := len(dst)
	if n == 0 {
		return
	}
	x = x[:n]
	s := f.k.expSum(&dst[0], &x[0], f.k.rowMax(&x[0], n), n)
	f.k.divScalar(&dst[0], &dst[0], s, n)
}

// Modulate sets dst to x·(1+scale)+shift, with 1+scale and the product rounded to mid (F32, BF16 or F16). The result
// itself is left to the caller to round.
func (f *Funcs) Modulate(dst, x, scale, shift []float32, mid tensor.DType) {
	n := len(dst)
	if n == 0 {
		return
	}
	k := f.k.modulate
	switch mid {
	case tensor.BF16:
		k = f.k.modulateBF16
	case tensor.F16:
		k = f.k.modulateF16
	}
	k(&dst[0], &x[:n][0], &scale[:n][0], &shift[:n][0], n)
}

// Rope rotates the interleaved pairs (x0, x1), (x2, x3) … of one row of D elements, D even: x·cos + rot(x)·sin with
// rot(x) = (-x1, x0, -x3, x2 …). Cos and sin have D elements, usually equal in each pair. Products and sum are rounded
// to float32 separately, as PyTorch does.
func (f *Funcs) Rope(dst, x, cos, sin []float32) {
	if n := len(dst) &^ 1; n > 0 {
		f.k.rope(&dst[0], &x[:n][0], &cos[:n][0], &sin[:n][0], n)
	}
}

// RopeHalf rotates the pairs (x0, x[D/2]), (x1, x[D/2+1]) … : rot(x) = (-x[D/2:], x[:D/2]).
func (f *Funcs) RopeHalf(dst, x, cos, sin []float32) {
	n := len(dst) / 2
	if n == 0 {
		return
	}
	x, cos, sin = x[:2*n], cos[:2*n], sin[:2*n]
	f.k.ropeHalf(&dst[0], &dst[n], &x[0], &x[n], &cos[0], &sin[0], &cos[n], &sin[n], n)
}
