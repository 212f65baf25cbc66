package cpu

import (
	"math"

	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/tensor"
)

// load returns len(dst) elements of an operand as float32, from offset on: the operand's own memory where it can, dst
// where it must convert, and a single element where the operand stands still.
func (a *access) load(fn *vec.Funcs, mem []byte, offset, stride int, dst []float32) []float32 {
	d := a.view.dtype
	switch {
	case stride == 0:
		dst = dst[:1]
		widen(fn, d, mem, offset, dst)
		return dst
	case stride == 1 && d == tensor.F32:
		return elements[float32](mem, offset, len(dst))
	case stride == 1:
		widen(fn, d, mem, offset, dst)
		return dst
	}
	size := d.Size()
	switch d {
	case tensor.F32:
		src := elements[float32](mem, offset, (len(dst)-1)*stride+1)
		for i := range dst {
			dst[i] = src[i*stride]
		}
	case tensor.BF16, tensor.F16:
		src := elements[uint16](mem, offset, (len(dst)-1)*stride+1)
		for i := range dst {
			if d == tensor.BF16 {
				dst[i] = tensor.BF16ToFloat32(src[i*stride])
			} else {
				dst[i] = tensor.F16ToFloat32(src[i*stride])
			}
		}
	default:
		for i := range dst {
			widen(fn, d, mem[(offset+i*stride)*size:], 0, dst[i:i+1])
		}
	}
	return dst
}

// loadPeriod returns len(dst) elements, from element i on, of an operand that repeats.
func (a *access) loadPeriod(fn *vec.Funcs, mem []byte, i int, dst []float32) []float32 {
	i %= a.period
	if i+len(dst) <= a.period {
		return a.load(fn, mem, a.view.offset+i, 1, dst)
	}
	n := a.period - i
	widen(fn, a.view.dtype, mem, a.view.offset+i, dst[:n])
	m := min(a.period, len(dst)-n)
	widen(fn, a.view.dtype, mem, a.view.offset, dst[n:n+m])
	for n += m; n < len(dst); {
		n += copy(dst[n:], dst[n%a.period:n])
	}
	return dst
}

// widen converts len(dst) neighbouring elements to float32.
func widen(fn *vec.Funcs, d tensor.DType, mem []byte, offset int, dst []float32) {
	n := len(dst)
	switch d {
	case tensor.F32:
		copy(dst, elements[float32](mem, offset, n))
	case tensor.BF16:
		fn.FromBF16(dst, elements[uint16](mem, offset, n))
	case tensor.F16:
		fn.FromF16(dst, elements[uint16](mem, offset, n))
	case tensor.I32:
		vec.FromNumbers(dst, elements[int32](mem, offset, n))
	case tensor.I64:
		vec.FromNumbers(dst, elements[int64](mem, offset, n))
	case tensor.I8:
		vec.FromNumbers(dst, elements[int8](mem, offset, n))
	case tensor.U8:
		vec.FromNumbers(dst, mem[offset:offset+n])
	case tensor.Bool:
		vec.FromBools(dst, mem[offset:offset+n])
	default:
		panic("cpu: no conversion from " + d.String())
	}
}

// store writes x, which is rounded to the dtype already.
func (a *access) store(fn *vec.Funcs, mem []byte, offset, stride int, x []float32) {
	d := a.view.dtype
	if stride == 1 || len(x) == 1 {
		narrow(fn, d, mem, offset, x)
		return
	}
	size := d.Size()
	for i := range x {
		narrow(fn, d, mem[(offset+i*stride)*size:], 0, x[i:i+1])
	}
}

func narrow(fn *vec.Funcs, d tensor.DType, mem []byte, offset int, x []float32) {
	n := len(x)
	switch d {
	case tensor.F32:
		copy(elements[float32](mem, offset, n), x)
	case tensor.BF16:
		fn.ToBF16(elements[uint16](mem, offset, n), x)
	case tensor.F16:
		fn.ToF16(elements[uint16](mem, offset, n), x)
	case tensor.I32:
		saturate(elements[int32](mem, offset, n), x, math.MinInt32, math.MaxInt32)
	case tensor.I64:
		saturate(elements[int64](mem, offset, n), x, math.MinInt64, math.MaxInt64)
	case tensor.I8:
		saturate(elements[int8](mem, offset, n), x, math.MinInt8, math.MaxInt8)
	case tensor.U8:
		saturate(mem[offset:offset+n], x, 0, math.MaxUint8)
	case tensor.Bool:
		vec.ToBools(mem[offset:offset+n], x)
	default:
		panic("cpu: no conversion to " + d.String())
	}
}

// saturate truncates towards zero; what is outside becomes the nearest integer, NaN 0.
func saturate[T int32 | int64 | int8 | uint8](dst []T, x []float32, lo, hi int64) {
	for i, v := range x {
		switch f := float64(v); {
		case f != f:
			dst[i] = 0
		case f >= float64(hi):
			dst[i] = T(hi)
		case f <= float64(lo):
			dst[i] = T(lo)
		default:
			dst[i] = T(int64(f))
		}
	}
}
