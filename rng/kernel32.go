package rng

import "math"

// boxMuller32 turns 16 uniforms into 16 normals; value j is paired with value j+8.
// Source: normal_fill_16_AVX2 (ATen/native/cpu/DistributionTemplates.h), whose log and sincos are the Cephes
// approximations of avx_mathfun.h. Bits depend on which multiplications and additions the compiler of PyTorch's wheels
// contracted into fused ones: fma below is fused, a bare product is rounded. The conversions float32(x*y) keep this
// compiler from fusing them.
func boxMuller32(d *[block]float32) {
	for j := range block / 2 {
		u1 := 1 - d[j]
		r := float32(math.Sqrt(float64(-2 * log32(u1))))
		sin, cos := sincos32(float32(2*math.Pi) * d[j+8])
		// Adding the mean of zero turns -0 into 0, as PyTorch's x*std + mean does.
		d[j] = float32(r*cos) + 0
		d[j+8] = float32(r*sin) + 0
	}
}

// fma returns x*y+z rounded once to float32.
func fma(x, y, z float32) float32 {
	p := float64(x) * float64(y) // exact: 24+24 bits
	c := float64(z)
	s := p + c
	// Rounding s again is the same as rounding once unless s lies half-way between two float32 (its low 29 bits are
	// a one and zeros) and is itself inexact: then the error of the sum decides.
	if math.Float64bits(s)&(1<<29-1) != 1<<28 {
		return float32(s)
	}
	return roundTie(s, p, c)
}

// roundTie is the rare half of fma: s = p + c rounded is half-way between two float32.
func roundTie(s, p, c float64) float32 {
	t := s - p
	e := (p - (s - t)) + (c - t) // p + c = s + e exactly (Knuth's two-sum)
	switch {
	case e > 0:
		s = math.Nextafter(s, math.Inf(1))
	case e < 0:
		s = math.Nextafter(s, math.Inf(-1))
	}
	return float32(s)
}

// log32 is the natural logarithm of a positive normal x.
func log32(x float32) float32 {
	// x = m * 2^e with m in [1/2, 1).
	u := math.Float32bits(x)
	e := float32(int(u>>23) - 0x7e)
	m := math.Float32frombits(u&0x007fffff | 0x3f000000)
	x = m - 1
	if m < math.Sqrt2/2 {
		e--
		x += m
	}
	z := float32(x * x)
	y := fma(7.0376836292e-2, x, -1.1514610310e-1)
	y = fma(y, x, 1.1676998740e-1)
	y = fma(y, x, -1.2420140846e-1)
	y = fma(y, x, 1.4249322787e-1)
	y = fma(y, x, -1.6668057665e-1)
	y = fma(y, x, 2.0000714765e-1)
	y = fma(y, x, -2.4999993993e-1)
	y = fma(y, x, 3.3333331174e-1)
	// ln 2 in two parts, 0.693359375 being exact in few bits.
	y = fma(float32(y*x), z, float32(e*-2.12194440e-4))
	y = fma(-z, 0.5, y)
	return fma(e, 0.693359375, x+y)
}

// sincos32 is the sine and cosine of 0 <= x < 2π.
func sincos32(x float32) (sin, cos float32) {
	// j is the nearest even multiple of π/4, subtracted in three parts.
	j := (int32(float32(x*(4/math.Pi))) + 1) &^ 1
	f := float32(j)
	x = fma(f, -0.78515625, x)
	x = fma(f, -2.4187564849853515625e-4, x)
	x = fma(f, -3.77489497744594108e-8, x)
	z := float32(x * x)

	c := fma(2.443315711809948e-5, z, -1.388731625493765e-3)
	c = fma(c, z, 4.166664568298827e-2)
	c = fma(float32(c*z), z, -float32(z*0.5)) + 1

	s := fma(-1.9515295891e-4, z, 8.3321608736e-3)
	s = fma(s, z, -1.6666654611e-1)
	s = fma(float32(s*z), x, x)

	switch j & 6 { // the quadrant
	case 2:
		return c, -s
	case 4:
		return -s, -c
	case 6:
		return -c, s
	}
	return s, c
}
