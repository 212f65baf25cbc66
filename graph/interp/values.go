package interp

import (
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// values holds the elements of an array in the type that they are computed in: f for floats, i for integers and bool.
type values struct {
	f []float64
	i []int64
}

// load widens a; every value of every dtype is exact.
func load(a *tensor.Array) values {
	n := a.Shape.Size()
	switch a.DType {
	case tensor.I64:
		return values{i: tensor.View[int64](a.Data)}
	case tensor.I32:
		return integers(tensor.View[int32](a.Data))
	case tensor.I16:
		return integers(tensor.View[int16](a.Data))
	case tensor.I8:
		return integers(tensor.View[int8](a.Data))
	case tensor.U8:
		return integers(a.Data)
	case tensor.Bool:
		v := make([]int64, n)
		for k, b := range a.Data {
			if b != 0 {
				v[k] = 1
			}
		}
		return values{i: v}
	}
	return values{f: a.Float64s()}
}

func integers[T int32 | int16 | int8 | uint8](s []T) values {
	v := make([]int64, len(s))
	for k, x := range s {
		v[k] = int64(x)
	}
	return values{i: v}
}

// zeros returns n zeros of the kind that d is computed in.
func zeros(d tensor.DType, n int) values {
	if d.IsFloat() {
		return values{f: make([]float64, n)}
	}
	return values{i: make([]int64, n)}
}

// store rounds or wraps v to an array of dtype d.
func (v values) store(d tensor.DType, shape tensor.Shape) *tensor.Array {
	if v.f == nil && v.i == nil {
		return tensor.New(d, shape...)
	}
	if v.f != nil && !d.IsFloat() {
		v = values{i: truncate(v.f, d)}
	}
	out := tensor.New(d, shape...)
	switch d {
	case tensor.F64:
		o := tensor.View[float64](out.Data)
		copy(o, v.f)
		for k, x := range v.i {
			o[k] = float64(x)
		}
	case tensor.F32:
		v.eachFloat32(func(k int, x float32) { tensor.View[float32](out.Data)[k] = x })
	case tensor.BF16:
		v.eachFloat32(func(k int, x float32) { tensor.View[uint16](out.Data)[k] = tensor.Float32ToBF16(x) })
	case tensor.F16:
		v.eachFloat32(func(k int, x float32) { tensor.View[uint16](out.Data)[k] = tensor.Float32ToF16(x) })
	case tensor.I64:
		copy(tensor.View[int64](out.Data), v.i)
	case tensor.I32:
		narrow(tensor.View[int32](out.Data), v.i)
	case tensor.I16:
		narrow(tensor.View[int16](out.Data), v.i)
	case tensor.I8:
		narrow(tensor.View[int8](out.Data), v.i)
	case tensor.U8:
		narrow(out.Data, v.i)
	case tensor.Bool:
		for k, x := range v.i {
			if x != 0 {
				out.Data[k] = 1
			}
		}
	}
	return out
}

func (v values) eachFloat32(fn func(k int, x float32)) {
	for k, x := range v.f {
		fn(k, float32(x))
	}
	for k, x := range v.i {
		fn(k, float32(x))
	}
}

func narrow[T int32 | int16 | int8 | uint8](dst []T, v []int64) {
	for k, x := range v {
		dst[k] = T(x)
	}
}

// truncate converts to the integers of d as XLA does: towards zero, saturating, NaN to 0. To bool, anything but zero is
// true.
func truncate(f []float64, d tensor.DType) []int64 {
	var lo, hi int64
	switch d {
	case tensor.I64:
		lo, hi = math.MinInt64, math.MaxInt64
	case tensor.I32:
		lo, hi = math.MinInt32, math.MaxInt32
	case tensor.I16:
		lo, hi = math.MinInt16, math.MaxInt16
	case tensor.I8:
		lo, hi = math.MinInt8, math.MaxInt8
	case tensor.U8:
		lo, hi = 0, math.MaxUint8
	}
	out := make([]int64, len(f))
	for k, x := range f {
		switch {
		case d == tensor.Bool:
			if x != 0 {
				out[k] = 1
			}
		case math.IsNaN(x):
		case x >= float64(hi):
			out[k] = hi
		case x <= float64(lo):
			out[k] = lo
		default:
			out[k] = int64(x)
		}
	}
	return out
}

// convert changes the dtype; float64 goes to a half type through float32.
func convert(a *tensor.Array, d tensor.DType) *tensor.Array {
	if a.DType == d {
		return a
	}
	return load(a).store(d, a.Shape)
}
