package tensor

import (
	"fmt"
	"math"
	"unsafe"
)

// Array is a dense row-major array in host memory. Data holds Shape.Size()*DType.Size() bytes in the machine's
// byte order (all supported machines are little-endian) and is not copied by the functions here unless they say so.
type Array struct {
	DType DType
	Shape Shape
	Data  []byte
}

// New returns a zeroed array.
func New(d DType, shape ...int) *Array {
	s := Shape(shape).Clone()
	return &Array{DType: d, Shape: s, Data: alignedBytes(s.Size() * d.Size())}
}

// alignedBytes returns n zeroed bytes aligned for every element type.
func alignedBytes(n int) []byte {
	if n == 0 {
		return []byte{}
	}
	w := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(w)*8)[:n]
}

// element is every Go type that an Array can be viewed as.
type element interface {
	~float32 | ~float64 | ~int32 | ~int64 | ~int16 | ~int8 | ~uint8 | ~uint16
}

// View reinterprets data as a slice of T without copying; misaligned data is copied.
func View[T element](data []byte) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	n := len(data) / size
	if n == 0 {
		return nil
	}
	if uintptr(unsafe.Pointer(&data[0]))%uintptr(size) != 0 {
		c := make([]T, n)
		copy(Bytes(c), data)
		return c
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), n)
}

// Bytes returns the memory of s as bytes, without copying.
func Bytes[T element](s []T) []byte {
	if len(s) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func from[T element](d DType, v []T, shape []int) *Array {
	s := Shape(shape).Clone()
	if s.Size() != len(v) {
		panic(fmt.Sprintf("tensor: %d values do not fill shape %v", len(v), s))
	}
	return &Array{DType: d, Shape: s, Data: Bytes(v)}
}

// FromFloat32 wraps v, without copying, as an array of the given shape. It panics when the count differs.
func FromFloat32(v []float32, shape ...int) *Array { return from(F32, v, shape) }

// FromFloat64 wraps v like FromFloat32.
func FromFloat64(v []float64, shape ...int) *Array { return from(F64, v, shape) }

// FromInt64 wraps v like FromFloat32.
func FromInt64(v []int64, shape ...int) *Array { return from(I64, v, shape) }

// FromInt32 wraps v like FromFloat32.
func FromInt32(v []int32, shape ...int) *Array { return from(I32, v, shape) }

// Check returns an error when the byte count does not match the shape and type.
func (a *Array) Check() error {
	if err := a.Shape.Check(); err != nil {
		return err
	}
	if a.DType.Size() == 0 {
		return fmt.Errorf("array of %v has no element type", a.Shape)
	}
	if want := a.Shape.Size() * a.DType.Size(); len(a.Data) != want {
		return fmt.Errorf("array %s%v has %d bytes, expected %d", a.DType, a.Shape, len(a.Data), want)
	}
	return nil
}

// Float32s returns the elements converted to float32. An F32 array is viewed, not copied.
func (a *Array) Float32s() []float32 {
	if a.DType == F32 {
		return View[float32](a.Data)
	}
	out := make([]float32, a.Shape.Size())
	a.each(func(i int, v float64) { out[i] = float32(v) })
	return out
}

// Float64s returns the elements converted to float64. An F64 array is viewed, not copied.
func (a *Array) Float64s() []float64 {
	if a.DType == F64 {
		return View[float64](a.Data)
	}
	out := make([]float64, a.Shape.Size())
	a.each(func(i int, v float64) { out[i] = v })
	return out
}

// Int64s returns the elements converted to int64, floats truncated towards zero. An I64 array is viewed, not copied.
func (a *Array) Int64s() []int64 {
	if a.DType == I64 {
		return View[int64](a.Data)
	}
	out := make([]int64, a.Shape.Size())
	a.each(func(i int, v float64) { out[i] = int64(v) })
	return out
}

// each calls fn with every element as a float64; exact for all types but I64 past 2^53.
func (a *Array) each(fn func(i int, v float64)) {
	switch a.DType {
	case F32:
		for i, v := range View[float32](a.Data) {
			fn(i, float64(v))
		}
	case F64:
		for i, v := range View[float64](a.Data) {
			fn(i, v)
		}
	case BF16:
		for i, v := range View[uint16](a.Data) {
			fn(i, float64(BF16ToFloat32(v)))
		}
	case F16:
		for i, v := range View[uint16](a.Data) {
			fn(i, float64(F16ToFloat32(v)))
		}
	case I32:
		for i, v := range View[int32](a.Data) {
			fn(i, float64(v))
		}
	case I64:
		for i, v := range View[int64](a.Data) {
			fn(i, float64(v))
		}
	case I16:
		for i, v := range View[int16](a.Data) {
			fn(i, float64(v))
		}
	case I8:
		for i, v := range View[int8](a.Data) {
			fn(i, float64(v))
		}
	case U8, Bool:
		for i, v := range a.Data {
			fn(i, float64(v))
		}
	case F8E4M3:
		for i, v := range a.Data {
			fn(i, float64(F8E4M3ToFloat32(v)))
		}
	case F8E5M2:
		for i, v := range a.Data {
			fn(i, float64(F8E5M2ToFloat32(v)))
		}
	}
}

// Convert returns the array as type d, as torch's Tensor.to does: float to float rounds to nearest even, float to
// integer truncates, anything to Bool compares with zero. The array itself is returned when it has that type already.
// A float64 goes to a half type through one rounding to float32 first, as in torch. F8 types cannot be converted to.
func (a *Array) Convert(d DType) (*Array, error) {
	if a.DType == d {
		return a, nil
	}
	if a.DType == I64 && d == I32 {
		out := New(I32, a.Shape...)
		o := View[int32](out.Data)
		for i, v := range View[int64](a.Data) {
			o[i] = int32(v)
		}
		return out, nil
	}
	out := New(d, a.Shape...)
	if convertHalf(out, a) {
		return out, nil
	}
	switch d {
	case F32:
		o := View[float32](out.Data)
		a.each(func(i int, v float64) { o[i] = float32(v) })
	case F64:
		o := View[float64](out.Data)
		a.each(func(i int, v float64) { o[i] = v })
	case BF16:
		o := View[uint16](out.Data)
		a.each(func(i int, v float64) { o[i] = Float32ToBF16(float32(v)) })
	case F16:
		o := View[uint16](out.Data)
		a.each(func(i int, v float64) { o[i] = Float32ToF16(float32(v)) })
	case I64:
		o := View[int64](out.Data)
		a.each(func(i int, v float64) { o[i] = int64(v) })
	case I32:
		o := View[int32](out.Data)
		a.each(func(i int, v float64) { o[i] = int32(int64(v)) })
	case I16:
		o := View[int16](out.Data)
		a.each(func(i int, v float64) { o[i] = int16(int64(v)) })
	case I8:
		o := View[int8](out.Data)
		a.each(func(i int, v float64) { o[i] = int8(int64(v)) })
	case U8:
		a.each(func(i int, v float64) { out.Data[i] = uint8(int64(v)) })
	case Bool:
		a.each(func(i int, v float64) {
			if v != 0 {
				out.Data[i] = 1
			}
		})
	default:
		return nil, fmt.Errorf("cannot convert %s to %s", a.DType, d)
	}
	return out, nil
}

// Reshape returns a view of the same data with another shape of equal size.
func (a *Array) Reshape(shape ...int) (*Array, error) {
	s := Shape(shape).Clone()
	if s.Size() != a.Shape.Size() {
		return nil, fmt.Errorf("cannot reshape %v to %v", a.Shape, s)
	}
	return &Array{DType: a.DType, Shape: s, Data: a.Data}, nil
}

// Clone returns a deep copy.
func (a *Array) Clone() *Array {
	out := New(a.DType, a.Shape...)
	copy(out.Data, a.Data)
	return out
}

// FirstNonFinite returns the index of the first NaN or infinity, or -1. Integer arrays have none.
func (a *Array) FirstNonFinite() int {
	if !a.DType.IsFloat() {
		return -1
	}
	first := -1
	a.each(func(i int, v float64) {
		if first < 0 && (math.IsNaN(v) || math.IsInf(v, 0)) {
			first = i
		}
	})
	return first
}

// String describes the array, such as "bf16[2 3]", not its contents.
func (a *Array) String() string { return a.DType.String() + a.Shape.String() }
