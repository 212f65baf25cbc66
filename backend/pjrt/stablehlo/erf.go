package stablehlo

import "github.com/gesso-go/gesso/tensor"

// erf in primitives follows N. Juffa's erff: with t = |x|, below erfSplit it is t + t·p(t²), above it 1 - exp(-t + t·p(t)).
// Coefficients are those of the CPU kernel, highest power first.
var (
	erfNear = []float64{-0x1.38e000p-11, 0x1.471a58p-8, -0x1.b691b2p-6, 0x1.ce1c44p-4, -0x1.812700p-2, 0x1.06eba8p-3}
	erfFar  = []float64{-0x1.220000p-16, 0x1.91cfb2p-12, -0x1.fd1438p-9, 0x1.8d6342p-6, -0x1.b55cb8p-4, -0x1.450aa0p-1, -0x1.079d0cp-3}
)

const erfSplit = 0.927734375

// erf writes erf(x) of an f32 value, within 4 units in the last place where the device's exponential is good to one.
func (w *Writer) erf(x Value) Value {
	c := func(v float64) Value { return w.Broadcast(w.Scalar(tensor.F32, v), x.Shape) }
	polynomial := func(at Value, coefficients []float64) Value {
		v := c(coefficients[0])
		for _, k := range coefficients[1:] {
			v = w.same("stablehlo.add", w.same("stablehlo.multiply", v, at), c(k))
		}
		return v
	}
	// From 4 on, erf is 1 in f32; the minimum keeps NaN.
	t := w.same("stablehlo.minimum", w.same("stablehlo.abs", x), c(4))
	near := w.same("stablehlo.multiply", polynomial(w.same("stablehlo.multiply", t, t), erfNear), t)
	near = w.same("stablehlo.add", near, t)
	far := w.same("stablehlo.subtract", w.same("stablehlo.multiply", polynomial(t, erfFar), t), t)
	far = w.same("stablehlo.subtract", c(1), w.same("stablehlo.exponential", far))
	y := w.Select(w.Compare("LT", c(erfSplit), t), far, near)
	return w.same("stablehlo.multiply", y, w.same("stablehlo.sign", x)) // erf(-0) is -0
}
