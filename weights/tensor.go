package weights

import (
	"fmt"

	"github.com/gesso-go/gesso/tensor"
)

// Tensor is a named tensor in an open file. It is a description: the bytes stay in the file until a method asks for them.
// A Tensor and its Shape must not be changed.
type Tensor struct {
	Name  string
	DType tensor.DType
	Shape tensor.Shape
	file  *File
	off   int64 // first byte, from the start of the file
}

// NumBytes returns the size of the data.
func (t *Tensor) NumBytes() int { return t.Shape.Size() * t.DType.Size() }

func (t *Tensor) end() int64 { return t.off + int64(t.NumBytes()) }

// Path returns the file that holds the tensor.
func (t *Tensor) Path() string { return t.file.path }

// String describes the tensor, such as `"proj_out.weight" bf16[64 3072]`.
func (t *Tensor) String() string { return fmt.Sprintf("%s %s%v", clip(t.Name), t.DType, t.Shape) }

func (t *Tensor) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: tensor %s: %w", t.file.path, clip(t.Name), fmt.Errorf(format, args...))
}

// Bytes returns the row-major, little-endian data as a view of the mapped file: nothing is read until it is touched, it
// must not be written to, and it ends with the file's Close. The view may be misaligned for its type. A file that
// somebody truncates while it is open makes the access a fault; CopyTo returns an error instead.
//
// Bytes panics after Close.
func (t *Tensor) Bytes() []byte {
	data := t.bytes()
	t.file.read.Add(int64(len(data)))
	return data
}

// bytes is Bytes without the accounting.
func (t *Tensor) bytes() []byte {
	if t.file.closed.Load() {
		panic(t.errorf("used after Close"))
	}
	return t.file.data[t.off:t.end():t.end()]
}

// Array returns the tensor as a host array over Bytes, under the same conditions.
func (t *Tensor) Array() *tensor.Array {
	return &tensor.Array{DType: t.DType, Shape: t.Shape, Data: t.Bytes()}
}

// CopyTo copies the data to dst, which must have NumBytes bytes.
func (t *Tensor) CopyTo(dst []byte) error { return t.whole().CopyTo(dst) }

// Release tells the operating system that the pages of the tensor are not needed for now, once its weights have been
// converted or packed elsewhere. They stay valid, and come back from the file when they are touched again. Pages shared
// with neighbouring tensors go too.
func (t *Tensor) Release() { t.whole().Release() }

// Slice returns the part start ≤ i < stop of one axis, whole in the others: rows (axis 0) are one range of the file,
// columns are one range per row. Nothing is read.
func (t *Tensor) Slice(axis, start, stop int) (*View, error) {
	return t.Gather(axis, [][2]int{{start, stop}})
}

// Gather returns several parts of one axis, each [start, stop), one after the other in the given order. It serves packed
// projections, where a rank of a tensor-parallel group owns a slice of each block: q, k, v, gate and up.
func (t *Tensor) Gather(axis int, parts [][2]int) (*View, error) {
	if axis < 0 || axis >= len(t.Shape) {
		return nil, t.errorf("shape %v has no axis %d", t.Shape, axis)
	}
	outer, inner := 1, t.DType.Size() // how often the axis is run through; bytes of one step along it
	for i, d := range t.Shape {
		if i < axis {
			outer *= d
		} else if i > axis {
			inner *= d
		}
	}
	v := &View{Tensor: t, Shape: t.Shape.Clone(), outer: outer, stride: t.Shape[axis] * inner}
	v.Shape[axis] = 0
	for _, p := range parts {
		if p[0] < 0 || p[1] < p[0] || p[1] > t.Shape[axis] {
			return nil, t.errorf("[%d, %d) is no part of axis %d of shape %v", p[0], p[1], axis, t.Shape)
		}
		v.Shape[axis] += p[1] - p[0]
		v.add(p[0]*inner, (p[1]-p[0])*inner)
	}
	if err := v.Shape.Check(); err != nil { // overlapping parts can add up to more than the tensor
		return nil, t.errorf("%w", err)
	}
	if v.NumBytes() == 0 { // an extent beside the zero may be as large as an int
		v.outer, v.runs = 0, nil
	}
	v.join()
	return v, nil
}

// whole returns the tensor as a view; a scalar has no axis to slice.
func (t *Tensor) whole() *View {
	n := t.NumBytes()
	v := &View{Tensor: t, Shape: t.Shape, outer: 1, stride: n}
	v.add(0, n)
	return v
}
