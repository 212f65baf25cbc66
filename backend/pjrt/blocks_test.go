package pjrt

import (
	"math"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// Blocks that are written as one function compute what they computed. They have two outputs each, and one input that is
// the same for all, so that every kind of operand occurs.
func TestBlocksCompute(t *testing.T) {
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{4, 4}})
	scale := graph.NewInput(1, graph.Type{DType: tensor.F32, Shape: tensor.Shape{4}})
	in := []*graph.Node{x, scale}
	b := &graph.Builder{}
	h, side := x, x
	for k := range 7 {
		w := graph.NewInput(2+k, x.Type)
		in = append(in, w)
		y := b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}, h, w)
		y = b.Make(graph.Mul, nil, b.Make(graph.Tanh, nil, y), scale)
		side = b.Make(graph.Max, nil, side, b.Make(graph.Sub, nil, y, h))
		h = b.Make(graph.Add, nil, b.Make(graph.Mul, nil, h, y), side)
	}
	g, err := graph.New("blocks", in, []*graph.Node{h, side})
	if err != nil || b.Err != nil {
		t.Fatal(err, b.Err)
	}
	host := make([]*tensor.Array, len(in))
	for i, n := range in {
		host[i] = tensor.New(tensor.F32, n.Shape...)
		for j := range host[i].Float32s() {
			host[i].Float32s()[j] = float32(math.Sin(float64(7*i + 3*j)))
		}
	}
	want, err := interp.Eval(g, host)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := (Options{}).Program(g); err != nil || strings.Count(string(p.Text), "call @block0") < 6 {
		t.Fatalf("the program has no blocks: %v\n%s", err, p.Text)
	}
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{})
		e, err := c.Compile(t.Context(), g, 0)
		if err != nil {
			t.Fatal(err)
		}
		var args []backend.Buffer
		for _, a := range host {
			buf, err := c.Upload(a, 0)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, buf)
		}
		out, _, err := e.Run(args)
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			got, err := out[i].Read()
			if err != nil {
				t.Fatal(err)
			}
			for j, v := range got.Float32s() {
				if w := want[i].Float32s()[j]; math.Abs(float64(v-w)) > 1e-4*max(1, math.Abs(float64(w))) {
					t.Errorf("output %d, element %d: %g, expected %g", i, j, v, w)
				}
			}
		}
	})
}
