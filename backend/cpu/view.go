package cpu

import (
	"unsafe"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// storageKind says where a storage's memory comes from.
type storageKind uint8

const (
	temporary storageKind = iota // the program's arena
	input                        // an argument
	constant                     // the graph
	output                       // a block of its own for each run
)

// storage is memory of a program while it is planned. In a run it is frame.mem[slot].
type storage struct {
	kind  storageKind
	slot  int
	bytes int
	data  []byte // constants

	weight *weight // inputs: the use as a product's weight, nil if there is none
	plain  bool    // inputs: some step, or the caller, needs the value itself

	first, last int      // the steps that write it first and use it last
	inside      *storage // the storage whose memory this one takes over, nil if none
	offset      int      // in the arena
}

// root follows the chain of take-overs.
func (s *storage) root() *storage {
	for s.inside != nil {
		s = s.inside
	}
	return s
}

// view is a strided value in a storage. Offset and strides are in elements.
type view struct {
	st      *storage
	dtype   tensor.DType
	shape   tensor.Shape
	strides []int
	offset  int
}

func denseView(st *storage, t graph.Type) view {
	return view{st: st, dtype: t.DType, shape: t.Shape, strides: t.Shape.Strides()}
}

// dense reports whether the elements lie in row-major order without gaps.
func (v view) dense() bool {
	n := 1
	for i := len(v.shape) - 1; i >= 0; i-- {
		if v.shape[i] != 1 && v.strides[i] != n {
			return false
		}
		n *= v.shape[i]
	}
	return true
}

// whole reports whether the view is all of its storage, in order.
func (v view) whole() bool {
	return v.offset == 0 && v.dense() && v.shape.Size()*v.dtype.Size() == v.st.bytes
}

// reshape returns the view with another shape of equal size, or false where only a copy can have it. The axes of both
// shapes are matched in groups of equal size; a group must be dense within itself.
func (v view) reshape(shape tensor.Shape) (view, bool) {
	out := v
	out.shape = shape
	out.strides = make([]int, len(shape))
	if shape.Size() == 0 {
		return out, true
	}
	var dims, strides []int // without the axes of extent 1
	for i, d := range v.shape {
		if d != 1 {
			dims, strides = append(dims, d), append(strides, v.strides[i])
		}
	}
	i, j := 0, 0
	for i < len(dims) && j < len(shape) {
		ni, nj := i+1, j+1
		a, b := dims[i], shape[j]
		for a != b {
			if a < b {
				a *= dims[ni]
				ni++
			} else {
				b *= shape[nj]
				nj++
			}
		}
		for k := i; k+1 < ni; k++ {
			if strides[k] != strides[k+1]*dims[k+1] {
				return v, false
			}
		}
		s := strides[ni-1]
		for k := nj - 1; k >= j; k-- {
			out.strides[k] = s
			s *= shape[k]
		}
		i, j = ni, nj
	}
	return out, true
}

// broadcast returns the view read at the indices of shape, by NumPy's rule.
func (v view) broadcast(shape tensor.Shape) view {
	out := v
	out.shape = shape
	out.strides = make([]int, len(shape))
	off := len(shape) - len(v.shape)
	for i, d := range v.shape {
		if d != 1 {
			out.strides[off+i] = v.strides[i]
		}
	}
	return out
}

// along applies a node that only renames indices: slice, transpose, broadcast_in_dim, barrier. Reshape is not among them.
func (v view) along(n *graph.Node) view {
	out := v
	out.shape = n.Shape
	switch a := n.Attr.(type) {
	case graph.SliceAttr:
		out.strides = make([]int, len(n.Shape))
		for i, s := range v.strides {
			out.offset += a.Start[i] * s
			out.strides[i] = s * a.Stride[i]
		}
	case graph.TransposeAttr:
		out.strides = make([]int, len(n.Shape))
		for i, p := range a.Perm {
			out.strides[i] = v.strides[p]
		}
	case graph.BroadcastInDimAttr:
		out.strides = make([]int, len(n.Shape))
		for i, ax := range a.Axes {
			if v.shape[i] != 1 {
				out.strides[ax] = v.strides[i]
			}
		}
	}
	return out
}

// rows describes a view as rows of its last axis.
type rows struct {
	dims, strides []int // of the axes before the last, merged
	n             int   // how many rows
	width         int
	offset        int
}

// rows returns false when the elements of a row are not next to each other.
func (v view) rows() (rows, bool) {
	last := len(v.shape) - 1
	if last < 0 || v.shape[last] > 1 && v.strides[last] != 1 {
		return rows{}, false
	}
	r := rows{n: 1, width: v.shape[last], offset: v.offset}
	dims, strides := mergeAxes(v.shape[:last], v.strides[:last])
	r.dims, r.strides = dims, strides[0]
	for _, d := range r.dims {
		r.n *= d
	}
	return r, true
}

// at returns the offset of row i.
func (r *rows) at(i int) int {
	off := r.offset
	for ax := len(r.dims) - 1; ax > 0; ax-- {
		d := r.dims[ax]
		off += i % d * r.strides[ax]
		i /= d
	}
	if len(r.dims) > 0 {
		off += i * r.strides[0]
	}
	return off
}

// mergeAxes joins neighbouring axes that every list of strides walks as one, and drops those of extent 1. The result
// has at least one axis.
func mergeAxes(shape []int, strides ...[]int) (dims []int, merged [][]int) {
	merged = make([][]int, len(strides))
	for i, d := range shape {
		if d == 1 {
			continue
		}
		joins := len(dims) > 0
		for j, s := range strides {
			joins = joins && merged[j][len(dims)-1] == s[i]*d
		}
		if joins {
			dims[len(dims)-1] *= d
			for j, s := range strides {
				merged[j][len(dims)-1] = s[i]
			}
			continue
		}
		dims = append(dims, d)
		for j, s := range strides {
			merged[j] = append(merged[j], s[i])
		}
	}
	if len(dims) == 0 {
		dims = []int{1}
		for j := range merged {
			merged[j] = []int{0}
		}
	}
	return dims, merged
}

// elements views n elements of type T that start at element offset of mem.
func elements[T any](mem []byte, offset, n int) []T {
	if n == 0 {
		return nil
	}
	var z T
	size := int(unsafe.Sizeof(z))
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[offset*size : (offset+n)*size][0])), n)
}
