package cpu

import (
	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// chunk is how many elements a cluster takes through all of its operations before it goes on: a few registers of this
// length stay in the first cache.
const chunk = 1024

// cluster is a fused sequence of elementwise operations over one iteration space. It is evaluated on any segment of
// consecutive elements, on its own or as the epilogue of a producer that hands segments over. Values are float32 in
// registers of chunk elements; after every operation of a half dtype they are rounded to it, so that the bits are those
// of the operations one by one.
type cluster struct {
	fn     *vec.Funcs
	size   int   // elements of the iteration space
	dims   []int // its axes, merged as far as all operands allow
	loads  []access
	stores []access
	ops    []micro
	regs   int // registers needed; register 0 holds the producer's segment if there is a producer
	fed    bool
	direct int  // the store that the last operation writes itself, or -1
	bare   bool // nothing but the producer's own value, its bias and activation included, stored densely

	// whole, if there, is all that the cluster does, on the producer's values and bfloat16 words in memory: its operands in
	// order.
	whole    func(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16)
	operands []int // loads
}

// access is an operand or a result in memory.
type access struct {
	view    view
	strides []int // per merged axis
	reg     int16 // stores: the register with the value
	period  int   // the only axis repeats this many elements; 0 for an ordinary operand
}

// micro is one operation on registers.
type micro struct {
	code    code
	op      graph.Op         // codeBinary
	act     graph.Activation // the one that this operation ends, where an epilogue knows it
	dst     int16
	x, y, z int16
	load    int // codeLoad: which operand
	imm     float32
	dtype   tensor.DType // rounding of the result: F32 for none
	raw     bool         // the result is left unrounded: only stores read it, and they round
	f1      func(f *vec.Funcs, dst, x []float32)
	f2      func(f *vec.Funcs, dst, x, y []float32)
	fs      func(f *vec.Funcs, dst, x []float32, s float32)
}

type code uint8

const (
	codeLoad   code = iota // dst = operand
	codeImm                // dst = imm, in its first element: whoever needs more spreads it
	codeUnary              // dst = f1(x)
	codeBinary             // dst = f2(x, y)
	codeScalar             // dst = fs(x, s), s being the first element of register y
	codeSelect             // dst = x ≠ 0 ? y : z
	codeModulate
	codeRound // dst = x, rounded
)

// registers is the scratch memory of one worker.
type registers struct {
	mem []float32
	reg [][]float32 // what each register is at the moment: its memory, an operand, the producer's segment
	row []float32   // for producers
	alt []float32
}

// room returns n floats in *s, which grows as needed.
func room(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = elements[float32](heapBytes(4*n), 0, n)
	}
	return (*s)[:n]
}

// eval computes the n elements from flat on; acc, if the cluster is fed, holds the producer's values and may be changed.
func (c *cluster) eval(f *frame, r *registers, flat, n int, acc []float32) {
	if len(r.mem) < c.regs*chunk {
		r.mem = elements[float32](heapBytes(4*c.regs*chunk), 0, c.regs*chunk)
	}
	if len(r.reg) < c.regs {
		r.reg = make([][]float32, c.regs)
	}
	inner := c.dims[len(c.dims)-1]
	if c.whole != nil {
		c.evalWhole(f, flat, n, inner, acc)
		return
	}
	for done := 0; done < n; {
		at := flat + done
		i := at % inner
		m := min(n-done, inner-i, chunk)
		if c.fed {
			r.reg[0] = acc[done : done+m]
		}
		c.piece(f, r, at/inner, i, m)
		done += m
	}
}

// memory returns where a bare cluster's n elements from flat on go.
func (c *cluster) memory(f *frame, flat, n int) []byte {
	v := &c.stores[0].view
	size := v.dtype.Size()
	return f.mem[v.st.slot][(v.offset+flat)*size:][:n*size]
}

// evalWhole is eval of a cluster that one kernel does.
func (c *cluster) evalWhole(f *frame, flat, n, inner int, acc []float32) {
	for done := 0; done < n; {
		row, i := (flat+done)/inner, (flat+done)%inner
		m := min(n-done, inner-i)
		for _, l := range c.operands {
			if p := c.loads[l].period; p > 0 {
				m = min(m, p-i%p)
			}
		}
		var x [3][]uint16
		for k, l := range c.operands {
			a := &c.loads[l]
			x[k] = elements[uint16](f.mem[a.view.st.slot], c.place(a, row, i), m)
		}
		s := &c.stores[0]
		var sums []float32
		if c.fed {
			sums = acc[done:][:m]
		}
		c.whole(c.fn, elements[uint16](f.mem[s.view.st.slot], c.place(s, row, i), m), sums, x)
		done += m
	}
}

// place returns the offset of element i of the inner axis, in the given row of the other axes.
func (c *cluster) place(a *access, row, i int) int {
	if a.period > 0 {
		i %= a.period
	}
	last := len(c.dims) - 1
	off := a.view.offset + i*a.strides[last]
	for ax := last - 1; ax > 0; ax-- {
		d := c.dims[ax]
		off += row % d * a.strides[ax]
		row /= d
	}
	if last > 0 {
		off += row * a.strides[0]
	}
	return off
}

func (c *cluster) piece(f *frame, r *registers, row, i, m int) {
	last := len(c.dims) - 1
	for k := range c.ops {
		op := &c.ops[k]
		dst := r.mem[int(op.dst)*chunk:][:m]
		if c.direct >= 0 && k == len(c.ops)-1 {
			s := &c.stores[c.direct]
			dst = elements[float32](f.mem[s.view.st.slot], c.place(s, row, i), m)
		}
		switch op.code {
		case codeLoad:
			a := &c.loads[op.load]
			if a.period > 0 {
				dst = a.loadPeriod(c.fn, f.mem[a.view.st.slot], i, dst)
				break
			}
			dst = a.load(c.fn, f.mem[a.view.st.slot], c.place(a, row, i), a.strides[last], dst)
		case codeImm:
			dst[0] = op.imm
		case codeUnary:
			op.f1(c.fn, dst, r.reg[op.x])
		case codeBinary:
			op.f2(c.fn, dst, r.reg[op.x], r.reg[op.y])
		case codeScalar:
			op.fs(c.fn, dst, r.reg[op.x], r.reg[op.y][0])
		case codeSelect:
			c.fn.Select(dst, r.reg[op.x], r.reg[op.y], r.reg[op.z])
		case codeModulate:
			c.fn.Modulate(dst, r.reg[op.x], r.reg[op.y], r.reg[op.z], op.dtype)
		case codeRound:
			round(c.fn, op.dtype, dst, r.reg[op.x])
		}
		if op.code >= codeUnary && op.code < codeRound && !op.raw {
			switch op.dtype {
			case tensor.BF16:
				c.fn.RoundBF16(dst, dst)
			case tensor.F16:
				c.fn.RoundF16(dst, dst)
			}
		}
		r.reg[op.dst] = dst
	}
	for k := range c.stores {
		if k != c.direct {
			s := &c.stores[k]
			s.store(c.fn, f.mem[s.view.st.slot], c.place(s, row, i), s.strides[last], r.reg[s.reg][:m])
		}
	}
}

func round(fn *vec.Funcs, d tensor.DType, dst, x []float32) {
	switch d {
	case tensor.BF16:
		fn.RoundBF16(dst, x)
	case tensor.F16:
		fn.RoundF16(dst, x)
	default:
		copy(dst, x)
	}
}
