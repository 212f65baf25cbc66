package mosaic

import (
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Programs call the kernels: attention, norm and rotation of queries and of keys, norm and modulation. Without kernels,
// attention is a loop over blocks, and nothing has the size of all scores.
func TestProgram(t *testing.T) {
	g, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chips {
		text, err := stablehlo.Text(g, Options(c, true))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int{"gesso_attention": 1, "gesso_norm_rope": 2, "gesso_norm_modulate": 1} {
			if n := strings.Count(text, `kernel_name = "`+name+`"`); n != want {
				t.Errorf("%s: %d calls of %s, expected %d", c.Generation, n, name, want)
			}
		}
		if text, err = stablehlo.Text(g, Options(c, false)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "custom_call") || strings.Count(text, "stablehlo.while") != 2 {
			t.Errorf("%s without kernels:\n%s", c.Generation, text)
		}
	}
}

// An activation is stored before the next product; attention is not copied to what is joined to it, but written there.
func TestLayout(t *testing.T) {
	const tokens, heads, size, hidden = 160, 2, 128, 384
	in := func(i int, shape ...int) *graph.Node {
		return graph.NewInput(i, graph.Type{DType: tensor.BF16, Shape: shape})
	}
	inputs := []*graph.Node{
		in(0, 1, tokens, heads, size), in(1, 1, tokens, heads*size), in(2, hidden, heads*size), in(3, 64, hidden), in(4, 64, heads*size+hidden),
	}
	b := &graph.Builder{}
	o := b.Reshape(b.Make(graph.Attention, graph.AttentionAttr{Scale: 0.125}, inputs[0], inputs[0], inputs[0]), 1, tokens, heads*size)
	h := b.Make(graph.Linear, graph.LinearAttr{Act: graph.ActGeluTanh}, inputs[1], inputs[2])
	two := b.Make(graph.Linear, graph.LinearAttr{}, h, inputs[3])
	joined := b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: 2}, o, h)
	out := b.Make(graph.Add, nil, two, b.Make(graph.Linear, graph.LinearAttr{}, joined, inputs[4]))
	g, err := graph.New("layout", inputs, []*graph.Node{out})
	if err != nil || b.Err != nil {
		t.Fatal(err, b.Err)
	}
	for _, kernels := range []bool{true, false} {
		text, err := stablehlo.Text(g, Options(chips[0], kernels))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, "optimization_barrier"); n != 1 {
			t.Errorf("%d barriers, expected 1", n)
		}
		update := strings.Contains(text, "dynamic_update_slice") && strings.Contains(text, "-> tensor<160x640xbf16>")
		if joins := strings.Contains(text, "concatenate"); kernels && (joins || !update) || !kernels && !joins {
			t.Errorf("kernels %v:\n%s", kernels, text)
		}
	}
}

// Products that are joined along the sequence are written into one value; other values are joined.
func TestJoin(t *testing.T) {
	const text, picture, heads, size, width = 32, 160, 2, 128, 64
	in := func(i int, shape ...int) *graph.Node {
		return graph.NewInput(i, graph.Type{DType: tensor.BF16, Shape: shape})
	}
	inputs := []*graph.Node{in(0, 1, text, width), in(1, 1, picture, width), in(2, heads*size, width), in(3, 1, text, heads*size), in(4, 1, picture, heads*size)}
	for _, products := range []bool{true, false} {
		b := &graph.Builder{}
		parts := inputs[3:]
		if products {
			parts = []*graph.Node{b.Make(graph.Linear, graph.LinearAttr{}, inputs[0], inputs[2]), b.Make(graph.Linear, graph.LinearAttr{}, inputs[1], inputs[2])}
		}
		out := b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: 1}, b.Reshape(parts[0], 1, text, heads, size), b.Reshape(parts[1], 1, picture, heads, size))
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		g, err := graph.New("join", inputs, []*graph.Node{out})
		if err != nil {
			t.Fatal(err)
		}
		for _, kernels := range []bool{true, false} {
			program, err := stablehlo.Text(g, Options(chips[0], kernels))
			if err != nil {
				t.Fatal(err)
			}
			updates, want := strings.Count(program, "dynamic_update_slice"), 0
			if kernels && products {
				want = 2
			}
			if updates != want || strings.Contains(program, "concatenate") != (want == 0) {
				t.Errorf("kernels %v, products %v:\n%s", kernels, products, program)
			}
			if want > 0 && !strings.Contains(program, "constant dense<32> : tensor<i32>") {
				t.Errorf("the second part doesn't begin at row 32:\n%s", program)
			}
		}
	}
}

// Norm and rotation of joined products work in the value that the products are written into, if its parts begin where a
// block of the kernel does; otherwise their results are joined.
func TestJoinedNorms(t *testing.T) {
	const picture, heads, size, width = 160, 2, 128, 64
	for _, first := range []int{normRopeRows, 2 * normRopeRows, 32} {
		in := func(i int, d tensor.DType, shape ...int) *graph.Node {
			return graph.NewInput(i, graph.Type{DType: d, Shape: shape})
		}
		inputs := []*graph.Node{
			in(0, tensor.BF16, 1, first, width), in(1, tensor.BF16, 1, picture, width), in(2, tensor.BF16, heads*size, width), in(3, tensor.BF16, size),
			in(4, tensor.F32, first+picture, size), in(5, tensor.F32, first+picture, size),
		}
		b := &graph.Builder{}
		normed := func(x *graph.Node) *graph.Node {
			h := b.Reshape(b.Make(graph.Linear, graph.LinearAttr{}, x, inputs[2]), 1, x.Shape[1], heads, size)
			return b.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, h, inputs[3])
		}
		x := b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: 1}, normed(inputs[0]), normed(inputs[1]))
		out := b.Make(graph.Rope, graph.RopeAttr{}, x, inputs[4], inputs[5])
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		g, err := graph.New("norms", inputs, []*graph.Node{out})
		if err != nil {
			t.Fatal(err)
		}
		program, err := stablehlo.Text(g, Options(chips[0], true))
		if err != nil {
			t.Fatal(err)
		}
		joins, want := strings.Count(program, "concatenate"), 0
		if first%normRopeRows != 0 {
			want = 1
		}
		if joins != want || strings.Count(program, `kernel_name = "gesso_norm_rope"`) != 2 || strings.Count(program, "dynamic_update_slice") != 2*(1-want) {
			t.Errorf("text of %d rows:\n%s", first, program)
		}
	}
}

// Blocks of scores fit the chip's own memory, whatever the sizes.
func TestGroups(t *testing.T) {
	for _, s := range [][3]int{{24, 4608, 4608}, {24, 16896, 16896}, {1, 16384, 16384}, {1, 65536, 65536}, {48, 4608, 512}, {5, 77, 77}, {1, 1, 1}} {
		g, c := groupOf(s[0], s[1], s[2])
		if s[0]%g != 0 || c < 1 || c > s[1] || g*c*s[2]*4 > scoreBytes {
			t.Errorf("%v: groups of %d, blocks of %d", s, g, c)
		}
	}
}
