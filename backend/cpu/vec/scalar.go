package vec

import "math"

// The functions that no diffusion model spends time on: they go through float64 on every level, and are correctly
// rounded but for rare last-bit cases.

// Log sets dst to the natural logarithm of x.
func (f *Funcs) Log(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float32(math.Log(float64(v)))
	}
}

// Sin sets dst to sin(x), x in radians of any size.
func (f *Funcs) Sin(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float32(math.Sin(float64(v)))
	}
}

// Cos sets dst to cos(x), x in radians of any size.
func (f *Funcs) Cos(dst, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float32(math.Cos(float64(v)))
	}
}

// Pow sets dst to x^y, with C's special cases.
func (f *Funcs) Pow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i, v := range x {
		dst[i] = float32(math.Pow(float64(v), float64(y[i])))
	}
}

// PowScalar sets dst to x^s.
func (f *Funcs) PowScalar(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float32(math.Pow(float64(v), float64(s)))
	}
}

// ScalarPow sets dst to s^x.
func (f *Funcs) ScalarPow(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float32(math.Pow(float64(s), float64(v)))
	}
}
