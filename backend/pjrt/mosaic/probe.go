package mosaic

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Probe returns a small program with every kernel. A compiler that takes it takes the others.
func Probe() (*graph.Graph, error) {
	const tokens, heads, size = 160, 2, 128
	in := func(i int, d tensor.DType, shape ...int) *graph.Node {
		return graph.NewInput(i, graph.Type{DType: d, Shape: shape})
	}
	inputs := []*graph.Node{
		in(0, tensor.BF16, 1, tokens, heads, size), in(1, tensor.BF16, 1, tokens, heads, size), in(2, tensor.BF16, 1, tokens, heads, size),
		in(3, tensor.BF16, size), in(4, tensor.F32, tokens, size), in(5, tensor.F32, tokens, size),
		in(6, tensor.BF16, 1, 1, heads*size), in(7, tensor.BF16, 1, 1, heads*size),
	}
	b := &graph.Builder{}
	rotated := func(x *graph.Node) *graph.Node {
		n := b.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, x, inputs[3])
		return b.Make(graph.Rope, graph.RopeAttr{}, n, inputs[4], inputs[5])
	}
	o := b.Make(graph.Attention, graph.AttentionAttr{Scale: 0.125}, rotated(inputs[0]), rotated(inputs[1]), inputs[2])
	o = b.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, b.Reshape(o, 1, tokens, heads*size))
	o = b.Make(graph.Modulate, nil, o, inputs[6], inputs[7])
	if b.Err != nil {
		return nil, b.Err
	}
	return graph.New("probe", inputs, []*graph.Node{o})
}
