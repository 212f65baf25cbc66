package cpu

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// copy plans to = from, two views of one shape and dtype.
func (p *planner) copy(op graph.Op, to, from view) {
	if to.shape.Size() == 0 {
		return
	}
	m := newMove(to, from)
	par := p.c.par
	p.add(op, func(f *frame) error {
		m.run(par.For, f.mem[to.st.slot], f.mem[from.st.slot])
		return nil
	}, from, to)
}

// move copies between strided views.
type move struct {
	size     int   // bytes of an element
	dims     []int // merged; the last one is copied as a run or in steps
	dst, src []int // strides
	to, from int   // offsets
	tile     int   // an axis along which src is dense while the last one isn't, or -1
}

func newMove(to, from view) *move {
	dims, strides := mergeAxes(to.shape, to.strides, from.strides)
	m := &move{size: to.dtype.Size(), dims: dims, dst: strides[0], src: strides[1], to: to.offset, from: from.offset, tile: -1}
	last := len(dims) - 1
	if m.src[last] != 1 {
		for ax := range last {
			if m.src[ax] == 1 {
				m.tile = ax
			}
		}
	}
	return m
}

// tileRows is how many rows of a transposition are copied together, so that cache lines of the source are used whole.
const tileRows = 16

// run copies; parallel is par.Pool.For.
func (m *move) run(parallel func(n, grain int, fn func(worker, lo, hi int)), dst, src []byte) {
	last := len(m.dims) - 1
	// One unit of work is a run along the last axis, or a tile of runs.
	dims, block := append([]int(nil), m.dims[:last]...), 1
	if m.tile >= 0 {
		block = tileRows
		dims[m.tile] = (dims[m.tile] + block - 1) / block
	}
	units := 1
	for _, d := range dims {
		units *= d
	}
	n := m.dims[last]
	grain := max(1, 64<<10/(n*m.size*block))
	if units == 1 && m.dst[last] == 1 && m.src[last] == 1 { // one long run
		parallel(n, 256<<10, func(_, lo, hi int) { m.line(dst, src, m.to+lo, m.from+lo, hi-lo) })
		return
	}
	parallel(units, grain, func(_, lo, hi int) {
		// Where unit lo is; each unit after it is one step of a counter on from the one before.
		index := append(make([]int, 0, 8), dims...)
		dstStep, srcStep := append(make([]int, 0, 8), m.dst[:last]...), append(make([]int, 0, 8), m.src[:last]...)
		if m.tile >= 0 {
			dstStep[m.tile] *= block
			srcStep[m.tile] *= block
		}
		d, s, at := m.to, m.from, lo
		for ax := last - 1; ax >= 0; ax-- {
			index[ax] = at % dims[ax]
			at /= dims[ax]
			d += index[ax] * dstStep[ax]
			s += index[ax] * srcStep[ax]
		}
		for range hi - lo {
			if m.tile >= 0 {
				m.tileOf(dst, src, d, s, min(block, m.dims[m.tile]-index[m.tile]*block), n)
			} else {
				m.line(dst, src, d, s, n)
			}
			for ax := last - 1; ax >= 0; ax-- {
				d += dstStep[ax]
				s += srcStep[ax]
				if index[ax]++; index[ax] < dims[ax] {
					break
				}
				d -= dims[ax] * dstStep[ax]
				s -= dims[ax] * srcStep[ax]
				index[ax] = 0
			}
		}
	})
}

// line copies n elements along the last axis.
func (m *move) line(dst, src []byte, d, s, n int) {
	last := len(m.dims) - 1
	a, b := m.dst[last], m.src[last]
	if a == 1 && b == 1 {
		copy(dst[d*m.size:(d+n)*m.size], src[s*m.size:(s+n)*m.size])
		return
	}
	switch m.size {
	case 1:
		strided(dst, src, d, s, a, b, n)
	case 2:
		strided(elements[uint16](dst, 0, len(dst)/2), elements[uint16](src, 0, len(src)/2), d, s, a, b, n)
	case 4:
		strided(elements[uint32](dst, 0, len(dst)/4), elements[uint32](src, 0, len(src)/4), d, s, a, b, n)
	case 8:
		strided(elements[uint64](dst, 0, len(dst)/8), elements[uint64](src, 0, len(src)/8), d, s, a, b, n)
	}
}

func strided[T uint8 | uint16 | uint32 | uint64](dst, src []T, d, s, a, b, n int) {
	if b == 0 {
		v := src[s]
		for range n {
			dst[d] = v
			d += a
		}
		return
	}
	for range n {
		dst[d] = src[s]
		d += a
		s += b
	}
}

// tileOf copies rows × n elements, rows being neighbours in the source.
func (m *move) tileOf(dst, src []byte, d, s, rows, n int) {
	last := len(m.dims) - 1
	a, b, c := m.dst[last], m.src[last], m.dst[m.tile]
	switch m.size {
	case 1:
		turn(dst, src, d, s, a, b, c, rows, n)
	case 2:
		turn(elements[uint16](dst, 0, len(dst)/2), elements[uint16](src, 0, len(src)/2), d, s, a, b, c, rows, n)
	case 4:
		turn(elements[uint32](dst, 0, len(dst)/4), elements[uint32](src, 0, len(src)/4), d, s, a, b, c, rows, n)
	case 8:
		turn(elements[uint64](dst, 0, len(dst)/8), elements[uint64](src, 0, len(src)/8), d, s, a, b, c, rows, n)
	}
}

func turn[T uint8 | uint16 | uint32 | uint64](dst, src []T, d, s, a, b, c, rows, n int) {
	for range n {
		at := d
		for _, v := range src[s : s+rows] {
			dst[at] = v
			at += c
		}
		d += a
		s += b
	}
}

// concatenate copies the operands that their own steps have not written in place.
func (p *planner) concatenate(n *graph.Node) {
	whole, axis, at := p.place(n), n.Attr.(graph.ConcatenateAttr).Axis, 0
	for i, o := range n.In {
		if !p.parts[n][i] {
			p.copy(n.Op, piece(whole, axis, at, o.Shape[axis]), p.view(o))
		}
		at += o.Shape[axis]
	}
}

// pad fills the result and copies what stays of the operand into it.
func (p *planner) pad(n *graph.Node) {
	a := n.Attr.(graph.PadAttr)
	x, filler := p.view(n.In[0]), p.view(n.In[1])
	to := p.place(n)
	p.copy(n.Op, to, filler.broadcast(n.Shape))
	inner := to
	inner.shape, inner.strides = x.shape.Clone(), append([]int(nil), to.strides...)
	x.shape = x.shape.Clone()
	for i := range x.shape {
		step := 1 + a.Interior[i]
		// Element e lies at Low + e·step; keep those with 0 ≤ position < extent.
		lo := 0
		if a.Low[i] < 0 {
			lo = (-a.Low[i] + step - 1) / step
		}
		hi := x.shape[i]
		if room := n.Shape[i] - a.Low[i]; room < (hi-1)*step+1 {
			hi = max(0, (room+step-1)/step)
		}
		inner.offset += (a.Low[i] + lo*step) * to.strides[i]
		inner.strides[i] *= step
		x.offset += lo * x.strides[i]
		x.shape[i] = max(hi-lo, 0)
	}
	inner.shape = x.shape
	p.copy(n.Op, inner, x)
}

// upsample is a copy that reads every pixel several times.
func (p *planner) upsample(n *graph.Node) {
	x, to := p.view(n.In[0]), p.place(n)
	f := n.Attr.(graph.UpsampleAttr).Factor
	s := x.shape
	shape := tensor.Shape{s[0], s[1], f, s[2], f, s[3]}
	from := view{st: x.st, dtype: x.dtype, shape: shape, offset: x.offset,
		strides: []int{x.strides[0], x.strides[1], 0, x.strides[2], 0, x.strides[3]}}
	if dst, ok := to.reshape(shape); ok {
		p.copy(n.Op, dst, from)
	}
}

// gather copies rows of a table; indices are clamped.
func (p *planner) gather(n *graph.Node) {
	table, index := p.dense(n.In[0]), p.dense(n.In[1])
	to := p.place(n)
	if n.Bytes() == 0 {
		return
	}
	row := n.In[0].Bytes() / table.shape[0]
	last, count := int64(table.shape[0]-1), index.shape.Size()
	par := p.c.par
	p.add(n.Op, func(f *frame) error {
		dst, src := f.bytes(to), f.bytes(table)
		at := indices(index.dtype, f.bytes(index), count)
		par.For(count, max(1, 64<<10/row), func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				r := int(min(max(at(i), 0), last))
				copy(dst[i*row:(i+1)*row], src[r*row:(r+1)*row])
			}
		})
		return nil
	}, table, index, to)
}

// indices returns a reader of integers.
func indices(d tensor.DType, mem []byte, n int) func(i int) int64 {
	switch d {
	case tensor.I64:
		v := elements[int64](mem, 0, n)
		return func(i int) int64 { return v[i] }
	case tensor.I32:
		v := elements[int32](mem, 0, n)
		return func(i int) int64 { return int64(v[i]) }
	case tensor.I8:
		return func(i int) int64 { return int64(int8(mem[i])) }
	}
	return func(i int) int64 { return int64(mem[i]) }
}
