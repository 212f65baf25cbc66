package cpu

import (
	"sync"

	"github.com/gesso-go/gesso/backend/cpu/conv"
	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/tensor"
)

// weight says how products use an input whose whole is their right operand: N rows of K, for rows of type a. A
// convolution's, (N, K/taps, taps), is packed with the taps before the channels.
type weight struct {
	n, k, taps int
	a          tensor.DType
}

// parameter is what a value has more when it is a model's parameter. A program that takes it as a weight packs it, for all
// programs to come, and lets go of the value as it was uploaded: the first one, if there is time for it (see packing). A
// program that needs the value itself gets it from the mapped file, or unpacked.
type parameter struct {
	release  func() // the memory is mapped for good
	released bool   // and was not needed since

	mu     sync.Mutex
	packed *gemm.Packed
	as     weight // what it was packed as
	mem    *block // of packed
}

// weight returns the input that m is the whole of, if products with rows of type a can take it packed: in rows, and in no
// more memory than it has.
func (m *matrix) weight(a tensor.DType) *storage {
	st := m.view.st
	if st.kind != input || !m.view.whole() || m.turned || m.batch.n != 1 || m.rows*m.cols != m.view.shape.Size() || m.stride != m.cols {
		return nil
	}
	return st.packedAs(weight{m.rows, m.cols, 1, a})
}

// packedAs returns st if its first user takes it as w too: it is packed in one way.
func (st *storage) packedAs(w weight) *storage {
	if st.weight == nil {
		st.weight = &w
	}
	if *st.weight != w {
		return nil
	}
	return st
}

// findPlain marks the inputs whose value itself is needed.
func (p *program) findPlain() {
	for i := range p.steps {
		s := &p.steps[i]
		uses := make(map[*storage]int)
		for _, st := range s.uses {
			uses[st]++
		}
		if s.weight != nil {
			uses[s.weight]--
		}
		for st, n := range uses {
			st.plain = st.plain || n > 0
		}
	}
	for _, r := range p.results {
		r.st.plain = true
	}
}

// bring returns an argument in the forms that a program needs: its memory, packed, or both. It is for the stream's
// goroutine.
func (v *value) bring(st *storage) ([]byte, *gemm.Packed, error) {
	p := v.param
	if p == nil {
		return v.block.mem, nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var q *gemm.Packed
	if w := st.weight; w != nil {
		switch {
		case p.packed != nil:
		case v.typ.DType == tensor.I8: // products would pack it each time
			p.pack(v, w)
		default:
			v.c.packing.pack(func() { p.pack(v, w) })
		}
		if p.packed != nil && p.as == *w {
			q = p.packed
		}
	}
	switch {
	case st.plain || q == nil:
		if err := p.restore(v); err != nil {
			return nil, nil, err
		}
		p.released = false
	default:
		p.letGo(v)
	}
	if v.block == nil {
		return nil, q, nil
	}
	return v.block.mem, q, nil
}

// pack packs v's value. It does nothing where packing takes more memory than the value, beyond the rest of a panel, or
// where there is none.
func (p *parameter) pack(v *value, w *weight) {
	size := w.n * w.k * v.typ.DType.Size()
	n, err := gemm.PackedBytes(v.c.level, v.typ.DType, w.n, w.k, w.a)
	if err != nil || n == 0 || n > size+size/8+64*w.k*v.typ.DType.Size() {
		return
	}
	if p.restore(v) != nil {
		return
	}
	mem, err := v.c.mem.keep(n)
	if err != nil {
		return
	}
	stored := gemm.Operand{DType: v.typ.DType, Data: v.block.mem}
	var q *gemm.Packed
	if w.taps == 1 {
		q, err = gemm.PackBInto(mem.mem, v.c.par, v.c.level, stored, w.n, w.k, false, w.a)
	} else {
		q, err = conv.PackWeight(mem.mem, v.c.par, v.c.level, stored, w.n, w.k/w.taps, w.taps, w.a)
	}
	mem.refs.Add(1)
	if err != nil {
		v.c.mem.release(mem)
		return
	}
	p.packed, p.as, p.mem = q, *w, mem
}

// unpack writes the packed value as it was.
func (p *parameter) unpack(dst []byte) error {
	if p.as.taps == 1 {
		return p.packed.Unpack(dst)
	}
	return conv.UnpackWeight(dst, p.packed, p.as.n, p.as.k/p.as.taps, p.as.taps)
}

// letGo gives up the memory of a packed value.
func (p *parameter) letGo(v *value) {
	b := v.block
	if b == nil || p.released {
		return
	}
	if p.release != nil {
		p.release()
		p.released = true
	}
	if !(b.host && p.release != nil) && b.refs.Load() == 1 && p.packed.Unpacks() { // nobody else has it
		v.c.mem.release(b)
		v.block = nil
		if b.host {
			v.c.mem.drop(len(b.mem))
		}
	}
}

// restore makes sure that v has its memory.
func (p *parameter) restore(v *value) error {
	if v.block != nil {
		return nil
	}
	b, err := v.c.mem.keep(v.typ.Bytes())
	if err != nil {
		return err
	}
	b.refs.Add(1)
	if err := p.unpack(b.mem); err != nil {
		v.c.mem.release(b)
		return err
	}
	v.block = b
	return nil
}

// read copies the value to dst.
func (v *value) read(dst []byte) error {
	if p := v.param; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if v.block == nil {
			return p.unpack(dst)
		}
	}
	copy(dst, v.block.mem)
	return nil
}

func (p *parameter) free(mem *pool) {
	if p.mem != nil {
		mem.release(p.mem)
		p.mem, p.packed = nil, nil
	}
}
