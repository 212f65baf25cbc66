package backendtest

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// compositePrograms cover every composite operation in every float dtype.
func compositePrograms() []program {
	m := newMaker(4)
	var ps []program
	for _, d := range floats {
		ps = append(ps, linearPrograms(m, d)...)
		if d != tensor.F64 {
			ps = append(ps, quantizedPrograms(m, d)...)
		}
		ps = append(ps, normPrograms(m, d)...)
		ps = append(ps, attentionPrograms(m, d)...)
		ps = append(ps, rowPrograms(m, d)...)
	}
	return ps
}

func linearPrograms(m *maker, d tensor.DType) []program {
	var ps []program
	shapes := []struct {
		x tensor.Shape
		n int
	}{
		{tensor.Shape{1}, 1}, {tensor.Shape{1, 64}, 129}, {tensor.Shape{2, 3, 17}, 15}, {tensor.Shape{15, 16}, 17}, {tensor.Shape{16, 65}, 64},
		{tensor.Shape{17, 127}, 63}, {tensor.Shape{65, 129}, 33}, {tensor.Shape{0, 16}, 3}, {tensor.Shape{1, 129, 64}, 48},
	}
	for act := graph.NoActivation; act <= graph.ActSilu; act++ {
		for _, bias := range []bool{false, true} {
			p := program{name: fmt.Sprintf("linear %s %s bias=%v", d, act, bias), tol: sums}
			for _, s := range shapes {
				k := s.x[len(s.x)-1]
				p.in = append(p.in, m.normal(d, s.x...), m.between(d, -0.3, 0.3, s.n, k), m.normal(d, s.n))
			}
			p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				var out []*graph.Node
				for i := 0; i < len(in); i += 3 {
					ops := in[i : i+2]
					if bias {
						ops = in[i : i+3]
					}
					out = append(out, b.Make(graph.Linear, graph.LinearAttr{Bias: bias, Act: act}, ops...))
				}
				return out
			}
			ps = append(ps, p)
		}
	}
	return ps
}

func quantizedPrograms(m *maker, d tensor.DType) []program {
	var ps []program
	for act := graph.NoActivation; act <= graph.ActSilu; act++ {
		for _, bias := range []bool{false, true} {
			p := program{name: fmt.Sprintf("quantized_linear %s %s bias=%v", d, act, bias), tol: sums}
			add := func(x *tensor.Array, n int) {
				k := x.Shape[len(x.Shape)-1]
				p.in = append(p.in, x, m.between(tensor.I8, -127, 128, n, k), m.between(tensor.F32, 0, 0.01, n), m.normal(d, n))
			}
			add(m.normal(d, 1), 40)
			for _, s := range []tensor.Shape{{1, 64}, {2, 3, 17}, {15, 16}, {17, 127}, {65, 129}, {0, 16}, {1, 129, 64}} {
				add(m.normal(d, s...), len(ps)+s[len(s)-1]/2+1)
			}
			rows := special(d)
			add(&tensor.Array{DType: d, Shape: tensor.Shape{rows.Shape[0], 1}, Data: rows.Data}, 5)
			add(tensor.New(d, 3, 20), 4)
			p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				var out []*graph.Node
				for i := 0; i < len(in); i += 4 {
					ops := in[i : i+3]
					if bias {
						ops = in[i : i+4]
					}
					out = append(out, b.Make(graph.QuantizedLinear, graph.QuantizedLinearAttr{Bias: bias, Act: act}, ops...))
				}
				return out
			}
			ps = append(ps, p)
		}
	}
	return ps
}

func normPrograms(m *maker, d tensor.DType) []program {
	var rows []*tensor.Array
	for _, s := range []tensor.Shape{{1}, {3, 2}, {2, 3, 15}, {5, 16}, {7, 17}, {2, 63}, {64, 64}, {1, 65}, {3, 129}, {2, 1300}, {0, 16}} {
		c := s[len(s)-1]
		rows = append(rows, m.normal(d, s...), m.normal(d, c), m.normal(d, c))
	}
	norm := func(name string, op graph.Op, attr graph.Attr, operands int) program {
		return program{fmt.Sprintf("%s %s", name, d), rows, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			var out []*graph.Node
			for i := 0; i < len(in); i += 3 {
				out = append(out, b.Make(op, attr, in[i:i+operands]...))
			}
			return out
		}, sums}
	}
	ps := []program{
		norm("rms_norm", graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6}, 1),
		norm("rms_norm weight", graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, 2),
		norm("rms_norm rounded first", graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-5, Weight: true, RoundFirst: true}, 2),
		norm("layer_norm", graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, 1),
		norm("layer_norm affine", graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-5, Affine: true}, 3),
	}
	for _, silu := range []bool{false, true} {
		p := program{name: fmt.Sprintf("group_norm %s silu=%v", d, silu), tol: sums}
		groups := []int{1, 2, 8, 3, 32, 32, 4, 1, 2}
		for _, s := range []tensor.Shape{{1, 3}, {2, 4}, {1, 5, 16}, {2, 3, 7, 15}, {1, 9, 8, 64}, {1, 4, 4, 32}, {1, 2, 3, 4, 12}, {2, 1, 1, 1}, {0, 3, 4}} {
			c := s[len(s)-1]
			p.in = append(p.in, m.normal(d, s...), m.normal(d, c), m.normal(d, c))
		}
		p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			var out []*graph.Node
			for i := 0; i < len(in); i += 3 {
				out = append(out, b.Make(graph.GroupNorm, graph.GroupNormAttr{Groups: groups[i/3], Eps: 1e-6, Silu: silu}, in[i:i+3]...))
			}
			return out
		}
		ps = append(ps, p)
	}
	return ps
}

func attentionPrograms(m *maker, d tensor.DType) []program {
	type shape struct{ b, n, h, d, m, g int }
	var ps []program
	biasType := []tensor.DType{d, tensor.F32}
	for _, causal := range []bool{false, true} {
		for _, extra := range []string{"", "bias", "mask", "bias and mask"} {
			shapes := []shape{{1, 1, 1, 2, 1, 1}, {2, 3, 2, 16, 3, 1}, {1, 17, 4, 8, 17, 2}, {1, 65, 2, 64, 65, 2}}
			if !causal {
				shapes = append(shapes, shape{2, 15, 3, 17, 63, 3}, shape{1, 3, 2, 128, 129, 1}, shape{1, 0, 1, 4, 5, 1}, shape{1, 129, 1, 32, 16, 1})
			}
			p := program{name: fmt.Sprintf("attention %s causal=%v %s", d, causal, extra), tol: sums}
			bias, mask := extra == "bias" || extra == "bias and mask", extra == "mask" || extra == "bias and mask"
			var starts []int
			for i, s := range shapes {
				starts = append(starts, len(p.in))
				p.in = append(p.in, m.normal(d, s.b, s.n, s.h, s.d), m.normal(d, s.b, s.m, s.g, s.d), m.normal(d, s.b, s.m, s.g, s.d))
				if bias {
					dims := [][]int{{s.b, s.h, s.n, s.m}, {1, s.h, s.n, s.m}, {1, 1, s.n, s.m}}[i%3]
					p.in = append(p.in, m.normal(biasType[i%2], dims...))
				}
				if mask {
					dims := [][]int{{s.b, s.h, s.n, s.m}, {s.b, 1, 1, s.m}, {1, 1, s.n, s.m}, {1, s.h, 1, s.m}}[i%4]
					mk := m.normal(tensor.Bool, dims...)
					if i == 1 || i == 2 { // a query that sees no key
						clear(mk.Data[:s.m])
					}
					p.in = append(p.in, mk)
				}
			}
			p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				var out []*graph.Node
				for i, at := range starts {
					end := len(in)
					if i+1 < len(starts) {
						end = starts[i+1]
					}
					out = append(out, b.Make(graph.Attention, graph.AttentionAttr{Scale: 0.3, Causal: causal, Bias: bias, Mask: mask}, in[at:end]...))
				}
				return out
			}
			ps = append(ps, p)
		}
	}
	return ps
}

func rowPrograms(m *maker, d tensor.DType) []program {
	arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
	name := func(s string) string { return s + " " + d.String() }
	var flat []*tensor.Array
	for _, n := range append(edges, 1025) {
		flat = append(flat, arr(n))
	}
	flat = append(flat, special(d))
	// Far below zero the forms of gelu are differences of nearly equal numbers: their error is absolute.
	unary := func(s string, op graph.Op, attr graph.Attr) program {
		return program{name(s), flat, each(func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Make(op, attr, x) }), sums}
	}
	ps := []program{
		unary("gelu", graph.Gelu, graph.GeluAttr{Form: graph.ActGelu}),
		unary("gelu_tanh", graph.Gelu, graph.GeluAttr{Form: graph.ActGeluTanh}),
		unary("gelu_new", graph.Gelu, graph.GeluAttr{Form: graph.ActGeluNew}),
		unary("quick_gelu", graph.Gelu, graph.GeluAttr{Form: graph.ActQuickGelu}),
		unary("silu", graph.Silu, nil),
		{name("softmax"), []*tensor.Array{arr(1), arr(5, 3), arr(17, 16), arr(2, 3, 65), arr(3, 129), arr(2, 1300), arr(0, 7)},
			each(func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Make(graph.Softmax, nil, x) }), sums},
		{name("upsample_nearest"), []*tensor.Array{arr(1, 2, 3, 17), arr(2, 3, 1, 1), arr(1, 4, 4, 64), arr(0, 2, 2, 3)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				var out []*graph.Node
				for _, x := range in {
					for f := 1; f <= 3; f++ {
						out = append(out, b.Make(graph.UpsampleNearest, graph.UpsampleAttr{Factor: f}, x))
					}
				}
				return out
			}, bits},
		{name("upsample_conv"), []*tensor.Array{
			arr(1, 5, 7, 3), arr(4, 3, 3, 3), arr(4), arr(2, 4, 3, 16), arr(17, 16, 3, 3), arr(17), arr(1, 1, 1, 65), arr(33, 65, 3, 3), arr(33),
			arr(0, 4, 4, 3), arr(2, 3, 3, 3), arr(2)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				var out []*graph.Node
				for i := 0; i < len(in); i += 3 {
					bias := i%2 == 0
					out = append(out, b.Make(graph.UpsampleConv, graph.UpsampleConvAttr{Bias: bias}, in[i:i+map[bool]int{false: 2, true: 3}[bias]]...))
				}
				return out
			}, deep},
	}
	var in []*tensor.Array
	for _, s := range []tensor.Shape{{1, 1, 1, 2}, {2, 3, 2, 16}, {1, 17, 3, 34}, {1, 5, 2, 64}, {2, 65, 1, 128}, {1, 0, 2, 8}} {
		in = append(in, arr(s...), m.between(tensor.F32, -1, 1, s[1], s[3]), m.between(tensor.F32, -1, 1, s[1], s[3]))
	}
	for _, half := range []bool{false, true} {
		ps = append(ps, program{name(fmt.Sprintf("rope half=%v", half)), in, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			var out []*graph.Node
			for i := 0; i < len(in); i += 3 {
				out = append(out, b.Make(graph.Rope, graph.RopeAttr{HalfSplit: half}, in[i:i+3]...))
			}
			return out
		}, sums})
	}
	var mod []*tensor.Array
	for _, s := range [][3]tensor.Shape{
		{{65}, {65}, {65}}, {{2, 3, 17}, {2, 1, 17}, {2, 1, 17}}, {{2, 5, 64}, {64}, {64}}, {{1, 9, 129}, {1, 1, 129}, {}}, {{3, 1, 16}, {3, 4, 16}, {1}}, {{0, 4}, {4}, {4}},
	} {
		mod = append(mod, arr(s[0]...), arr(s[1]...), arr(s[2]...))
	}
	return append(ps, program{name("modulate"), mod, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i := 0; i < len(in); i += 3 {
			out = append(out, b.Make(graph.Modulate, nil, in[i:i+3]...))
		}
		return out
	}, sums})
}
