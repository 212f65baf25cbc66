package vec

// The elementwise functions: dst[i] from element i of each source. Bounds of the error hold for all arguments, subnormal
// ones included; they are the largest errors of all 2³² float32 numbers, measured against float64, rounded up. The tests
// measure them on a sample, with GESSO_EXHAUSTIVE=1 on all, where every level must have the same bits.

// Neg sets dst to -x.
func (f *Funcs) Neg(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.neg(&dst[0], &x[:n][0], n)
	}
}

// Abs sets dst to |x|.
func (f *Funcs) Abs(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.abs(&dst[0], &x[:n][0], n)
	}
}

// Exp sets dst to exp(x) within 1.02 ulp.
func (f *Funcs) Exp(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.exp(&dst[0], &x[:n][0], n)
	}
}

// Sqrt sets dst to √x, correctly rounded.
func (f *Funcs) Sqrt(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.sqrt(&dst[0], &x[:n][0], n)
	}
}

// Rsqrt sets dst to 1/√x, two correctly rounded steps: within 1.5 ulp.
func (f *Funcs) Rsqrt(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.rsqrt(&dst[0], &x[:n][0], n)
	}
}

// Tanh sets dst to tanh(x) within 3 ulp.
func (f *Funcs) Tanh(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.tanh(&dst[0], &x[:n][0], n)
	}
}

// Erf sets dst to erf(x) within 2 ulp.
func (f *Funcs) Erf(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.erf(&dst[0], &x[:n][0], n)
	}
}

// Sigmoid sets dst to 1/(1+exp(-x)) within 2.9 ulp.
func (f *Funcs) Sigmoid(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.sigmoid(&dst[0], &x[:n][0], n)
	}
}

// Silu sets dst to x/(1+exp(-x)) within 2.5 ulp of the result, or 1e-36.
func (f *Funcs) Silu(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.silu(&dst[0], &x[:n][0], n)
	}
}

// Gelu sets dst to x/2·(1+erf(x/√2)), PyTorch's exact gelu, within 2⁻²³·max(1, |x|); like PyTorch's, the result has no relative
// precision for x below -3.
func (f *Funcs) Gelu(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.gelu(&dst[0], &x[:n][0], n)
	}
}

// GeluTanh sets dst to x/2·(1+tanh(√(2/π)(x+0.044715x³))), within 13.1 ulp of the result for x from -3 on, and 2⁻²³ below:
// like PyTorch's, it loses digits where the tanh is near -1.
func (f *Funcs) GeluTanh(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.geluTanh(&dst[0], &x[:n][0], n)
	}
}

// QuickGelu sets dst to x/(1+exp(-1.702x)), within 1e-36 or a relative error of 2⁻²²+2⁻²³·|x|.
func (f *Funcs) QuickGelu(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.quickGelu(&dst[0], &x[:n][0], n)
	}
}

// Floor sets dst to the largest integer not above x.
func (f *Funcs) Floor(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.floor(&dst[0], &x[:n][0], n)
	}
}

// Ceil sets dst to the smallest integer not below x.
func (f *Funcs) Ceil(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.ceil(&dst[0], &x[:n][0], n)
	}
}

// RoundBF16 sets dst to x rounded to bfloat16, to nearest even.
func (f *Funcs) RoundBF16(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.roundBF16(&dst[0], &x[:n][0], n)
	}
}

// RoundF16 sets dst to x rounded to binary16, to nearest even; 65520 and above become infinite.
func (f *Funcs) RoundF16(dst, x []float32) {
	if n := len(dst); n > 0 {
		f.k.roundF16(&dst[0], &x[:n][0], n)
	}
}

// Add sets dst to x+y.
func (f *Funcs) Add(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.add(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Sub sets dst to x-y.
func (f *Funcs) Sub(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.sub(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Mul sets dst to x·y.
func (f *Funcs) Mul(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.mul(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Div sets dst to x/y.
func (f *Funcs) Div(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.div(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Max sets dst to the larger of x and y, NaN if either is.
func (f *Funcs) Max(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.max(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Min sets dst to the smaller of x and y, NaN if either is.
func (f *Funcs) Min(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.min(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Equal sets dst to 1 where x = y, else 0. NaN is equal to nothing.
func (f *Funcs) Equal(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.equal(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// NotEqual sets dst to 0 where x = y, else 1.
func (f *Funcs) NotEqual(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.notEqual(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Less sets dst to 1 where x < y, else 0.
func (f *Funcs) Less(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.below(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// LessEqual sets dst to 1 where x ≤ y, else 0.
func (f *Funcs) LessEqual(dst, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.atMost(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// Greater sets dst to 1 where x > y, else 0.
func (f *Funcs) Greater(dst, x, y []float32) { f.Less(dst, y, x) }

// GreaterEqual sets dst to 1 where x ≥ y, else 0.
func (f *Funcs) GreaterEqual(dst, x, y []float32) { f.LessEqual(dst, y, x) }

// Select sets dst to x where p isn't 0 (NaN isn't), else to y.
func (f *Funcs) Select(dst, p, x, y []float32) {
	if n := len(dst); n > 0 {
		f.k.choose(&dst[0], &p[:n][0], &y[:n][0], &x[:n][0], n)
	}
}

// SubScalar sets dst to x-s.
func (f *Funcs) SubScalar(dst, x []float32, s float32) { f.AddScalar(dst, x, -s) }

// AddScalar sets dst to x+s.
func (f *Funcs) AddScalar(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.addScalar(&dst[0], &x[:n][0], s, n)
	}
}

// MulScalar sets dst to x·s.
func (f *Funcs) MulScalar(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.mulScalar(&dst[0], &x[:n][0], s, n)
	}
}

// DivScalar sets dst to x/s.
func (f *Funcs) DivScalar(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.divScalar(&dst[0], &x[:n][0], s, n)
	}
}

// ScalarSub sets dst to s-x.
func (f *Funcs) ScalarSub(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.scalarSub(&dst[0], &x[:n][0], s, n)
	}
}

// ScalarDiv sets dst to s/x.
func (f *Funcs) ScalarDiv(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.scalarDiv(&dst[0], &x[:n][0], s, n)
	}
}

// MaxScalar sets dst to the larger of x and s, NaN if either is.
func (f *Funcs) MaxScalar(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.maxScalar(&dst[0], &x[:n][0], s, n)
	}
}

// MinScalar sets dst to the smaller of x and s, NaN if either is.
func (f *Funcs) MinScalar(dst, x []float32, s float32) {
	if n := len(dst); n > 0 {
		f.k.minScalar(&dst[0], &x[:n][0], s, n)
	}
}

// MulAdd sets dst to x·y+z, the product rounded before the sum.
func (f *Funcs) MulAdd(dst, x, y, z []float32) {
	if n := len(dst); n > 0 {
		f.k.mulAdd(&dst[0], &x[:n][0], &y[:n][0], &z[:n][0], n)
	}
}

// FMA sets dst to x·y+z, rounded once.
func (f *Funcs) FMA(dst, x, y, z []float32) {
	if n := len(dst); n > 0 {
		f.k.fma(&dst[0], &x[:n][0], &y[:n][0], &z[:n][0], n)
	}
}
