package vec

import "math"

// FromBF16 widens bfloat16 words; it is exact.
func (f *Funcs) FromBF16(dst []float32, x []uint16) {
	if n := len(dst); n > 0 {
		f.k.fromBF16(&dst[0], &x[:n][0], n)
	}
}

// ToBF16 rounds to bfloat16, to nearest even; NaN stays NaN.
func (f *Funcs) ToBF16(dst []uint16, x []float32) {
	if n := len(dst); n > 0 {
		f.k.toBF16(&dst[0], &x[:n][0], n)
	}
}

// FromF16 widens binary16 words; it is exact.
func (f *Funcs) FromF16(dst []float32, x []uint16) {
	if n := len(dst); n > 0 {
		f.k.fromF16(&dst[0], &x[:n][0], n)
	}
}

// ToF16 rounds to binary16, to nearest even; 65520 and above become infinite, NaN stays NaN.
func (f *Funcs) ToF16(dst []uint16, x []float32) {
	if n := len(dst); n > 0 {
		f.k.toF16(&dst[0], &x[:n][0], n)
	}
}

// Number is an element type that converts to float32 and back by Go's conversion.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~int32 | ~int64 | ~float64
}

// FromNumbers sets dst to x, rounded to nearest where float32 can't hold the value.
func FromNumbers[T Number](dst []float32, x []T) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float32(v)
	}
}

// FromBools sets dst to 1 where a byte of x isn't 0.
func FromBools(dst []float32, x []byte) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 0
		if v != 0 {
			dst[i] = 1
		}
	}
}

// ToBools sets dst to 1 where x isn't 0; NaN counts as not 0.
func ToBools(dst []byte, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = 0
		if v != 0 {
			dst[i] = 1
		}
	}
}

// ToFloat64 widens to float64; it is exact.
func ToFloat64(dst []float64, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] = float64(v)
	}
}

// Integer is an integer element type.
type Integer interface {
	~int8 | ~uint8 | ~int16 | ~int32 | ~int64
}

// ToIntegers truncates towards zero. A value outside T's range becomes the low bits of the truncated int64, and one
// outside int64's, or NaN, the low bits of the most negative int64: the same on every machine.
func ToIntegers[T Integer](dst []T, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		w := int64(math.MinInt64)
		if v >= -0x1p63 && v < 0x1p63 {
			w = int64(v)
		}
		dst[i] = T(w)
	}
}
