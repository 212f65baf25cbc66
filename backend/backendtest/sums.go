package backendtest

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// sumPrograms reduce, multiply matrices and convolve.
func sumPrograms() []program {
	m := newMaker(3)
	var ps []program
	for _, d := range join(floats, ints) {
		for kind := graph.ReduceSum; kind <= graph.ReduceProd; kind++ {
			ps = append(ps, reduceProgram(m, d, kind))
		}
		ps = append(ps, dotProgram(m, d), dotSizes(m, d))
	}
	ps = append(ps, mixedDot(m, tensor.BF16, tensor.F32), mixedDot(m, tensor.F16, tensor.F32), mixedDot(m, tensor.F32, tensor.BF16), mixedDot(m, tensor.I8, tensor.I32))
	for _, d := range floats {
		ps = append(ps, convProgram(m, d, tensor.Invalid))
	}
	return append(ps, convProgram(m, tensor.BF16, tensor.F32), convProgram(m, tensor.F32, tensor.F16))
}

func reduceProgram(m *maker, d tensor.DType, kind graph.Reduction) program {
	tol := sums
	if !d.IsFloat() || kind == graph.ReduceMax || kind == graph.ReduceMin {
		tol = bits
	}
	arr := func(shape ...int) *tensor.Array {
		switch {
		case kind == graph.ReduceProd && d.IsFloat():
			return m.between(d, 0.9, 1.1, shape...)
		case kind == graph.ReduceProd:
			return m.between(d, 1, 3, shape...)
		}
		return m.normal(d, shape...)
	}
	in := []*tensor.Array{arr(129), arr(17, 65), arr(3, 16, 5), arr(2, 3, 15, 4), arr(0, 7), arr(63, 1), arr()}
	axes := [][][]int{{{0}, {}}, {{0}, {1}, {0, 1}}, {{0}, {1}, {2}, {0, 2}, {1, 2}, {2, 1}}, {{1, 2}, {0, 3}, {1, 3}, {3}}, {{1}}, {{1}, {0}}, {{}}}
	if d.IsFloat() && (kind == graph.ReduceMax || kind == graph.ReduceMin) {
		in = append(in, special(d)) // NaN wins
		axes = append(axes, [][]int{{0}})
	}
	return program{fmt.Sprintf("reduce %s %s", kind, d), in, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i, x := range in {
			for _, a := range axes[i] {
				out = append(out, b.Make(graph.Reduce, graph.ReduceAttr{Kind: kind, Axes: a}, x))
			}
		}
		if kind == graph.ReduceSum || kind == graph.ReduceProd {
			out = append(out, b.Make(graph.Reduce, graph.ReduceAttr{Kind: kind, Axes: []int{0}}, in[4]))
		}
		return out
	}, tol}
}

func sumTolerance(d tensor.DType) tolerance {
	if d.IsFloat() {
		return sums
	}
	return bits
}

// dotProgram contracts in every layout.
func dotProgram(m *maker, d tensor.DType) program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	in := []*tensor.Array{
		arr(5, 17), arr(17, 16), arr(16, 17), arr(2, 3, 17), arr(2, 17, 4), arr(3, 5, 2, 17), arr(3, 7, 2, 17), arr(17), arr(0, 17), arr(5, 0), arr(0, 3),
		arr(2, 3, 4, 5), arr(4, 3, 6),
	}
	return program{"dot_general " + d.String(), in, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		dot := func(l, r *graph.Node, lb, rb, lc, rc []int) *graph.Node {
			return b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsBatch: lb, RhsBatch: rb, LhsContract: lc, RhsContract: rc}, l, r)
		}
		i := func(v ...int) []int { return v }
		return []*graph.Node{
			dot(in[0], in[1], nil, nil, i(1), i(0)),           // A·B
			dot(in[0], in[2], nil, nil, i(1), i(1)),           // A·Bᵀ
			dot(in[1], in[0], nil, nil, i(0), i(1)),           // Aᵀ·Bᵀ
			dot(in[1], in[1], nil, nil, i(0), i(0)),           // Aᵀ·B
			dot(in[3], in[4], i(0), i(0), i(2), i(1)),         // batch
			dot(in[3], in[1], nil, nil, i(2), i(0)),           // several free axes
			dot(in[5], in[6], i(0, 2), i(0, 2), i(3), i(3)),   // attention's q·kᵀ, token-major
			dot(in[5], in[6], i(2), i(2), i(0, 3), i(0, 3)),   // two contracted axes
			dot(in[7], in[7], nil, nil, i(0), i(0)),           // a scalar
			dot(in[7], in[1], nil, nil, i(0), i(0)),           // a vector
			dot(in[7], in[7], nil, nil, nil, nil),             // outer product
			dot(in[8], in[1], nil, nil, i(1), i(0)),           // no rows
			dot(in[9], in[10], nil, nil, i(1), i(0)),          // nothing to sum: zeros
			dot(in[11], in[12], i(1), i(1), i(2), i(0)),       // batch in the middle
			dot(in[11], in[12], nil, nil, i(2, 1), i(0, 1)),   // contraction in another order
			dot(in[11], in[11], i(0, 1), i(0, 1), i(2), i(2)), // the same operand twice
			dot(in[11], in[11], i(3, 0), i(3, 0), i(1), i(1)), // odd batch order
		}
	}, sumTolerance(d)}
}

// dotSizes multiplies at block edges.
func dotSizes(m *maker, d tensor.DType) program {
	p := program{name: "dot_general sizes " + d.String(), tol: sumTolerance(d)}
	for _, s := range [][3]int{{1, 1, 1}, {1, 129, 64}, {2, 3, 15}, {15, 16, 17}, {16, 17, 63}, {17, 15, 65}, {63, 64, 64}, {64, 65, 127}, {65, 63, 129}, {127, 33, 16}, {129, 129, 3}, {3, 2, 1}, {33, 48, 400}} {
		p.in = append(p.in, m.normal(d, s[0], s[2]), m.normal(d, s[1], s[2]), m.normal(d, s[0], s[2]), m.normal(d, s[2], s[1]))
	}
	p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i := 0; i < len(in); i += 4 {
			out = append(out,
				b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{1}}, in[i], in[i+1]),
				b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}, in[i+2], in[i+3]))
		}
		return out
	}
	return p
}

// mixedDot has a result of another dtype than the operands.
func mixedDot(m *maker, d, out tensor.DType) program {
	in := []*tensor.Array{m.normal(d, 17, 65), m.normal(d, 33, 65), m.normal(d, 2, 3, 16), m.normal(d, 2, 5, 16)}
	return program{fmt.Sprintf("dot_general %s to %s", d, out), in, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		return []*graph.Node{
			b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{1}, Out: out}, in[0], in[1]),
			b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{2}, Out: out}, in[2], in[3]),
		}
	}, sumTolerance(d)}
}

func convProgram(m *maker, d, out tensor.DType) program {
	p := program{name: "convolution " + d.String(), tol: sums}
	if out != tensor.Invalid {
		p.name += " to " + out.String()
	}
	var attrs []graph.ConvolutionAttr
	add := func(x, w tensor.Shape, a graph.ConvolutionAttr) {
		p.in = append(p.in, m.normal(d, x...), m.normal(d, w...), m.normal(d, w[0]))
		a.Out = out
		attrs = append(attrs, a)
	}
	one := [2]int{1, 1}
	same := graph.ConvolutionAttr{Stride: one, Low: one, High: one, Bias: true}
	add(tensor.Shape{1, 5, 7, 3}, tensor.Shape{4, 3, 3, 3}, same)
	add(tensor.Shape{2, 8, 9, 16}, tensor.Shape{17, 16, 3, 3}, same)
	add(tensor.Shape{1, 3, 3, 65}, tensor.Shape{33, 65, 3, 3}, same)
	add(tensor.Shape{1, 9, 8, 17}, tensor.Shape{16, 17, 1, 1}, graph.ConvolutionAttr{Stride: one})
	add(tensor.Shape{2, 9, 8, 5}, tensor.Shape{6, 5, 3, 3}, graph.ConvolutionAttr{Stride: [2]int{2, 2}, High: one, Bias: true}) // the encoder's downsampling
	add(tensor.Shape{1, 7, 11, 4}, tensor.Shape{3, 4, 2, 4}, graph.ConvolutionAttr{Stride: [2]int{1, 3}, Low: [2]int{0, 2}, High: [2]int{1, 0}})
	add(tensor.Shape{1, 16, 16, 4}, tensor.Shape{8, 4, 2, 2}, graph.ConvolutionAttr{Stride: [2]int{2, 2}, Bias: true}) // patches
	add(tensor.Shape{0, 4, 4, 3}, tensor.Shape{2, 3, 3, 3}, same)
	add(tensor.Shape{1, 1, 1, 1}, tensor.Shape{1, 1, 1, 1}, graph.ConvolutionAttr{Stride: one, Bias: true})
	p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i, a := range attrs {
			n := 2
			if a.Bias {
				n = 3
			}
			out = append(out, b.Make(graph.Convolution, a, in[3*i:3*i+n]...))
		}
		return out
	}
	return p
}
