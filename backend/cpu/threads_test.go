package cpu

import (
	"bytes"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// TestThreadsLarge runs what is large enough for every kernel to divide its work, with one thread and with several, on one
// node and on two.
func TestThreadsLarge(t *testing.T) {
	f32 := func(shape ...int) graph.Type { return graph.Type{DType: tensor.F32, Shape: shape} }
	types := []graph.Type{
		bf16(1, 300, 256), bf16(1, 1, 256), bf16(768, 256), bf16(768), f32(300, 64), bf16(1, 40, 50, 64), bf16(96, 64, 3, 3), bf16(96),
		{DType: tensor.I32, Shape: tensor.Shape{3000}}, f32(500, 128), f32(2, 130, 70), f32(2, 70, 90),
	}
	b := &graph.Builder{}
	in := make([]*graph.Node, len(types))
	arrays := make([]*tensor.Array, len(types))
	for i, ty := range types {
		in[i], arrays[i] = graph.NewInput(i, ty), random(ty)
	}
	x := b.Make(graph.Modulate, nil, b.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, in[0]), in[1], in[1])
	qkv := b.Make(graph.Linear, graph.LinearAttr{Bias: true}, x, in[2], in[3])
	head := func(i int) *graph.Node {
		s := b.Make(graph.Slice, graph.SliceAttr{Start: []int{0, 0, i * 256}, Limit: []int{1, 300, (i + 1) * 256}, Stride: []int{1, 1, 1}}, qkv)
		return b.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6}, b.Reshape(s, 1, 300, 4, 64))
	}
	rope := func(x *graph.Node) *graph.Node { return b.Make(graph.Rope, graph.RopeAttr{}, x, in[4], in[4]) }
	o := b.Make(graph.Attention, graph.AttentionAttr{Scale: 0.125}, rope(head(0)), rope(head(1)), head(2))
	one := [2]int{1, 1}
	img := b.Make(graph.Convolution, graph.ConvolutionAttr{Stride: one, Low: one, High: one, Bias: true}, in[5], in[6], in[7])
	norm := b.Make(graph.GroupNorm, graph.GroupNormAttr{Groups: 32, Eps: 1e-6, Silu: true}, img, in[7], in[7])
	up := b.Make(graph.UpsampleNearest, graph.UpsampleAttr{Factor: 2}, norm)
	rows := b.Make(graph.Softmax, nil, b.Make(graph.Gather, nil, in[9], in[8]))
	batch := b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsBatch: []int{0}, RhsBatch: []int{0}, LhsContract: []int{2}, RhsContract: []int{1}}, in[10], in[11])
	turned := b.Make(graph.Transpose, graph.TransposeAttr{Perm: []int{0, 3, 1, 2}}, up)
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	outs := []*graph.Node{o, norm, up, rows, batch, b.Make(graph.Tanh, nil, b.Make(graph.Add, nil, rows, rows)), turned}
	g, err := graph.New("large", in, outs)
	if err != nil {
		t.Fatal(err)
	}
	var want []*tensor.Array
	for _, on := range []struct {
		threads int
		nodes   [][]int
	}{{1, nil}, {2, nil}, {5, nil}, {2, [][]int{{0}, {1}}}, {5, [][]int{{0}, {1}}}} {
		c := newClient(t, Options{Threads: on.threads})
		c.par.Close()
		c.par = par.NewOn(on.threads, on.nodes)
		e, err := c.Compile(t.Context(), g, 0)
		if err != nil {
			t.Fatal(err)
		}
		args := make([]backend.Buffer, len(arrays))
		for i, a := range arrays {
			if args[i], err = c.Upload(a, 0); err != nil {
				t.Fatal(err)
			}
		}
		res, _, err := e.Run(args)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range res {
			a, err := r.Read()
			if err != nil {
				t.Fatal(err)
			}
			if len(want) <= i {
				if a.FirstNonFinite() >= 0 {
					t.Fatalf("output %d is not finite", i)
				}
				want = append(want, a)
			} else if !bytes.Equal(a.Data, want[i].Data) {
				t.Errorf("output %d (%s) differs with %d threads on %d nodes", i, outs[i].Op, on.threads, c.par.Nodes())
			}
		}
	}
}
