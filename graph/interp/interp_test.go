package interp_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// arr makes an array of dtype d from values.
func arr(d tensor.DType, shape tensor.Shape, v ...float64) *tensor.Array {
	a, err := tensor.FromFloat64(v, shape...).Convert(d)
	if err != nil {
		panic(err)
	}
	return a
}

func f32(shape tensor.Shape, v ...float64) *tensor.Array { return arr(tensor.F32, shape, v...) }

type s = tensor.Shape

// TestApply holds every operation against results worked out by hand.
func TestApply(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	un := func(op graph.Op, x, want *tensor.Array) testCase {
		return testCase{op: op, in: []*tensor.Array{x}, want: want}
	}
	bin := func(op graph.Op, d tensor.DType, x, y, want []float64) testCase {
		n := s{len(x)}
		return testCase{op: op, in: []*tensor.Array{arr(d, n, x...), arr(d, n, y...)}, want: arr(d, n, want...)}
	}
	v := func(x ...float64) []float64 { return x }
	cmp := func(dir graph.Direction, want ...float64) testCase {
		return testCase{op: graph.Compare, attr: graph.CompareAttr{Direction: dir},
			in: []*tensor.Array{f32(s{4}, 1, 2, 3, nan), f32(s{4}, 2, 2, 2, 2)}, want: arr(tensor.Bool, s{4}, want...)}
	}
	conv := func(d tensor.DType, from, want *tensor.Array) testCase {
		return testCase{op: graph.Convert, attr: graph.ConvertAttr{DType: d}, in: []*tensor.Array{from}, want: want}
	}
	grid := f32(s{2, 3}, 1, 2, 3, 4, 5, 6)
	cases := []testCase{
		un(graph.Neg, f32(s{3}, 1, -2, 0), f32(s{3}, -1, 2, math.Copysign(0, -1))),
		un(graph.Neg, arr(tensor.I8, s{1}, -128), arr(tensor.I8, s{1}, -128)),
		un(graph.Abs, f32(s{2}, -1.5, 2), f32(s{2}, 1.5, 2)),
		un(graph.Sign, f32(s{4}, -3, 0, 9, nan), f32(s{4}, -1, 0, 1, nan)),
		un(graph.Exp, f32(s{3}, 0, 1, -inf), f32(s{3}, 1, math.E, 0)),
		un(graph.Log, f32(s{3}, 1, math.E, 0), f32(s{3}, 0, 0.99999997, -inf)),
		un(graph.Sqrt, f32(s{2}, 9, -1), f32(s{2}, 3, nan)),
		un(graph.Rsqrt, f32(s{2}, 4, 0), f32(s{2}, 0.5, inf)),
		un(graph.Tanh, f32(s{2}, 0, inf), f32(s{2}, 0, 1)),
		un(graph.Erf, f32(s{2}, 0, 1), f32(s{2}, 0, 0.8427007929497149)),
		un(graph.Logistic, f32(s{3}, 0, inf, -inf), f32(s{3}, 0.5, 1, 0)),
		un(graph.Sin, f32(s{1}, 1), f32(s{1}, 0.8414709848078965)),
		un(graph.Cos, f32(s{1}, 1), f32(s{1}, 0.5403023058681398)),
		un(graph.Floor, f32(s{2}, -1.5, 1.5), f32(s{2}, -2, 1)),
		un(graph.Ceil, f32(s{2}, -1.5, 1.5), f32(s{2}, -1, 2)),
		un(graph.Not, arr(tensor.Bool, s{2}, 1, 0), arr(tensor.Bool, s{2}, 0, 1)),
		un(graph.IsFinite, f32(s{3}, 1, inf, nan), arr(tensor.Bool, s{3}, 1, 0, 0)),
		// 1 + 1/256 lies between two bfloat16 values and goes to the even one.
		bin(graph.Add, tensor.BF16, v(1, 1), v(1.0/256, 3.0/256), v(1, 1+4.0/256)),
		bin(graph.Sub, tensor.U8, v(1), v(2), v(255)),
		bin(graph.Mul, tensor.I8, v(100), v(3), v(44)), // 300 - 256
		bin(graph.Mul, tensor.F16, v(300), v(300), v(inf)),
		bin(graph.Div, tensor.I32, v(7, -7, 5), v(2, 2, 0), v(3, -3, -1)),
		bin(graph.Rem, tensor.I32, v(7, -7, 5), v(2, 2, 0), v(1, -1, 5)),
		bin(graph.Rem, tensor.F32, v(7.5, -7.5), v(2, 2), v(1.5, -1.5)),
		bin(graph.Max, tensor.F32, v(1, nan, 3), v(2, 1, nan), v(2, nan, nan)),
		bin(graph.Min, tensor.F32, v(1, inf), v(2, nan), v(1, nan)),
		bin(graph.Pow, tensor.F32, v(2, 4), v(10, -0.5), v(1024, 0.5)),
		bin(graph.Pow, tensor.I32, v(3, 2, -1, 1), v(4, -1, -3, -2), v(81, 0, -1, 1)),
		bin(graph.And, tensor.Bool, v(0, 0, 1, 1), v(0, 1, 0, 1), v(0, 0, 0, 1)),
		bin(graph.Or, tensor.Bool, v(0, 0, 1, 1), v(0, 1, 0, 1), v(0, 1, 1, 1)),
		{op: graph.Add, in: []*tensor.Array{f32(s{2, 1}, 1, 2), f32(s{3}, 10, 20, 30)}, want: f32(s{2, 3}, 11, 21, 31, 12, 22, 32)},
		{op: graph.Select, in: []*tensor.Array{arr(tensor.Bool, s{2, 1}, 1, 0), grid, f32(s{}, 9)}, want: f32(s{2, 3}, 1, 2, 3, 9, 9, 9)},
		cmp(graph.EQ, 0, 1, 0, 0), cmp(graph.NE, 1, 0, 1, 1), cmp(graph.LT, 1, 0, 0, 0), cmp(graph.LE, 1, 1, 0, 0), cmp(graph.GT, 0, 0, 1, 0), cmp(graph.GE, 0, 1, 1, 0),
		conv(tensor.I32, f32(s{4}, 1.9, -1.9, 3e9, nan), arr(tensor.I32, s{4}, 1, -1, math.MaxInt32, 0)),
		conv(tensor.U8, f32(s{3}, -5, 300, 7.5), arr(tensor.U8, s{3}, 0, 255, 7)),
		conv(tensor.U8, arr(tensor.I32, s{2}, 257, -1), arr(tensor.U8, s{2}, 1, 255)),
		conv(tensor.Bool, f32(s{3}, 0, 0.5, nan), arr(tensor.Bool, s{3}, 0, 1, 1)),
		conv(tensor.F32, tensor.FromInt64([]int64{1<<53 + 1}, 1), f32(s{1}, 1<<53)),
		conv(tensor.BF16, f32(s{1}, 1.01), arr(tensor.BF16, s{1}, 1.0078125)),
		{op: graph.Iota, attr: graph.IotaAttr{Type: graph.Type{DType: tensor.I32, Shape: s{2, 3}}, Axis: 1}, want: arr(tensor.I32, s{2, 3}, 0, 1, 2, 0, 1, 2)},
		{op: graph.Reshape, attr: graph.ReshapeAttr{Shape: s{3, 2}}, in: []*tensor.Array{grid}, want: f32(s{3, 2}, 1, 2, 3, 4, 5, 6)},
		{op: graph.OptimizeBarrier, in: []*tensor.Array{grid}, want: grid},
		{op: graph.Transpose, attr: graph.TransposeAttr{Perm: []int{1, 0}}, in: []*tensor.Array{grid}, want: f32(s{3, 2}, 1, 4, 2, 5, 3, 6)},
		{op: graph.BroadcastInDim, attr: graph.BroadcastInDimAttr{Shape: s{2, 3}, Axes: []int{0}}, in: []*tensor.Array{f32(s{2}, 1, 2)}, want: f32(s{2, 3}, 1, 1, 1, 2, 2, 2)},
		{op: graph.Slice, attr: graph.SliceAttr{Start: []int{0, 0}, Limit: []int{2, 3}, Stride: []int{1, 2}}, in: []*tensor.Array{grid}, want: f32(s{2, 2}, 1, 3, 4, 6)},
		{op: graph.Pad, attr: graph.PadAttr{Low: []int{1}, High: []int{-1}, Interior: []int{1}}, in: []*tensor.Array{f32(s{3}, 1, 2, 3), f32(s{}, 9)}, want: f32(s{5}, 9, 1, 9, 2, 9)},
		{op: graph.Concatenate, attr: graph.ConcatenateAttr{Axis: 1}, in: []*tensor.Array{f32(s{2, 1}, 7, 8), grid}, want: f32(s{2, 4}, 7, 1, 2, 3, 8, 4, 5, 6)},
		{op: graph.Gather, in: []*tensor.Array{grid, arr(tensor.I32, s{3}, 1, -4, 9)}, want: f32(s{3, 3}, 4, 5, 6, 1, 2, 3, 4, 5, 6)},
		{op: graph.DynamicSlice, attr: graph.DynamicSliceAttr{Sizes: []int{1, 2}}, in: []*tensor.Array{grid, arr(tensor.I32, s{}, 1), arr(tensor.I32, s{}, 5)}, want: f32(s{1, 2}, 5, 6)},
		{op: graph.DynamicUpdate, in: []*tensor.Array{grid, f32(s{1, 1}, 0), arr(tensor.I32, s{}, 1), arr(tensor.I32, s{}, 0)}, want: f32(s{2, 3}, 1, 2, 3, 0, 5, 6)},
		{op: graph.Reduce, attr: graph.ReduceAttr{Kind: graph.ReduceSum, Axes: []int{0}}, in: []*tensor.Array{grid}, want: f32(s{3}, 5, 7, 9)},
		{op: graph.Reduce, attr: graph.ReduceAttr{Kind: graph.ReduceMax, Axes: []int{1}}, in: []*tensor.Array{grid}, want: f32(s{2}, 3, 6)},
		{op: graph.Reduce, attr: graph.ReduceAttr{Kind: graph.ReduceMin, Axes: []int{0, 1}}, in: []*tensor.Array{f32(s{2, 1}, 1, nan)}, want: f32(s{}, nan)},
		{op: graph.Reduce, attr: graph.ReduceAttr{Kind: graph.ReduceProd, Axes: []int{1}}, in: []*tensor.Array{grid}, want: f32(s{2}, 6, 120)},
		{op: graph.DotGeneral, attr: graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{1}}, in: []*tensor.Array{grid, f32(s{1, 3}, 1, 0, 2)}, want: f32(s{2, 1}, 7, 16)},
		{op: graph.DotGeneral, attr: graph.DotGeneralAttr{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{1}, RhsContract: []int{1}}, in: []*tensor.Array{grid, grid}, want: f32(s{2}, 14, 77)},
		{op: graph.DotGeneral, attr: graph.DotGeneralAttr{LhsContract: []int{0}, RhsContract: []int{0}, Out: tensor.I32}, in: []*tensor.Array{arr(tensor.I8, s{2}, 100, 100), arr(tensor.I8, s{2}, 100, 100)}, want: arr(tensor.I32, s{}, 20000)},
		// Four 2×2 windows of a 3×3 image with padding only below and right of it would be 3×3; with stride 2 they are 2×2.
		{op: graph.Convolution, attr: graph.ConvolutionAttr{Stride: [2]int{2, 2}, High: [2]int{1, 1}, Bias: true},
			in:   []*tensor.Array{f32(s{1, 3, 3, 1}, 1, 2, 3, 4, 5, 6, 7, 8, 9), f32(s{1, 1, 2, 2}, 1, 10, 100, 1000), f32(s{1}, 0.5)},
			want: f32(s{1, 2, 2, 1}, 5421.5, 603.5, 87.5, 9.5)},
		{op: graph.Linear, attr: graph.LinearAttr{Bias: true}, in: []*tensor.Array{grid, f32(s{1, 3}, 1, 1, 1), f32(s{1}, 0.5)}, want: f32(s{2, 1}, 6.5, 15.5)},
		// The row's scale is 127/127, so it is rounded to 127, 2, -4, 0; the second is zero, the third infinite.
		{op: graph.QuantizedLinear, attr: graph.QuantizedLinearAttr{Bias: true},
			in: []*tensor.Array{
				f32(s{3, 4}, 127, 2.5, -3.5, 0.5, 0, 1e-40, 0, 0, 1, inf, 1, 1), arr(tensor.I8, s{2, 4}, 1, 1, 1, 100, -1, 0, 0, 0),
				f32(s{2}, 0.5, 2), f32(s{2}, 0.25, 0),
			},
			want: f32(s{3, 2}, 62.75, -254, 0.25, 0, nan, nan)},
		{op: graph.RMSNorm, attr: graph.RMSNormAttr{Weight: true}, in: []*tensor.Array{f32(s{1, 2}, 1, 7), f32(s{2}, 1, 2)}, want: f32(s{1, 2}, 0.2, 2.8)},
		{op: graph.LayerNorm, attr: graph.LayerNormAttr{}, in: []*tensor.Array{f32(s{1, 2}, 1, 5)}, want: f32(s{1, 2}, -1, 1)},
		{op: graph.GroupNorm, attr: graph.GroupNormAttr{Groups: 2}, in: []*tensor.Array{f32(s{1, 2, 2}, 1, 10, 5, 20), f32(s{2}, 1, 1), f32(s{2}, 0, 3)}, want: f32(s{1, 2, 2}, -1, 2, 1, 4)},
		{op: graph.Softmax, in: []*tensor.Array{f32(s{2, 2}, 0, 0, 5, -inf)}, want: f32(s{2, 2}, 0.5, 0.5, 1, 0)},
		{op: graph.Attention, attr: graph.AttentionAttr{Scale: 1, Causal: true}, in: []*tensor.Array{f32(s{1, 2, 1, 2}, 0, 0, 0, 0), f32(s{1, 2, 1, 2}, 1, 2, 3, 4), f32(s{1, 2, 1, 2}, 2, 4, 6, 8)}, want: f32(s{1, 2, 1, 2}, 2, 4, 4, 6)},
		{op: graph.Attention, attr: graph.AttentionAttr{Scale: 1, Mask: true}, in: []*tensor.Array{f32(s{1, 1, 1, 1}, 1), f32(s{1, 2, 1, 1}, 1, 2), f32(s{1, 2, 1, 1}, 5, 6), arr(tensor.Bool, s{1, 1, 1, 2}, 0, 0)}, want: f32(s{1, 1, 1, 1}, 0)},
		{op: graph.Rope, attr: graph.RopeAttr{}, in: []*tensor.Array{f32(s{1, 1, 1, 4}, 1, 2, 3, 4), f32(s{1, 4}, 0, 0, 1, 1), f32(s{1, 4}, 1, 1, 0, 0)}, want: f32(s{1, 1, 1, 4}, -2, 1, 3, 4)},
		{op: graph.Rope, attr: graph.RopeAttr{HalfSplit: true}, in: []*tensor.Array{f32(s{1, 1, 1, 4}, 1, 2, 3, 4), f32(s{1, 4}, 0, 1, 0, 1), f32(s{1, 4}, 1, 0, 1, 0)}, want: f32(s{1, 1, 1, 4}, -3, 2, 1, 4)},
		{op: graph.Gelu, attr: graph.GeluAttr{Form: graph.ActGelu}, in: []*tensor.Array{f32(s{1}, 1)}, want: f32(s{1}, 0.8413447460685429)},
		{op: graph.Silu, in: []*tensor.Array{f32(s{2}, 0, 1)}, want: f32(s{2}, 0, 0.7310585786300049)},
		{op: graph.Modulate, in: []*tensor.Array{grid, f32(s{3}, 0, 1, 2), f32(s{}, 5)}, want: f32(s{2, 3}, 6, 9, 14, 9, 15, 23)},
		{op: graph.UpsampleNearest, attr: graph.UpsampleAttr{Factor: 2}, in: []*tensor.Array{f32(s{1, 1, 2, 1}, 1, 2)}, want: f32(s{1, 2, 4, 1}, 1, 1, 2, 2, 1, 1, 2, 2)},
		{op: graph.UpsampleConv, attr: graph.UpsampleConvAttr{Bias: true}, in: []*tensor.Array{f32(s{1, 1, 1, 1}, 1), f32(s{1, 1, 3, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9), f32(s{1}, 0.5)},
			want: f32(s{1, 2, 2, 1}, 28.5, 24.5, 16.5, 12.5)},
	}
	seen := map[graph.Op]bool{graph.Input: true, graph.Constant: true}
	for i, c := range cases {
		seen[c.op] = true
		t.Run(fmt.Sprintf("%d %s", i, c.op), c.check)
	}
	graph.Ops(func(op graph.Op) {
		if !seen[op] {
			t.Errorf("no case for %s", op)
		}
	})
}

type testCase struct {
	op   graph.Op
	attr graph.Attr
	in   []*tensor.Array
	want *tensor.Array
}

func (c testCase) check(t *testing.T) {
	inputs := make([]*graph.Node, len(c.in))
	before := make([]*tensor.Array, len(c.in))
	for i, a := range c.in {
		inputs[i] = graph.NewInput(i, graph.Type{DType: a.DType, Shape: a.Shape})
		before[i] = a.Clone()
	}
	n, err := graph.Make(c.op, c.attr, inputs...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New("test", inputs, []*graph.Node{n})
	if err != nil {
		t.Fatal(err)
	}
	out, err := interp.Eval(g, c.in)
	if err != nil {
		t.Fatal(err)
	}
	got := out[0]
	if got.DType != c.want.DType || !got.Shape.Equal(c.want.Shape) {
		t.Fatalf("got %s, expected %s", got, c.want)
	}
	x, y := got.Float64s(), c.want.Float64s()
	for i := range y {
		if x[i] != y[i] && !(math.IsNaN(x[i]) && math.IsNaN(y[i])) && !(math.Abs(x[i]-y[i]) <= 1.2e-7*math.Abs(y[i]) && n.Op.IsComposite()) {
			t.Errorf("element %d is %.9g, expected %.9g", i, x[i], y[i])
		}
	}
	for i, a := range c.in {
		if string(a.Data) != string(before[i].Data) {
			t.Errorf("input %d was changed", i)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: s{3}})
	g, err := graph.New("test", []*graph.Node{x}, []*graph.Node{x})
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string][]*tensor.Array{
		"none": nil, "too many": {f32(s{3}, 1, 2, 3), f32(s{3}, 1, 2, 3)}, "another shape": {f32(s{2}, 1, 2)},
		"another dtype": {arr(tensor.F64, s{3}, 1, 2, 3)}, "too few bytes": {{DType: tensor.F32, Shape: s{3}, Data: make([]byte, 8)}},
	} {
		if _, err := interp.Eval(g, in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
