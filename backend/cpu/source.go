package cpu

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/cpu/conv"
	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/graph"
)

// source is a producer whose results go through a cluster, one segment of a row at a time.
type source struct {
	uses   []view                                // what it reads
	byRow  bool                                  // a row of uses[0] is read before the same row is written
	weight *storage                              // among uses: taken packed, where it is
	run    func(c *cluster) func(f *frame) error // binds it to its cluster
}

// source plans the kernel of n.
func (p *planner) source(n *graph.Node) source {
	switch a := n.Attr.(type) {
	case graph.LinearAttr:
		return p.product(n, graph.DotGeneralAttr{LhsContract: []int{len(n.In[0].Shape) - 1}, RhsContract: []int{1}})
	case graph.QuantizedLinearAttr:
		return p.product(n, graph.DotGeneralAttr{LhsContract: []int{len(n.In[0].Shape) - 1}, RhsContract: []int{1}})
	case graph.DotGeneralAttr:
		return p.product(n, a)
	case graph.ConvolutionAttr:
		return p.convolution(n, a)
	case graph.UpsampleConvAttr:
		return p.convolution(n, a.Convolution())
	case graph.GroupNormAttr:
		return p.groupNorm(n, a)
	case graph.RopeAttr:
		return p.rope(n, a)
	}
	return p.rowwise(n)
}

// matrix is an operand of a product: batches of rows × cols elements.
type matrix struct {
	view       view
	batch      rows // where each batch starts
	rows, cols int
	stride     int  // from row to row
	turned     bool // stored cols × rows
}

// matrixOf brings v into the order batch, free, contracted. Where its strides don't allow that, it is copied.
func (p *planner) matrixOf(n *graph.Node, batch, contract []int, mayTurn bool) matrix {
	v := p.view(n)
	var free []int
	used := make([]bool, len(v.shape))
	for _, ax := range append(append([]int(nil), batch...), contract...) {
		used[ax] = true
	}
	for ax := range v.shape {
		if !used[ax] {
			free = append(free, ax)
		}
	}
	perm := append(append(append([]int(nil), batch...), free...), contract...)
	t := v
	t.shape, t.strides = make([]int, len(perm)), make([]int, len(perm))
	for i, ax := range perm {
		t.shape[i], t.strides[i] = v.shape[ax], v.strides[ax]
	}
	if m, ok := t.matrix(len(batch), len(free), mayTurn); ok {
		return m
	}
	m, _ := p.copied(t, n.Op).matrix(len(batch), len(free), false)
	return m
}

// matrix views v, whose first axes are nb batch axes and nf free ones, as batches of matrices.
func (v view) matrix(nb, nf int, mayTurn bool) (matrix, bool) {
	m := matrix{view: v}
	dims, strides := mergeAxes(v.shape[:nb], v.strides[:nb])
	m.batch = rows{dims: dims, strides: strides[0], n: 1, offset: v.offset}
	for _, d := range dims {
		m.batch.n *= d
	}
	free, fs := mergeAxes(v.shape[nb:nb+nf], v.strides[nb:nb+nf])
	con, cs := mergeAxes(v.shape[nb+nf:], v.strides[nb+nf:])
	if len(free) > 1 || len(con) > 1 {
		return m, false
	}
	m.rows, m.cols = free[0], con[0]
	if v.shape.Size() == 0 {
		m.stride = max(m.cols, 1)
		return m, true
	}
	f, c := fs[0][0], cs[0][0]
	switch {
	case (m.cols == 1 || c == 1) && (m.rows == 1 || f >= m.cols):
		m.stride = max(f, m.cols)
		return m, true
	case mayTurn && (m.rows == 1 || f == 1) && (m.cols == 1 || c >= m.rows):
		m.stride, m.turned = max(c, m.rows), true
		return m, true
	}
	return m, false
}

func (m *matrix) operand(f *frame, i int) gemm.Operand {
	return gemm.Operand{DType: m.view.dtype, Data: f.mem[m.view.st.slot][m.batch.at(i)*m.view.dtype.Size():], Stride: m.stride}
}

// product plans linear, quantized_linear and dot_general.
func (p *planner) product(n *graph.Node, a graph.DotGeneralAttr) source {
	l := p.matrixOf(n.In[0], a.LhsBatch, a.LhsContract, false)
	r := p.matrixOf(n.In[1], a.RhsBatch, a.RhsContract, true)
	client := p.c
	weight := r.weight(l.view.dtype)
	uses := []view{l.view, r.view}
	var scale view // of an int8 weight
	if n.Op == graph.QuantizedLinear {
		scale = p.dense(n.In[2])
		uses = append(uses, scale)
	}
	run := func(c *cluster) func(f *frame) error {
		var current *frame
		problem := func(i int) gemm.Problem {
			g := gemm.Problem{M: l.rows, N: r.rows, K: l.cols, A: l.operand(current, i)}
			if weight != nil && current.packed[weight.slot] != nil {
				g.Packed = current.packed[weight.slot]
			} else {
				g.B, g.RowB = r.operand(current, i), r.turned
			}
			if scale.st != nil {
				g.Scale = elements[float32](current.mem[scale.st.slot], scale.offset, r.rows)
			}
			return g
		}
		size := l.rows * r.rows
		emit := func(worker, i, row, col int, acc []float32) {
			c.eval(current, &client.scratch[worker], i*size+row*r.rows+col, len(acc), acc)
		}
		first := func(worker, row, col int, acc []float32) { emit(worker, 0, row, col, acc) }
		return func(f *frame) error {
			current = f
			if l.batch.n == 1 {
				g := problem(0)
				return gemm.Run(client.par, client.level, &g, first)
			}
			return gemm.RunBatch(client.par, client.level, l.batch.n, problem, emit)
		}
	}
	return source{uses: uses, weight: weight, run: run}
}

// convolution plans an implicit matrix product over patches.
func (p *planner) convolution(n *graph.Node, a graph.ConvolutionAttr) source {
	x, w := p.dense(n.In[0]), p.dense(n.In[1])
	client := p.c
	problem := conv.Problem{
		N: x.shape[0], H: x.shape[1], W: x.shape[2], C: x.shape[3], O: w.shape[0], KH: w.shape[2], KW: w.shape[3],
		StrideY: a.Stride[0], StrideX: a.Stride[1], Pad: conv.Pad{Top: a.Low[0], Bottom: a.High[0], Left: a.Low[1], Right: a.High[1]},
		X: gemm.Operand{DType: x.dtype}, Weight: gemm.Operand{DType: w.dtype},
	}
	var packed *storage
	if n.Op == graph.Convolution && w.st.kind == input && w.whole() && problem.Packs(client.level) {
		taps := problem.KH * problem.KW
		packed = w.st.packedAs(weight{problem.O, problem.C * taps, taps, x.dtype})
	}
	run := func(c *cluster) func(f *frame) error {
		var current *frame
		emit := func(worker, row, col int, acc []float32) {
			c.eval(current, &client.scratch[worker], row*problem.O+col, len(acc), acc)
		}
		return func(f *frame) error {
			current = f
			q := problem
			q.X.Data = f.bytes(x)
			if packed != nil && f.packed[packed.slot] != nil {
				q.Packed = f.packed[packed.slot]
			} else {
				q.Weight.Data = f.bytes(w)
			}
			if n.Op == graph.UpsampleConv {
				return conv.RunUpsampled(client.par, client.level, &q, emit)
			}
			if oh, ow := q.OutSize(); oh != n.Shape[1] || ow != n.Shape[2] {
				return fmt.Errorf("kernel gives %d×%d, expected %d×%d", oh, ow, n.Shape[1], n.Shape[2])
			}
			return conv.Run(client.par, client.level, &q, emit)
		}
	}
	return source{uses: []view{x, w}, weight: packed, run: run}
}
