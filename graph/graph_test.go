package graph

import (
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

func typ(d tensor.DType, shape ...int) Type { return Type{d, shape} }

// Every wrong use is refused with a message that names the operation and the operand types.
func TestInferRefuses(t *testing.T) {
	f := tensor.F32
	v := typ(f, 2, 3)
	for _, c := range []struct {
		op   Op
		attr Attr
		in   []Type
		want string
	}{
		{Add, nil, []Type{v, typ(f, 4, 3)}, "do not broadcast"},
		{Add, nil, []Type{v, typ(tensor.BF16, 2, 3)}, "dtypes f32 and bf16 differ"},
		{Add, nil, []Type{v}, "takes 2 operands"},
		{And, nil, []Type{v, v}, "needs bool"},
		{Add, nil, []Type{typ(tensor.Bool, 1), typ(tensor.Bool, 1)}, "got bool"},
		{Tanh, nil, []Type{typ(tensor.I32, 2)}, "floating-point"},
		{Compare, nil, []Type{v, v}, "attribute"},
		{Convert, nil, []Type{v}, "attribute"},
		{Reshape, ReshapeAttr{tensor.Shape{7}}, []Type{v}, "cannot become [7]"},
		{Reshape, ReshapeAttr{tensor.Shape{-6, -1}}, []Type{v}, "negative"},
		{Transpose, TransposeAttr{[]int{0, 0}}, []Type{v}, "permutation"},
		{Slice, SliceAttr{[]int{0, 0}, []int{2, 4}, []int{1, 1}}, []Type{v}, "outside axis 1"},
		{Concatenate, ConcatenateAttr{0}, []Type{v, typ(f, 2, 4)}, "do not join"},
		{Concatenate, ConcatenateAttr{2}, []Type{v}, "attribute"},
		{Gather, nil, []Type{v, v}, "integer rows"},
		{Reduce, ReduceAttr{ReduceSum, []int{2}}, []Type{v}, "axes [2]"},
		{Reduce, ReduceAttr{ReduceMax, []int{0}}, []Type{typ(f, 0, 3)}, "max of nothing"},
		{DotGeneral, DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}, []Type{v, v}, "differ: 3 and 2"},
		{Convolution, ConvolutionAttr{Stride: [2]int{1, 1}}, []Type{typ(f, 1, 4, 4, 3), typ(f, 8, 4, 3, 3)}, "weight (O, C, KH, KW)"},
		{Convolution, ConvolutionAttr{Stride: [2]int{1, 1}}, []Type{typ(f, 1, 2, 2, 3), typ(f, 8, 3, 3, 3)}, "do not fit"},
		{Linear, LinearAttr{}, []Type{v, typ(f, 5, 4)}, "weight (N, K)"},
		{Linear, LinearAttr{Bias: true}, []Type{v, typ(f, 5, 3), typ(f, 4)}, "bias must be f32[5]"},
		{QuantizedLinear, QuantizedLinearAttr{}, []Type{v, typ(f, 5, 3), typ(f, 5)}, "weight in i8"},
		{QuantizedLinear, QuantizedLinearAttr{}, []Type{v, typ(tensor.I8, 5, 4), typ(f, 5)}, "weight (N, K)"},
		{QuantizedLinear, QuantizedLinearAttr{}, []Type{v, typ(tensor.I8, 5, 3), typ(f, 3)}, "scale must be f32[5]"},
		{QuantizedLinear, QuantizedLinearAttr{Bias: true}, []Type{v, typ(tensor.I8, 5, 3), typ(f, 5)}, "takes 4 operands"},
		{RMSNorm, RMSNormAttr{Weight: true}, []Type{v, typ(f, 2)}, "weight must be f32[3]"},
		{GroupNorm, GroupNormAttr{Groups: 2}, []Type{v, typ(f, 3), typ(f, 3)}, "2 groups do not divide 3"},
		{Rope, RopeAttr{}, []Type{typ(f, 1, 2, 3, 4), typ(f, 2, 4), typ(f, 2, 2)}, "cos and sin must be f32[2 4]"},
		{Attention, AttentionAttr{}, []Type{typ(f, 1, 2, 3, 4), typ(f, 1, 5, 2, 4), typ(f, 1, 5, 2, 4)}, "does not fit"},
		{Attention, AttentionAttr{Causal: true}, []Type{typ(f, 1, 2, 2, 4), typ(f, 1, 5, 2, 4), typ(f, 1, 5, 2, 4)}, "as many queries as keys"},
		{Attention, AttentionAttr{Bias: true}, []Type{typ(f, 1, 2, 2, 4), typ(f, 1, 5, 2, 4), typ(f, 1, 5, 2, 4), typ(f, 1, 3, 2, 5)}, "bias"},
		{UpsampleConv, UpsampleConvAttr{}, []Type{typ(f, 1, 4, 4, 3), typ(f, 8, 3, 2, 2)}, "weight (O, C, 3, 3)"},
		{UpsampleConv, UpsampleConvAttr{Bias: true}, []Type{typ(f, 1, 4, 4, 3), typ(f, 8, 3, 3, 3), typ(f, 3)}, "bias"},
		{UpsampleNearest, UpsampleAttr{0}, []Type{typ(f, 1, 2, 2, 4)}, "factor"},
	} {
		_, err := Infer(c.op, c.attr, c.in)
		if err == nil {
			t.Errorf("%s%v: no error", c.op, c.in)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.op.String()) {
			t.Errorf("%s%v: %q does not contain %q", c.op, c.in, err, c.want)
		}
	}
	huge := typ(f, 1<<40, 1<<40)
	if _, err := Infer(Reshape, ReshapeAttr{huge.Shape}, []Type{v}); err == nil {
		t.Error("an overflowing shape was accepted")
	}
}

// composites has one well-formed node of every composite operation.
func composites(t *testing.T, d tensor.DType) []*Node {
	t.Helper()
	b := &Builder{}
	n := 0
	in := func(t Type) *Node { n++; return NewInput(n-1, t) }
	x := func(shape ...int) *Node { return in(typ(d, shape...)) }
	f := func(shape ...int) *Node { return in(typ(tensor.F32, shape...)) }
	nodes := []*Node{
		b.Make(Linear, LinearAttr{}, x(2, 3), x(5, 3)),
		b.Make(RMSNorm, RMSNormAttr{Eps: 1e-6}, x(2, 3)),
		b.Make(RMSNorm, RMSNormAttr{Eps: 1e-6, Weight: true}, x(2, 3), x(3)),
		b.Make(RMSNorm, RMSNormAttr{Eps: 1e-6, Weight: true, RoundFirst: true}, x(2, 3), x(3)),
		b.Make(LayerNorm, LayerNormAttr{Eps: 1e-6}, x(2, 3)),
		b.Make(LayerNorm, LayerNormAttr{Eps: 1e-6, Affine: true}, x(2, 3), x(3), x(3)),
		b.Make(GroupNorm, GroupNormAttr{Groups: 2, Eps: 1e-6, Silu: true}, x(2, 3, 3, 4), x(4), x(4)),
		b.Make(Softmax, nil, x(2, 3)),
		b.Make(Attention, AttentionAttr{Scale: 0.5}, x(2, 3, 4, 8), x(2, 5, 2, 8), x(2, 5, 2, 8)),
		b.Make(Attention, AttentionAttr{Scale: 0.5, Causal: true, Bias: true, Mask: true}, x(2, 3, 4, 8), x(2, 3, 2, 8), x(2, 3, 2, 8),
			x(1, 4, 3, 3), in(typ(tensor.Bool, 2, 1, 1, 3))),
		b.Make(Rope, RopeAttr{}, x(2, 3, 4, 8), f(3, 8), f(3, 8)),
		b.Make(Rope, RopeAttr{HalfSplit: true}, x(2, 3, 4, 8), f(3, 8), f(3, 8)),
		b.Make(Silu, nil, x(2, 3)),
		b.Make(Modulate, nil, x(2, 3, 4), x(2, 1, 4), x(2, 1, 4)),
		b.Make(UpsampleNearest, UpsampleAttr{2}, x(1, 2, 3, 4)),
		b.Make(UpsampleConv, UpsampleConvAttr{Bias: true}, x(1, 2, 3, 4), x(5, 4, 3, 3), x(5)),
		b.Make(QuantizedLinear, QuantizedLinearAttr{}, x(2, 3), in(typ(tensor.I8, 5, 3)), f(5)),
		b.Make(QuantizedLinear, QuantizedLinearAttr{Bias: true, Act: ActGelu}, x(2, 3), in(typ(tensor.I8, 5, 3)), f(5), x(5)),
	}
	for _, act := range []Activation{ActGelu, ActGeluTanh, ActQuickGelu} {
		nodes = append(nodes, b.Make(Gelu, GeluAttr{act}, x(2, 3)), b.Make(Linear, LinearAttr{Bias: true, Act: act}, x(2, 3), x(5, 3), x(5)))
	}
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	return nodes
}

// Every composite decomposes into primitives of the same type. (What they compute is compared by backendtest.)
func TestEveryCompositeDecomposes(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		seen := map[Op]bool{}
		for _, n := range composites(t, d) {
			seen[n.Op] = true
			out, err := Decompose(n)
			if err != nil {
				t.Errorf("%s: %v", n.Op, err)
				continue
			}
			g, err := New(n.Op.String(), inputsOf(n), []*Node{out})
			if err != nil {
				t.Errorf("%s: %v", n.Op, err)
				continue
			}
			for _, m := range g.Nodes {
				if m.Op.IsComposite() {
					t.Errorf("%s decomposes into %s", n.Op, m.Op)
				}
			}
		}
		Ops(func(o Op) {
			if o.IsComposite() && !seen[o] {
				t.Errorf("%s is not covered", o)
			}
			if o.String() == "" {
				t.Errorf("operation %d has no name", o)
			}
		})
	}
}

// inputsOf renumbers a node's inputs from 0.
func inputsOf(n *Node) []*Node {
	for i, c := range n.In {
		c.Attr = InputAttr{i}
	}
	return n.In
}

// The fingerprint tells programs apart by structure, shape, dtype, attribute, constant and donation, and by nothing else.
func TestFingerprint(t *testing.T) {
	build := func(name string, d tensor.DType, n int, c float64, eps float64, swap bool, donated ...int) string {
		t.Helper()
		b := &Builder{}
		x, y := NewInput(0, typ(d, 2, n)), NewInput(1, typ(d, 2, n))
		if swap {
			x, y = y, x
		}
		z := b.Make(LayerNorm, LayerNormAttr{Eps: eps}, b.Make(Sub, nil, x, b.Make(Mul, nil, y, b.Scalar(d, c))))
		if swap {
			x, y = y, x
		}
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		g, err := New(name, []*Node{x, y}, []*Node{z})
		if err != nil {
			t.Fatal(err)
		}
		g.Donated = donated
		return g.Fingerprint()
	}
	base := build("a", tensor.F32, 3, 2, 1e-6, false)
	if other := build("b", tensor.F32, 3, 2, 1e-6, false); other != base {
		t.Error("the same program has two fingerprints")
	}
	for what, other := range map[string]string{
		"dtype":     build("a", tensor.BF16, 3, 2, 1e-6, false),
		"shape":     build("a", tensor.F32, 4, 2, 1e-6, false),
		"constant":  build("a", tensor.F32, 3, 3, 1e-6, false),
		"attribute": build("a", tensor.F32, 3, 2, 1e-5, false),
		"structure": build("a", tensor.F32, 3, 2, 1e-6, true),
		"donation":  build("a", tensor.F32, 3, 2, 1e-6, false, 1),
	} {
		if other == base {
			t.Errorf("another %s has the same fingerprint", what)
		}
	}
}

func TestNewRefusesForeignInputs(t *testing.T) {
	x := NewInput(0, typ(tensor.F32, 2))
	y, err := Make(Tanh, nil, NewInput(0, typ(tensor.F32, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New("g", []*Node{x}, []*Node{y}); err == nil {
		t.Error("a graph over an input that it lacks was accepted")
	}
}

func TestDeepGraph(t *testing.T) {
	x := NewInput(0, typ(tensor.F32, 2))
	n := x
	for range 200_000 {
		var err error
		if n, err = Make(Tanh, nil, n); err != nil {
			t.Fatal(err)
		}
	}
	g, err := New("deep", []*Node{x}, []*Node{n})
	if err != nil || len(g.Nodes) != 200_000 {
		t.Fatalf("%d nodes, %v", len(g.Nodes), err)
	}
}
