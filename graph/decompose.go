package graph

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// Decompose rewrites one composite node into primitives over the same operands. It is the definition of the composite,
// roundings included.
func Decompose(n *Node) (*Node, error) {
	b := &Builder{}
	var out *Node
	switch n.Op {
	case Linear:
		out = b.linear(n)
	case QuantizedLinear:
		out = b.quantizedLinear(n)
	case RMSNorm:
		out = b.rmsNorm(n)
	case LayerNorm:
		out = b.layerNorm(n)
	case GroupNorm:
		out = b.groupNorm(n)
	case Softmax:
		x := b.Convert(n.In[0], internal(n.DType))
		out = b.Convert(b.softmax(x), n.DType)
	case Attention:
		out = b.attention(n)
	case Rope:
		out = b.rope(n)
	case Gelu:
		out = b.activation(n.In[0], n.Attr.(GeluAttr).Form)
	case Silu:
		out = b.activation(n.In[0], ActSilu)
	case Modulate:
		x, scale, shift := n.In[0], n.In[1], n.In[2]
		one := b.Make(Add, nil, scale, b.Scalar(n.DType, 1))
		out = b.Make(Add, nil, b.Make(Mul, nil, x, one), shift)
	case UpsampleNearest:
		out = b.upsample(n)
	case UpsampleConv:
		x := n.In[0]
		s := x.Shape
		up := &Node{Op: UpsampleNearest, In: []*Node{x}, Attr: UpsampleAttr{Factor: 2},
			Type: Type{x.DType, tensor.Shape{s[0], 2 * s[1], 2 * s[2], s[3]}}}
		out = b.Make(Convolution, n.Attr.(UpsampleConvAttr).Convolution(), append([]*Node{b.upsample(up)}, n.In[1:]...)...)
	default:
		return nil, fmt.Errorf("%s is not a composite", n.Op)
	}
	if b.Err != nil {
		return nil, fmt.Errorf("decompose %s: %w", n.Op, b.Err)
	}
	if !out.Type.Equal(n.Type) {
		return nil, fmt.Errorf("decompose %s: got %s, expected %s", n.Op, out.Type, n.Type)
	}
	return out, nil
}

// linear: the product and the bias in f32, rounded once, then the activation.
func (b *Builder) linear(n *Node) *Node {
	a := n.Attr.(LinearAttr)
	x, w := n.In[0], n.In[1]
	last := len(x.Shape) - 1
	y := b.Make(DotGeneral, DotGeneralAttr{LhsContract: []int{last}, RhsContract: []int{1}, Out: internal(n.DType)}, x, w)
	var bias *Node
	if a.Bias {
		bias = n.In[2]
	}
	return b.finish(y, bias, n.DType, a.Act)
}

// finish adds the bias to f32 sums, rounds, and applies the activation.
func (b *Builder) finish(y, bias *Node, d tensor.DType, act Activation) *Node {
	if bias != nil {
		y = b.Make(Add, nil, y, b.Convert(bias, y.DType))
	}
	y = b.Convert(y, d)
	if act != NoActivation {
		y = b.activation(y, act)
	}
	return y
}

// activation computes act(x) in f32 and rounds once.
func (b *Builder) activation(x *Node, act Activation) *Node {
	d := x.DType
	f := internal(d)
	v := b.Convert(x, f)
	c := func(s float64) *Node { return b.Scalar(f, s) }
	switch act {
	case ActSilu:
		v = b.Make(Mul, nil, v, b.Make(Logistic, nil, v))
	case ActQuickGelu:
		// PyTorch evaluates x * sigmoid(1.702 * x) as three operations, each rounded to x's dtype.
		v = b.Convert(b.Make(Mul, nil, v, c(1.702)), d)
		v = b.Convert(b.Make(Logistic, nil, b.Convert(v, f)), d)
		return b.Make(Mul, nil, x, v)
	case ActGelu:
		e := b.Make(Erf, nil, b.Make(Mul, nil, v, c(math.Sqrt2/2)))
		v = b.Make(Mul, nil, b.Make(Mul, nil, v, c(0.5)), b.Make(Add, nil, e, c(1)))
	case ActGeluTanh:
		cube := b.Make(Mul, nil, b.Make(Mul, nil, v, v), v)
		in := b.Make(Add, nil, v, b.Make(Mul, nil, cube, c(0.044715)))
		t := b.Make(Tanh, nil, b.Make(Mul, nil, in, c(math.Sqrt(2/math.Pi))))
		v = b.Make(Mul, nil, b.Make(Mul, nil, v, c(0.5)), b.Make(Add, nil, t, c(1)))
	case ActGeluNew:
		return b.geluNew(x)
	}
	return b.Convert(v, d)
}

// geluNew is 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) as PyTorch evaluates it: each operation is rounded to x's dtype,
// but numbers aren't, and the cube is two operations in bf16 and one in f16.
// Source: transformers' NewGELUActivation.
func (b *Builder) geluNew(x *Node) *Node {
	d := x.DType
	f := internal(d)
	times := func(v *Node, s float64) *Node { return b.Convert(b.Make(Mul, nil, b.Convert(v, f), b.Scalar(f, s)), d) }
	wide := func(op Op, v *Node) *Node { return b.Convert(b.Make(op, nil, b.Convert(v, f)), d) }
	c := f
	if d == tensor.BF16 {
		c = d
	}
	v := b.Convert(x, c)
	cube := b.Convert(b.Make(Mul, nil, b.Make(Mul, nil, v, v), v), d)
	t := wide(Tanh, times(b.Make(Add, nil, x, times(cube, 0.044715)), math.Sqrt(2/math.Pi)))
	return b.Make(Mul, nil, times(x, 0.5), b.Make(Add, nil, t, b.Scalar(d, 1)))
}

func (b *Builder) rmsNorm(n *Node) *Node {
	a := n.Attr.(RMSNormAttr)
	f := internal(n.DType)
	x := b.Convert(n.In[0], f)
	ms := b.mean(b.Make(Mul, nil, x, x), len(x.Shape)-1)
	y := b.Make(Mul, nil, x, b.Make(Rsqrt, nil, b.Make(Add, nil, ms, b.Scalar(f, a.Eps))))
	switch {
	case !a.Weight:
		return b.Convert(y, n.DType)
	case a.RoundFirst:
		return b.Make(Mul, nil, b.Convert(y, n.DType), n.In[1])
	}
	return b.Convert(b.Make(Mul, nil, y, b.Convert(n.In[1], f)), n.DType)
}

// normalise subtracts the mean and divides by the standard deviation over the given axes; x is f32.
func (b *Builder) normalise(x *Node, eps float64, axes ...int) *Node {
	d := b.Make(Sub, nil, x, b.mean(x, axes...))
	v := b.mean(b.Make(Mul, nil, d, d), axes...)
	return b.Make(Mul, nil, d, b.Make(Rsqrt, nil, b.Make(Add, nil, v, b.Scalar(x.DType, eps))))
}

func (b *Builder) layerNorm(n *Node) *Node {
	a := n.Attr.(LayerNormAttr)
	f := internal(n.DType)
	y := b.normalise(b.Convert(n.In[0], f), a.Eps, len(n.Shape)-1)
	if a.Affine {
		y = b.Make(Mul, nil, y, b.Convert(n.In[1], f))
		y = b.Make(Add, nil, y, b.Convert(n.In[2], f))
	}
	return b.Convert(y, n.DType)
}

func (b *Builder) groupNorm(n *Node) *Node {
	a := n.Attr.(GroupNormAttr)
	f := internal(n.DType)
	c := n.Shape[len(n.Shape)-1]
	batch := n.Shape[0]
	positions := 1
	for _, d := range n.Shape[1 : len(n.Shape)-1] {
		positions *= d
	}
	x := b.Reshape(b.Convert(n.In[0], f), batch, positions, a.Groups, c/a.Groups)
	y := b.Reshape(b.normalise(x, a.Eps, 1, 3), n.Shape...)
	y = b.Make(Mul, nil, y, b.Convert(n.In[1], f))
	y = b.Convert(b.Make(Add, nil, y, b.Convert(n.In[2], f)), n.DType)
	if a.Silu {
		y = b.activation(y, ActSilu)
	}
	return y
}

// softmax over the last axis; x is f32. A row of -Inf only gives NaN.
func (b *Builder) softmax(x *Node) *Node {
	last := len(x.Shape) - 1
	e := b.Make(Exp, nil, b.Make(Sub, nil, x, b.reduceKeep(ReduceMax, x, last)))
	return b.Make(Div, nil, e, b.reduceKeep(ReduceSum, e, last))
}

func (b *Builder) attention(n *Node) *Node {
	a := n.Attr.(AttentionAttr)
	q, k, v := n.In[0], n.In[1], n.In[2]
	f := internal(n.DType)
	batch, nq, h, d := q.Shape[0], q.Shape[1], q.Shape[2], q.Shape[3]
	m, g := k.Shape[1], k.Shape[2]
	// Query heads are split as (G, H/G), so that each key head meets its own group.
	q = b.Reshape(q, batch, nq, g, h/g, d)
	logits := b.Make(DotGeneral, DotGeneralAttr{
		LhsBatch: []int{0, 2}, RhsBatch: []int{0, 2}, LhsContract: []int{4}, RhsContract: []int{3}, Out: f,
	}, q, k) // (B, G, N, H/G, M)
	logits = b.Make(Transpose, TransposeAttr{[]int{0, 1, 3, 2, 4}}, logits)
	logits = b.Reshape(logits, batch, h, nq, m)
	logits = b.Make(Mul, nil, logits, b.Scalar(f, a.Scale))
	next := 3
	if a.Bias {
		logits = b.Make(Add, nil, logits, b.Convert(n.In[next], f))
		next++
	}
	var visible *Node
	if a.Causal {
		grid := Type{tensor.I32, tensor.Shape{nq, m}}
		row := b.Make(Iota, IotaAttr{grid, 0})
		col := b.Make(Iota, IotaAttr{grid, 1})
		visible = b.Reshape(b.Make(Compare, CompareAttr{LE}, col, row), 1, 1, nq, m)
	}
	if a.Mask {
		if visible == nil {
			visible = n.In[next]
		} else {
			visible = b.Make(And, nil, visible, n.In[next])
		}
	}
	if visible != nil {
		logits = b.Make(Select, nil, visible, logits, b.Scalar(f, negInf))
	}
	// Like softmax, but a row without any visible key gives zeros, not NaN.
	top := b.reduceKeep(ReduceMax, logits, 3)
	if visible != nil {
		dark := b.Make(Compare, CompareAttr{EQ}, top, b.Scalar(f, negInf))
		top = b.Make(Select, nil, dark, b.Scalar(f, 0), top)
	}
	e := b.Make(Exp, nil, b.Make(Sub, nil, logits, top))
	sum := b.reduceKeep(ReduceSum, e, 3)
	if visible != nil {
		sum = b.Make(Select, nil, b.Make(Compare, CompareAttr{EQ}, sum, b.Scalar(f, 0)), b.Scalar(f, 1), sum)
	}
	p := b.Reshape(b.Make(Div, nil, e, sum), batch, g, h/g, nq, m)
	o := b.Make(DotGeneral, DotGeneralAttr{
		LhsBatch: []int{0, 1}, RhsBatch: []int{0, 2}, LhsContract: []int{4}, RhsContract: []int{1}, Out: f,
	}, p, b.Convert(v, f)) // (B, G, H/G, N, D)
	o = b.Make(Transpose, TransposeAttr{[]int{0, 3, 1, 2, 4}}, o)
	return b.Convert(b.Reshape(o, batch, nq, h, d), n.DType)
}

func (b *Builder) rope(n *Node) *Node {
	a := n.Attr.(RopeAttr)
	x := b.Convert(n.In[0], tensor.F32)
	s := n.Shape // (B, N, H, D)
	half := s[3] / 2
	table := func(t *Node) *Node { return b.Reshape(t, 1, s[1], 1, s[3]) }
	pairs, axis := []int{s[0], s[1], s[2], half, 2}, 4 // (x0, x1) side by side
	if a.HalfSplit {
		pairs, axis = []int{s[0], s[1], s[2], 2, half}, 3
	}
	p := b.Reshape(x, pairs...)
	part := func(i int) *Node {
		start, limit, stride := make([]int, 5), append([]int(nil), pairs...), []int{1, 1, 1, 1, 1}
		start[axis], limit[axis] = i, i+1
		return b.Make(Slice, SliceAttr{start, limit, stride}, p)
	}
	rot := b.Make(Concatenate, ConcatenateAttr{axis}, b.Make(Neg, nil, part(1)), part(0))
	rot = b.Reshape(rot, s...)
	y := b.Make(Add, nil, b.Make(Mul, nil, x, table(n.In[1])), b.Make(Mul, nil, rot, table(n.In[2])))
	return b.Convert(y, n.DType)
}

func (b *Builder) upsample(n *Node) *Node {
	f := n.Attr.(UpsampleAttr).Factor
	s := n.In[0].Shape
	x := b.Reshape(n.In[0], s[0], s[1], 1, s[2], 1, s[3])
	x = b.Make(BroadcastInDim, BroadcastInDimAttr{[]int{s[0], s[1], f, s[2], f, s[3]}, []int{0, 1, 2, 3, 4, 5}}, x)
	return b.Reshape(x, n.Shape...)
}

// Lower returns g with every composite for which keep is false rewritten into primitives.
func Lower(g *Graph, keep func(*Node) bool) (*Graph, error) {
	mapped := make(map[*Node]*Node, len(g.Nodes))
	at := func(n *Node) *Node {
		if m, ok := mapped[n]; ok {
			return m
		}
		return n
	}
	for _, n := range g.Nodes {
		in := make([]*Node, len(n.In))
		changed := false
		for i, c := range n.In {
			in[i] = at(c)
			changed = changed || in[i] != c
		}
		m := n
		if changed {
			m = &Node{Op: n.Op, In: in, Attr: n.Attr, Type: n.Type}
		}
		if n.Op.IsComposite() && !keep(n) {
			var err error
			if m, err = Decompose(m); err != nil {
				return nil, err
			}
		}
		mapped[n] = m
	}
	outs := make([]*Node, len(g.Outputs))
	for i, n := range g.Outputs {
		outs[i] = at(n)
	}
	return New(g.Name, g.Inputs, outs)
}
