package vec

import (
	"math"
	"unsafe"

	"github.com/gesso-go/gesso/tensor"
)

// What the portable kernels are written in: each function is one vector instruction, on one lane.

func bits(x float32) uint32               { return math.Float32bits(x) }
func float(u uint32) float32              { return math.Float32frombits(u) }
func and(x, y float32) float32            { return float(bits(x) & bits(y)) }
func or(x, y float32) float32             { return float(bits(x) | bits(y)) }
func xor(x, y float32) float32            { return float(bits(x) ^ bits(y)) }
func intAdd(x, y float32) float32         { return float(bits(x) + bits(y)) }
func intSub(x, y float32) float32         { return float(bits(x) - bits(y)) }
func shiftLeft(x float32, k int) float32  { return float(bits(x) << k) }
func shiftRight(x float32, k int) float32 { return float(bits(x) >> k) }
func shiftArith(x float32, k int) float32 { return float(uint32(int32(bits(x)) >> k)) }
func sqrt(x float32) float32              { return float32(math.Sqrt(float64(x))) }
func nearest(x float32) float32           { return float32(math.RoundToEven(float64(x))) }
func floor(x float32) float32             { return float32(math.Floor(float64(x))) }
func ceil(x float32) float32              { return float32(math.Ceil(float64(x))) }
func roundF16(x float32) float32          { return tensor.F16ToFloat32(tensor.Float32ToF16(x)) }

// toInt holds the bits of an int32, rounded to nearest even.
func toInt(x float32) float32 {
	if x != x {
		return float(0x80000000)
	}
	return float(uint32(int32(math.RoundToEven(float64(x)))))
}

func greater(x, y float32) float32 {
	if x > y {
		return x
	}
	return y
}

func less(x, y float32) float32 {
	if x < y {
		return x
	}
	return y
}

func choose(m bool, x, y float32) float32 {
	if m {
		return x
	}
	return y
}

// fma is a*b+c with one rounding. The product is exact in float64; the sum is rounded there once more than it should
// be, which matters only where it falls half-way between two float32 values, or below the normal range.
func fma(a, b, c float32) float32 {
	s := float64(a)*float64(b) + float64(c)
	u := math.Float64bits(s)
	if u&0x1fffffff == 0x10000000 || u&0x7fffffffffffffff < 898<<52 {
		return fmaOdd(a, b, c)
	}
	return float32(s)
}

// fmaOdd rounds the sum to odd in float64, after which rounding to float32 is exact (Boldo and Melquiond 2008).
func fmaOdd(a, b, c float32) float32 {
	p, z := float64(float64(a)*float64(b)), float64(c)
	s := float64(p + z)
	v := float64(s - p)
	e := float64(float64(p-float64(s-v)) + float64(z-v)) // p+z = s+e
	u := math.Float64bits(s)
	if e != 0 && e == e && u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return float32(math.Float64frombits(u))
}

var minusInfs = func() (a [64]float32) {
	for i := range a {
		a[i] = float32(math.Inf(-1))
	}
	return a
}()

// foldSum and foldMax combine the 64 partial results in the order of the assembly kernels.
func foldSum(a *[64]float32) float32 {
	return fold(a, func(x, y float32) float32 { return x + y })
}

func foldMax(a *[64]float32) float32 {
	return fold(a, func(x, y float32) float32 { return choose(x != x, x, greater(x, y)) })
}

func fold(a *[64]float32, op func(x, y float32) float32) float32 {
	for i := range 16 {
		a[i] = op(op(a[i], a[i+16]), op(a[i+32], a[i+48]))
	}
	for h := 8; h > 0; h /= 2 {
		for i := range h {
			a[i] = op(a[i], a[i+h])
		}
	}
	return a[0]
}

// at returns the address of element i from p.
func at[T any](p *T, i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}
