package cpu

import (
	"math"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// TestAgainstInterpreter: what is too large, or too rare, for the table that all backends pass.
func TestAgainstInterpreter(t *testing.T) {
	f32 := func(shape ...int) graph.Type { return graph.Type{DType: tensor.F32, Shape: shape} }
	for _, c := range []struct {
		name  string
		types []graph.Type
		op    graph.Op
		attr  graph.Attr
	}{
		{"group norm of several pieces", []graph.Type{f32(2, 31, 29, 8), f32(8), f32(8)}, graph.GroupNorm, graph.GroupNormAttr{Groups: 2, Eps: 1e-6}},
		{"group norm and silu in bf16", []graph.Type{bf16(1, 31, 29, 8), bf16(8), bf16(8)}, graph.GroupNorm, graph.GroupNormAttr{Groups: 4, Eps: 1e-6, Silu: true}},
		{"attention of scale 0", []graph.Type{f32(1, 5, 2, 8), f32(1, 9, 2, 8), f32(1, 9, 2, 8)}, graph.Attention, graph.AttentionAttr{}},
	} {
		var nodes []*graph.Node
		var arrays []*tensor.Array
		for i, typ := range c.types {
			nodes = append(nodes, graph.NewInput(i, typ))
			// Later elements are larger, so that none can be left out.
			v := random(f32(typ.Shape...)).Float32s()
			for k := range v {
				v[k] *= float32(1+8*k) / float32(len(v))
			}
			a, err := tensor.FromFloat32(v, typ.Shape...).Convert(typ.DType)
			if err != nil {
				t.Fatal(err)
			}
			arrays = append(arrays, a)
		}
		n, err := graph.Make(c.op, c.attr, nodes...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := interp.Apply(n, arrays)
		if err != nil {
			t.Fatal(err)
		}
		tolerance := 1e-5
		if n.DType == tensor.BF16 {
			tolerance = 0x1p-7
		}
		for _, level := range isa.Available() {
			client := newClient(t, Options{ISA: level.String()})
			var args []backend.Buffer
			for _, a := range arrays {
				b, err := client.Upload(a, 0)
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, b)
			}
			e := compiled(t, client, c.types, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
				return []*graph.Node{l.Make(c.op, c.attr, in...)}
			})
			got := &tensor.Array{DType: n.DType, Shape: n.Shape, Data: results(t, e, args...)[0]}
			exact := values(t, want)
			for i, g := range values(t, got) {
				if d := math.Abs(float64(g - exact[i])); !(d <= tolerance*(1+math.Abs(float64(exact[i])))) {
					t.Errorf("%s, %v: element %d is %g, expected %g", c.name, level, i, g, exact[i])
					break
				}
			}
		}
	}
}

func values(t *testing.T, a *tensor.Array) []float32 {
	t.Helper()
	f, err := a.Convert(tensor.F32)
	if err != nil {
		t.Fatal(err)
	}
	return f.Float32s()
}

// TestIntegerBetweenFloats: a number that is made an integer and a float again has lost its fraction, though all of it is fused.
func TestIntegerBetweenFloats(t *testing.T) {
	x := tensor.FromFloat32([]float32{-2.75, -0.5, 0, 0.5, 1.99, 1e6 + 0.5}, 6)
	c := newClient(t, Options{})
	b, err := c.Upload(x, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []tensor.DType{tensor.I32, tensor.I64} {
		e := compiled(t, c, []graph.Type{{DType: tensor.F32, Shape: x.Shape}}, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
			to := func(x *graph.Node, d tensor.DType) *graph.Node {
				return l.Make(graph.Convert, graph.ConvertAttr{DType: d}, x)
			}
			return []*graph.Node{l.Make(graph.Abs, nil, to(to(l.Make(graph.Neg, nil, in[0]), d), tensor.F32))}
		})
		got := &tensor.Array{DType: tensor.F32, Shape: x.Shape, Data: results(t, e, b)[0]}
		for i, v := range x.Float32s() {
			if want := float32(math.Trunc(math.Abs(float64(v)))); got.Float32s()[i] != want {
				t.Errorf("%v: %g became %g, expected %g", d, v, got.Float32s()[i], want)
			}
		}
	}
}
