package cpu

import (
	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// rowsOf returns n's value as rows of its last axis, copied if its elements are not neighbours.
func (p *planner) rowsOf(n *graph.Node) (view, rows) {
	v := p.view(n)
	r, ok := v.rows()
	if !ok {
		v = p.dense(n)
		r, _ = v.rows()
	}
	return v, r
}

// floats returns n elements from offset on as float32: the memory itself, or converted into buf.
func floats(fn *vec.Funcs, v *view, mem []byte, offset, n int, buf *[]float32) []float32 {
	if v.dtype == tensor.F32 {
		return elements[float32](mem, offset, n)
	}
	out := room(buf, n)
	widen(fn, v.dtype, mem, offset, out)
	return out
}

// rowGrain is how many of n rows of the given width a worker takes at once: so many that taking them costs nothing, and so
// few that the workers end together.
func rowGrain(n, width int) int {
	return max(1, 8*chunk/max(width, 1), min(n/256, 64*chunk/max(width, 1)))
}

// rowKernel computes dst, one row, from x; at is the row's number.
type rowKernel func(f *frame, r *registers, dst, x []float32, at int)

// byRows plans a kernel that makes each row of the result from the same row of its first operand.
func (p *planner) byRows(x view, r rows, others []view, begin func(f *frame), kernel rowKernel) source {
	client := p.c
	some := 1 // rows that are converted and handed on together
	if len(r.dims) == 1 && r.strides[0] == r.width {
		some = max(1, chunk/max(r.width, 1))
	}
	run := func(c *cluster) func(f *frame) error {
		var current *frame
		piece := func(worker, lo, hi int) {
			s := &client.scratch[worker]
			mem := current.mem[x.st.slot]
			for i := lo; i < hi; i += some {
				n := min(some, hi-i)
				in := floats(client.vec, &x, mem, r.at(i), n*r.width, &s.alt)
				out := room(&s.row, n*r.width)
				for k := range n {
					kernel(current, s, out[k*r.width:][:r.width], in[k*r.width:][:r.width], i+k)
				}
				c.eval(current, s, i*r.width, n*r.width, out)
			}
		}
		return func(f *frame) error {
			current = f
			if begin != nil {
				begin(f)
			}
			client.par.For(r.n, rowGrain(r.n, r.width), piece)
			return nil
		}
	}
	return source{uses: append([]view{x}, others...), byRow: true, run: run}
}

// vectorOf returns a reader of a vector operand as float32. It converts half types once per run.
func (p *planner) vectorOf(n *graph.Node) (v view, load func(f *frame) []float32) {
	v = p.dense(n)
	var buf []float32
	return v, func(f *frame) []float32 {
		return floats(p.c.vec, &v, f.mem[v.st.slot], v.offset, v.shape.Size(), &buf)
	}
}

// rowwise plans softmax, rms_norm and layer_norm.
func (p *planner) rowwise(n *graph.Node) source {
	fn := p.c.vec
	x, r := p.rowsOf(n.In[0])
	var others []view
	var loads []func(f *frame) []float32
	for _, o := range n.In[1:] {
		v, load := p.vectorOf(o)
		others, loads = append(others, v), append(loads, load)
	}
	vectors := make([][]float32, 2) // weight and bias, nil if not given
	begin := func(f *frame) {
		for i, load := range loads {
			vectors[i] = load(f)
		}
	}
	var kernel rowKernel
	switch a := n.Attr.(type) {
	case graph.RMSNormAttr:
		mid := tensor.F32
		if a.RoundFirst {
			mid = n.DType
		}
		kernel = func(_ *frame, _ *registers, dst, x []float32, _ int) {
			fn.RMSNorm(dst, x, vectors[0], float32(a.Eps), mid)
		}
	case graph.LayerNormAttr:
		kernel = func(_ *frame, _ *registers, dst, x []float32, _ int) {
			fn.LayerNorm(dst, x, vectors[0], vectors[1], float32(a.Eps))
		}
	default:
		kernel = func(_ *frame, _ *registers, dst, x []float32, _ int) { fn.Softmax(dst, x) }
	}
	return p.byRows(x, r, others, begin, kernel)
}

// rope plans the rotation: row (b, i, h) of x meets row i of the tables.
func (p *planner) rope(n *graph.Node, a graph.RopeAttr) source {
	fn := p.c.vec
	x, r := p.rowsOf(n.In[0])
	cos, sin := p.dense(n.In[1]), p.dense(n.In[2])
	tokens, heads, d := n.Shape[1], n.Shape[2], n.Shape[3]
	rotate := fn.Rope
	if a.HalfSplit {
		rotate = fn.RopeHalf
	}
	kernel := func(f *frame, _ *registers, dst, x []float32, at int) {
		i := at / heads % tokens * d
		rotate(dst, x, elements[float32](f.mem[cos.st.slot], cos.offset+i, d), elements[float32](f.mem[sin.st.slot], sin.offset+i, d))
	}
	return p.byRows(x, r, []view{cos, sin}, nil, kernel)
}
