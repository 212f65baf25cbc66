package weights

import (
	"iter"

	"github.com/gesso-go/gesso/tensor"
)

// View is a part of a tensor along one axis, made by [Tensor.Slice] or [Tensor.Gather]. Its type is its tensor's.
type View struct {
	Tensor *Tensor
	Shape  tensor.Shape // of the part

	// The bytes are, for each i < outer, the runs moved by i*stride.
	outer, stride int
	runs          []Range
}

// Range is Len bytes at Off, counted from the first byte of the tensor.
type Range struct{ Off, Len int }

// add appends a run to those of one stride; it merges neighbours and leaves out empty runs.
func (v *View) add(off, n int) {
	if n == 0 {
		return
	}
	if last := len(v.runs) - 1; last >= 0 && v.runs[last].Off+v.runs[last].Len == off {
		v.runs[last].Len += n
		return
	}
	v.runs = append(v.runs, Range{off, n})
}

// join makes one run of runs that fill their strides.
func (v *View) join() {
	if len(v.runs) == 1 && v.runs[0].Len == v.stride {
		v.stride *= v.outer
		v.outer = 1
		v.runs[0].Len = v.stride
	}
}

// NumBytes returns the size of the part.
func (v *View) NumBytes() int { return v.Shape.Size() * v.Tensor.DType.Size() }

// Ranges yields the byte ranges of the part, in the order of its elements; neighbours are joined, so a slice of rows is
// one range.
func (v *View) Ranges() iter.Seq[Range] {
	return func(yield func(Range) bool) {
		var next Range
		for i := range v.outer {
			for _, r := range v.runs {
				r.Off += i * v.stride
				if r.Off == next.Off+next.Len {
					next.Len += r.Len
					continue
				}
				if next.Len > 0 && !yield(next) {
					return
				}
				next = r
			}
		}
		if next.Len > 0 {
			yield(next)
		}
	}
}

// contiguous reports whether the part is at most one range.
func (v *View) contiguous() bool { return v.NumBytes() == 0 || v.outer == 1 && len(v.runs) == 1 }

// CopyTo copies the part, dense and row-major, to dst, which must have NumBytes bytes. It reads the ranges of the part
// and nothing else (the system reads whole pages). An error of the disk, or a file truncated since it was opened, is
// returned.
func (v *View) CopyTo(dst []byte) error {
	n := v.NumBytes()
	if len(dst) != n {
		return v.Tensor.errorf("destination has %d bytes, expected %d", len(dst), n)
	}
	if n == 0 {
		return nil
	}
	src := v.Tensor.bytes()
	err := v.Tensor.file.guard(func() {
		for i := range v.outer {
			row := src[i*v.stride:]
			for _, r := range v.runs {
				dst = dst[copy(dst, row[r.Off:r.Off+r.Len]):]
			}
		}
	})
	if err != nil {
		return v.Tensor.errorf("%w", err)
	}
	v.Tensor.file.read.Add(int64(n))
	return nil
}

// Bytes returns the part dense and row-major: a view of the mapped file where it is one range, as [Tensor.Bytes] is, and a
// copy where it is several.
func (v *View) Bytes() ([]byte, error) {
	if v.contiguous() {
		if v.NumBytes() == 0 {
			return []byte{}, nil
		}
		r := v.runs[0]
		v.Tensor.file.read.Add(int64(r.Len))
		return v.Tensor.bytes()[r.Off : r.Off+r.Len : r.Off+r.Len], nil
	}
	a := tensor.New(v.Tensor.DType, v.Shape...)
	return a.Data, v.CopyTo(a.Data)
}

// Array returns the part as a host array over Bytes.
func (v *View) Array() (*tensor.Array, error) {
	data, err := v.Bytes()
	if err != nil {
		return nil, err
	}
	return &tensor.Array{DType: v.Tensor.DType, Shape: v.Shape, Data: data}, nil
}

// Release is [Tensor.Release] for the pages from the first to the last byte of the part.
func (v *View) Release() {
	if v.NumBytes() == 0 {
		return
	}
	lo, hi := v.runs[0].Off, 0
	for _, r := range v.runs {
		lo, hi = min(lo, r.Off), max(hi, r.Off+r.Len)
	}
	off := int(v.Tensor.off)
	v.Tensor.file.release(off+lo, off+(v.outer-1)*v.stride+hi)
}
