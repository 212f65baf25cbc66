package mosaic

import (
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// A result takes over a donated input's memory unless it is the input's sum with a product.
func TestApart(t *testing.T) {
	product := func(b *graph.Builder, x *graph.Node, in []*graph.Node) *graph.Node {
		return b.Make(graph.Mul, nil, in[1], b.Make(graph.Linear, graph.LinearAttr{}, x, in[2]))
	}
	for name, c := range map[string]struct {
		result func(b *graph.Builder, in []*graph.Node) *graph.Node
		alias  bool
	}{
		"sum with a product": {func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Make(graph.Add, nil, in[0], product(b, in[0], in))
		}, false},
		"sum of a sum": {func(b *graph.Builder, in []*graph.Node) *graph.Node {
			x := b.Make(graph.Add, nil, in[0], product(b, in[0], in))
			return b.Make(graph.Add, nil, x, product(b, x, in))
		}, true},
		"product": {func(b *graph.Builder, in []*graph.Node) *graph.Node { return product(b, in[0], in) }, true},
		"sum": {func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Make(graph.Add, nil, in[0], b.Make(graph.Tanh, nil, in[0]))
		}, true},
	} {
		b := &graph.Builder{}
		typ := graph.Type{DType: tensor.F32, Shape: tensor.Shape{8, 8}}
		in := []*graph.Node{graph.NewInput(0, typ), graph.NewInput(1, typ), graph.NewInput(2, typ)}
		y := c.result(b, in)
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		g, err := graph.New("block", in, []*graph.Node{y})
		if err != nil {
			t.Fatal(err)
		}
		g.Donated = []int{0}
		text, err := stablehlo.Text(g, Options(chips[0], true))
		if err != nil {
			t.Fatal(err)
		}
		if alias := strings.Contains(text, "%arg0: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}"); alias != c.alias || strings.Contains(text, "donor") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
