package backendtest

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// lines is a Builder with short names for writing programs of many operations.
type lines struct{ *graph.Builder }

func (l lines) op(op graph.Op, in ...*graph.Node) *graph.Node { return l.Make(op, nil, in...) }
func (l lines) add(x, y *graph.Node) *graph.Node              { return l.op(graph.Add, x, y) }
func (l lines) mul(x, y *graph.Node) *graph.Node              { return l.op(graph.Mul, x, y) }
func (l lines) linear(x, w, bias *graph.Node, act graph.Activation) *graph.Node {
	return l.Make(graph.Linear, graph.LinearAttr{Bias: true, Act: act}, x, w, bias)
}
func (l lines) slice(x *graph.Node, axis, from, to int) *graph.Node {
	a := graph.SliceAttr{Start: make([]int, len(x.Shape)), Limit: x.Shape.Clone(), Stride: make([]int, len(x.Shape))}
	for i := range a.Stride {
		a.Stride[i] = 1
	}
	a.Start[axis], a.Limit[axis] = from, to
	return l.Make(graph.Slice, a, x)
}
func (l lines) concat(axis int, x ...*graph.Node) *graph.Node {
	return l.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: axis}, x...)
}
func (l lines) conv(x, w, bias *graph.Node) *graph.Node {
	p := w.Shape[2] / 2
	return l.Make(graph.Convolution, graph.ConvolutionAttr{Stride: [2]int{1, 1}, Low: [2]int{p, p}, High: [2]int{p, p}, Bias: true}, x, w, bias)
}

// multiPrograms are what planners get wrong: chains, diamonds, aliases, and the blocks of real networks.
func multiPrograms() []program {
	m := newMaker(5)
	var ps []program
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		ps = append(ps, chainPrograms(m, d)...)
		ps = append(ps, aliasPrograms(m, d)...)
		ps = append(ps, transformerPrograms(m, d)...)
		ps = append(ps, resnetProgram(m, d), movementProgram(m, d))
	}
	return ps
}

func chainPrograms(m *maker, d tensor.DType) []program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	name := func(s string) string { return s + " " + d.String() }
	var ps []program
	for _, n := range []int{1, 17, 129, 5000} {
		ps = append(ps, program{name(fmt.Sprintf("chain of %d", n)), []*tensor.Array{arr(n), arr(n), arr()}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			v := in[0]
			for i := range 6 {
				v = l.add(l.mul(v, in[1]), in[2])
				v = l.op([]graph.Op{graph.Tanh, graph.Logistic, graph.Neg}[i%3], v)
			}
			return []*graph.Node{v}
		}, sums})
	}
	ps = append(ps,
		program{name("diamond"), []*tensor.Array{arr(7, 65), arr(65)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			x := l.op(graph.Silu, in[0])
			left, right := l.mul(x, in[1]), l.add(x, in[1])
			top := l.op(graph.Sub, left, right)
			return []*graph.Node{l.add(top, x), x, left} // intermediates are outputs too
		}, sums},
		program{name("broadcast operands"), []*tensor.Array{arr(2, 17, 33), arr(2, 1, 33), arr(33), arr(2, 17, 1), arr(), arr(1, 17, 1), arr(2, 1, 1)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				l := lines{b}
				v := in[0]
				for _, o := range in[1:] {
					v = l.add(l.mul(v, o), o)
				}
				small := l.op(graph.Tanh, l.add(in[1], in[6]))         // (2, 1, 33), used broadcast
				v = l.Make(graph.Modulate, nil, v, small, in[2])       // (2, 17, 33)
				grown := l.mul(l.op(graph.Exp, in[3]), in[2])          // (2, 17, 33) from smaller operands
				return []*graph.Node{l.op(graph.Max, v, grown), small} // both
			}, sums},
		program{name("mixed dtypes"), []*tensor.Array{arr(9, 65), m.normal(tensor.F32, 9, 65), m.normal(tensor.Bool, 9, 1), m.between(tensor.I32, -5, 5, 65)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				l := lines{b}
				wide := l.mul(b.Convert(in[0], tensor.F32), in[1])
				half := b.Convert(wide, tensor.BF16)
				other := b.Convert(l.op(graph.Sqrt, l.op(graph.Abs, wide)), tensor.F16)
				positive := l.Make(graph.Compare, graph.CompareAttr{Direction: graph.GT}, wide, b.Scalar(tensor.F32, 0))
				both := l.op(graph.And, positive, in[2])
				v := l.op(graph.Select, both, b.Convert(half, d), b.Convert(other, d))
				index := b.Convert(in[3], d)
				return []*graph.Node{l.add(v, index), both, half, b.Convert(both, tensor.F32), b.Convert(v, tensor.I32)}
			}, sums},
		program{name("constants in a chain"), []*tensor.Array{arr(3, 129)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			row := graph.NewConstant(newMaker(6).normal(d, 129))
			v := l.add(l.mul(in[0], b.Scalar(d, 0.125)), row)
			return []*graph.Node{l.op(graph.Pow, l.op(graph.Abs, v), b.Scalar(d, 2)), l.op(graph.Sub, b.Scalar(d, 1), v)}
		}, sums},
		program{name("softmax by hand"), []*tensor.Array{arr(17, 65)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			x := b.Convert(in[0], tensor.F32)
			top := b.Reshape(l.Make(graph.Reduce, graph.ReduceAttr{Kind: graph.ReduceMax, Axes: []int{1}}, x), 17, 1)
			e := l.op(graph.Exp, l.op(graph.Sub, x, top))
			sum := b.Reshape(l.Make(graph.Reduce, graph.ReduceAttr{Kind: graph.ReduceSum, Axes: []int{1}}, e), 17, 1)
			return []*graph.Node{b.Convert(l.op(graph.Div, e, sum), d), sum}
		}, sums},
	)
	return ps
}

func aliasPrograms(m *maker, d tensor.DType) []program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	name := func(s string) string { return s + " " + d.String() }
	return []program{
		{name("outputs that are inputs"), []*tensor.Array{arr(65), arr(3), arr(65)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			return []*graph.Node{in[0], l.add(in[0], in[2]), in[1], in[0]}
		}, bits},
		{name("the same output twice"), []*tensor.Array{arr(65)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			n := lines{b}.op(graph.Neg, in[0])
			return []*graph.Node{n, n, b.Reshape(n, 5, 13), b.Reshape(n, 13, 5)}
		}, bits},
		{name("reshapes between operations"), []*tensor.Array{arr(4, 33), arr(33), arr(2, 66)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			x := l.add(in[0], in[1])
			y := l.mul(b.Reshape(x, 2, 66), in[2])
			z := b.Reshape(l.op(graph.Tanh, y), 132)
			w := b.Reshape(in[0], 132)
			return []*graph.Node{l.add(z, w), b.Reshape(x, 132), b.Reshape(in[2], 12, 11)}
		}, close},
		{name("no operation"), []*tensor.Array{arr(17)}, func(_ *graph.Builder, in []*graph.Node) []*graph.Node { return in }, bits},
		{name("the same operand twice"), []*tensor.Array{arr(65, 65)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			sq := l.mul(in[0], in[0])
			return []*graph.Node{
				l.add(sq, sq), l.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}, sq, sq),
				l.concat(0, sq, sq, in[0]),
			}
		}, sums},
		{name("empty values in a chain"), []*tensor.Array{arr(0, 17), arr(17), arr(17, 3)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			l := lines{b}
			v := l.op(graph.Silu, l.add(in[0], in[1]))
			w := l.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}, v, in[2])
			return []*graph.Node{v, w, l.concat(0, v, b.Reshape(in[1], 1, 17)), l.Make(graph.Softmax, nil, v)}
		}, close},
		{name("unused input, unused work"), []*tensor.Array{arr(3), arr(1000), arr(3)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{lines{b}.add(in[0], in[2])}
		}, bits},
	}
}

// movementProgram passes views from one movement to the next.
func movementProgram(m *maker, d tensor.DType) program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	return program{"movement " + d.String(), []*tensor.Array{arr(2, 17, 48), arr(2, 5, 16), arr()}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		l := lines{b}
		q, k, v := l.slice(in[0], 2, 0, 16), l.slice(in[0], 2, 16, 32), l.slice(in[0], 2, 32, 48)
		qk := l.add(q, k)
		joined := l.concat(1, l.slice(in[1], 1, 1, 4), qk, l.op(graph.Neg, v))
		parts := l.slice(joined, 1, 2, 19)
		tr := l.Make(graph.Transpose, graph.TransposeAttr{Perm: []int{0, 2, 1}}, parts)
		dot := l.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{1}, RhsContract: []int{2}}, tr, parts)
		padded := l.Make(graph.Pad, graph.PadAttr{Low: []int{0, 1, 2}, High: []int{0, 0, 1}, Interior: []int{0, 0, 0}}, l.mul(parts, parts), in[2])
		norm := l.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, l.slice(joined, 2, 3, 14))
		twice := l.slice(l.slice(joined, 1, 3, 20), 1, 2, 9)
		return []*graph.Node{dot, padded, norm, twice, l.op(graph.Tanh, tr), k, b.Reshape(tr, 2, 272)}
	}, sums}
}

// transformerPrograms are blocks as models record them.
func transformerPrograms(m *maker, d tensor.DType) []program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	wt := func(n, k int) *tensor.Array { return m.between(d, -0.2, 0.2, n, k) }
	const batch, img, txt, heads, dim = 2, 17, 5, 2, 32
	const width = heads * dim
	table := func() *tensor.Array { return m.between(tensor.F32, -1, 1, img+txt, dim) }
	joint := program{"joint attention block " + d.String(), []*tensor.Array{
		arr(batch, img, width), arr(batch, txt, width), arr(batch, width), wt(6*width, width), arr(6 * width),
		wt(3*width, width), arr(3 * width), wt(3*width, width), arr(3 * width), arr(dim), arr(dim), table(), table(),
		wt(width, width), arr(width), wt(4*width, width), arr(4 * width), wt(width, 4*width), arr(width),
	}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		l := lines{b}
		x, c, temb := in[0], in[1], in[2]
		mod := b.Reshape(l.linear(l.op(graph.Silu, temb), in[3], in[4], graph.NoActivation), batch, 1, 6*width)
		part := func(i int) *graph.Node { return l.slice(mod, 2, i*width, (i+1)*width) }
		norm := func(x *graph.Node) *graph.Node {
			return l.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, x)
		}
		qkv := func(x, w, bias *graph.Node, n int) (q, k, v *graph.Node) {
			y := l.linear(x, w, bias, graph.NoActivation)
			head := func(i int) *graph.Node { return b.Reshape(l.slice(y, 2, i*width, (i+1)*width), batch, n, heads, dim) }
			rms := func(x, w *graph.Node) *graph.Node {
				return l.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, x, w)
			}
			return rms(head(0), in[9]), rms(head(1), in[10]), head(2)
		}
		iq, ik, iv := qkv(l.Make(graph.Modulate, nil, norm(x), part(0), part(1)), in[5], in[6], img)
		tq, tk, tv := qkv(norm(c), in[7], in[8], txt)
		q, k, v := l.concat(1, tq, iq), l.concat(1, tk, ik), l.concat(1, tv, iv)
		rope := func(x *graph.Node) *graph.Node { return l.Make(graph.Rope, graph.RopeAttr{}, x, in[11], in[12]) }
		o := b.Reshape(l.Make(graph.Attention, graph.AttentionAttr{Scale: 0.18}, rope(q), rope(k), v), batch, img+txt, width)
		x = l.add(x, l.mul(part(2), l.linear(l.slice(o, 1, txt, txt+img), in[13], in[14], graph.NoActivation)))
		c = l.add(c, l.slice(o, 1, 0, txt))
		h := l.Make(graph.Modulate, nil, norm(x), part(3), part(4))
		h = l.linear(l.linear(h, in[15], in[16], graph.ActGeluTanh), in[17], in[18], graph.NoActivation)
		return []*graph.Node{l.add(x, l.mul(part(5), h)), c}
	}, deep}
	encoder := program{"text encoder block " + d.String(), []*tensor.Array{
		m.between(tensor.I64, 0, 50, batch, txt), arr(50, width), arr(width), wt(width, width), wt(width, width), wt(width, width), wt(width, width),
		m.normal(d, 1, heads, txt, txt), wt(3*width, width), wt(3*width, width), wt(width, 3*width), m.between(tensor.Bool, 0, 2, batch, 1, 1, txt),
	}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		l := lines{b}
		lin := func(x, w *graph.Node) *graph.Node { return l.Make(graph.Linear, graph.LinearAttr{}, x, w) }
		norm := func(x *graph.Node) *graph.Node {
			return l.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true, RoundFirst: true}, x, in[2])
		}
		x := l.op(graph.Gather, in[1], in[0])
		h := norm(x)
		head := func(w *graph.Node) *graph.Node { return b.Reshape(lin(h, w), batch, txt, heads, dim) }
		o := l.Make(graph.Attention, graph.AttentionAttr{Scale: 1, Bias: true, Mask: true}, head(in[3]), head(in[4]), head(in[5]), in[7], in[11])
		x = l.add(x, lin(b.Reshape(o, batch, txt, width), in[6]))
		h = norm(x)
		gated := l.mul(l.Make(graph.Gelu, graph.GeluAttr{Form: graph.ActGeluTanh}, lin(h, in[8])), lin(h, in[9]))
		return []*graph.Node{l.add(x, lin(gated, in[10])), x}
	}, deep}
	return []program{joint, encoder}
}

// resnetProgram is an autoencoder's block with upsampling.
func resnetProgram(m *maker, d tensor.DType) program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	wt := func(shape ...int) *tensor.Array { return m.between(d, -0.2, 0.2, shape...) }
	return program{"resnet block " + d.String(), []*tensor.Array{
		arr(1, 5, 6, 16), arr(16), arr(16), wt(32, 16, 3, 3), arr(32), arr(32), arr(32), wt(32, 32, 3, 3), arr(32), wt(32, 16, 1, 1), arr(32), wt(3, 32, 3, 3), arr(3),
	}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		l := lines{b}
		norm := func(x, w, c *graph.Node, g int) *graph.Node {
			return l.Make(graph.GroupNorm, graph.GroupNormAttr{Groups: g, Eps: 1e-6, Silu: true}, x, w, c)
		}
		h := l.conv(norm(in[0], in[1], in[2], 4), in[3], in[4])
		h = l.conv(norm(h, in[5], in[6], 8), in[7], in[8])
		h = l.add(l.conv(in[0], in[9], in[10]), h)
		up := l.Make(graph.UpsampleConv, graph.UpsampleConvAttr{Bias: true}, h, in[11], in[12])
		one := b.Scalar(d, 1)
		return []*graph.Node{l.op(graph.Max, l.op(graph.Min, up, one), b.Scalar(d, -1)), h}
	}, deep}
}
