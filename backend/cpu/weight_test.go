package cpu

import (
	"bytes"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// compiled compiles what build makes of inputs of the given types.
func compiled(t *testing.T, c *Client, types []graph.Type, build func(l *graph.Builder, in []*graph.Node) []*graph.Node) backend.Executable {
	t.Helper()
	in := make([]*graph.Node, len(types))
	for i, typ := range types {
		in[i] = graph.NewInput(i, typ)
	}
	l := &graph.Builder{}
	out := build(l, in)
	if l.Err != nil {
		t.Fatal(l.Err)
	}
	g, err := graph.New("test", in, out)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Compile(t.Context(), g, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func results(t *testing.T, e backend.Executable, args ...backend.Buffer) [][]byte {
	t.Helper()
	outs, _, err := e.Run(args)
	if err != nil {
		t.Fatal(err)
	}
	var list [][]byte
	for _, o := range outs {
		a, err := o.Read()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a.Data)
		o.Free()
	}
	return list
}

// weighted is an operation with a weight, on inputs of m rows.
type weighted struct {
	name   string
	weight tensor.Shape
	input  func(m int) tensor.Shape
	op     func(l *graph.Builder, x, w *graph.Node) *graph.Node
}

var weightedOps = []weighted{
	{"linear", tensor.Shape{200, 150}, func(m int) tensor.Shape { return tensor.Shape{m, 150} },
		func(l *graph.Builder, x, w *graph.Node) *graph.Node {
			return l.Make(graph.Linear, graph.LinearAttr{}, x, w)
		}},
	convolved("convolution", tensor.Shape{70, 50, 3, 3}, graph.ConvolutionAttr{Stride: [2]int{1, 1}, Low: [2]int{1, 1}, High: [2]int{1, 1}}),
	convolved("strided convolution", tensor.Shape{160, 48, 3, 2}, graph.ConvolutionAttr{Stride: [2]int{2, 1}, High: [2]int{2, 0}}),
	convolved("pointwise convolution", tensor.Shape{96, 40, 1, 1}, graph.ConvolutionAttr{Stride: [2]int{1, 1}}),
}

func convolved(name string, w tensor.Shape, a graph.ConvolutionAttr) weighted {
	return weighted{name, w, func(m int) tensor.Shape { return tensor.Shape{1, m, 5, w[1]} },
		func(l *graph.Builder, x, w *graph.Node) *graph.Node { return l.Make(graph.Convolution, a, x, w) }}
}

func TestParameterIsPackedOnceAndStaysTheSame(t *testing.T) {
	for _, level := range isa.Available() {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
			for _, mapped := range []bool{false, true} {
				for _, op := range weightedOps {
					t.Run(level.String()+" "+d.String()+" "+op.name, func(t *testing.T) { testParameter(t, level, d, mapped, op) })
				}
			}
		}
	}
}

func testParameter(t *testing.T, level isa.Level, d tensor.DType, mapped bool, op weighted) {
	c, err := New(Options{ISA: level.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.packing.now = stopped
	wt := graph.Type{DType: d, Shape: op.weight}
	w := random(wt)
	want := bytes.Clone(w.Data)
	upload := func(a *tensor.Array) backend.Buffer {
		b, err := c.Upload(a, 0)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain, param := upload(w), upload(w)
	released := 0
	var release func()
	if mapped {
		release = func() { released++ }
	}
	param.(backend.Parameter).MarkParameter(release)
	for _, m := range []int{1, 77, 3, 300} {
		xt := graph.Type{DType: d, Shape: op.input(m)}
		x := upload(random(xt))
		e := compiled(t, c, []graph.Type{xt, wt}, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{op.op(l, in[0], in[1])}
		})
		for range 2 {
			if a, b := results(t, e, x, plain), results(t, e, x, param); !bytes.Equal(a[0], b[0]) {
				t.Fatalf("%d rows: the packed weight gives other bits", m)
			}
		}
	}
	v := param.(*buffer).v
	packed := v.param.packed
	if packs := d == tensor.F32 || d == tensor.BF16 && level >= isa.AVX2; packs != (packed != nil) {
		t.Fatalf("packed: %v, want %v", packed != nil, packs)
	}
	switch {
	case packed == nil:
	case mapped && released != 1:
		t.Errorf("the mapped weight was released %d times, want once", released)
	case !mapped && v.block != nil:
		t.Error("the weight is still held beside its packed form")
	}
	if a, err := param.Read(); err != nil || !bytes.Equal(a.Data, want) {
		t.Fatalf("the parameter reads otherwise than it was uploaded (%v)", err)
	}
	// One program uses it in both ways.
	xt := graph.Type{DType: d, Shape: op.input(4)}
	x := upload(random(xt))
	both := compiled(t, c, []graph.Type{xt, wt}, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
		return []*graph.Node{op.op(l, in[0], in[1]), l.Make(graph.Neg, nil, in[1])}
	})
	a, b := results(t, both, x, plain), results(t, both, x, param)
	if !bytes.Equal(a[0], b[0]) || !bytes.Equal(a[1], b[1]) {
		t.Error("a program that negates the weight and multiplies with it gives other bits")
	}
	if v.param.packed != packed {
		t.Error("packed again")
	}
	param.Free()
	if err := c.Sync(0); err != nil {
		t.Fatal(err)
	}
	if used := c.MemoryInUse(); used > 8<<10 {
		t.Errorf("%d bytes in use after the parameter was freed", used)
	}
}

func TestWeightOfTwoTypesOfRows(t *testing.T) {
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wt := graph.Type{DType: tensor.F32, Shape: tensor.Shape{64, 64}}
	xt := graph.Type{DType: tensor.F32, Shape: tensor.Shape{2, 64}}
	w, _ := c.Upload(random(wt), 0)
	x, _ := c.Upload(random(xt), 0)
	e := compiled(t, c, []graph.Type{xt, wt}, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
		turned := l.Make(graph.Transpose, graph.TransposeAttr{Perm: []int{1, 0}}, in[1])
		y := l.Make(graph.Linear, graph.LinearAttr{}, in[0], in[1])
		return []*graph.Node{l.Make(graph.Linear, graph.LinearAttr{}, y, turned), y}
	})
	want := results(t, e, x, w)
	w.(backend.Parameter).MarkParameter(nil)
	for range 2 {
		if got := results(t, e, x, w); !bytes.Equal(got[0], want[0]) || !bytes.Equal(got[1], want[1]) {
			t.Fatal("a weight that is used turned as well gives other bits once it is packed")
		}
	}
}

// TestWeightInTwoPrograms: what one program has packed as a convolution's weight, another takes as the matrix of the same size.
func TestWeightInTwoPrograms(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		c := newClient(t, Options{})
		c.packing.now = stopped
		wt := graph.Type{DType: d, Shape: tensor.Shape{32, 16, 3, 3}}
		images, rows := graph.Type{DType: d, Shape: tensor.Shape{1, 5, 6, 16}}, graph.Type{DType: d, Shape: tensor.Shape{7, 144}}
		var args []backend.Buffer
		for _, typ := range []graph.Type{images, rows, wt, wt} {
			b, err := c.Upload(random(typ), 0)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, b)
		}
		w, param := args[2], args[3]
		param.(backend.Parameter).MarkParameter(nil)
		one := [2]int{1, 1}
		convolve := compiled(t, c, []graph.Type{images, wt}, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{l.Make(graph.Convolution, graph.ConvolutionAttr{Stride: one, Low: one, High: one}, in...)}
		})
		multiply := compiled(t, c, []graph.Type{rows, wt}, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{l.Make(graph.Linear, graph.LinearAttr{}, in[0], l.Reshape(in[1], 32, 144))}
		})
		for range 2 {
			if !bytes.Equal(results(t, convolve, args[0], param)[0], results(t, convolve, args[0], w)[0]) {
				t.Errorf("%v: the convolution gives other bits with a parameter", d)
			}
			if !bytes.Equal(results(t, multiply, args[1], param)[0], results(t, multiply, args[1], w)[0]) {
				t.Errorf("%v: the product gives other bits with a parameter that a convolution has packed", d)
			}
		}
	}
}
