package backendtest

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// each applies fn to every input: one output each.
func each(fn func(b *graph.Builder, x *graph.Node) *graph.Node) func(*graph.Builder, []*graph.Node) []*graph.Node {
	return func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for _, x := range in {
			out = append(out, fn(b, x))
		}
		return out
	}
}

// pairs applies fn to inputs 0 and 1, 2 and 3 …
func pairs(fn func(b *graph.Builder, x, y *graph.Node) *graph.Node) func(*graph.Builder, []*graph.Node) []*graph.Node {
	return func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i := 0; i < len(in); i += 2 {
			out = append(out, fn(b, in[i], in[i+1]))
		}
		return out
	}
}

// broadcasts are operand shapes in every pattern: equal, scalars, rows, columns, channels, (B, 1, D), empty.
var broadcasts = [][2]tensor.Shape{
	{{129}, {129}},
	{{5, 17}, {5, 17}},
	{{}, {}},
	{{}, {65}},
	{{65}, {}},
	{{1}, {3, 16}},
	{{7, 16}, {16}},
	{{63}, {3, 63}},
	{{7, 15}, {7, 1}},
	{{9, 1}, {9, 64}},
	{{1, 17}, {4, 1}},
	{{2, 3, 65}, {2, 1, 65}},
	{{2, 1, 16}, {2, 5, 16}},
	{{2, 3, 1}, {2, 3, 17}},
	{{2, 1, 17}, {1, 3, 17}},
	{{3, 1, 5, 1}, {2, 1, 16}},
	{{2, 2, 3, 15}, {2, 1, 1, 15}},
	{{2, 2, 3, 15}, {1, 2, 1, 15}},
	{{0, 3}, {1, 3}},
	{{1, 1, 1}, {1}},
	{{3, 1300}, {1300}},
	{{2, 2049}, {2, 1}},
}

var unaryFloat = []struct {
	op     graph.Op
	lo, hi float64
	tol    tolerance
}{
	{graph.Neg, -3, 3, ieee}, {graph.Abs, -3, 3, ieee}, {graph.Sign, -3, 3, ieee}, {graph.Exp, -8, 8, close}, {graph.Log, 0.01, 20, close},
	{graph.Sqrt, 0, 20, ieee}, {graph.Rsqrt, 0.01, 20, close}, {graph.Tanh, -6, 6, close}, {graph.Erf, -4, 4, close},
	{graph.Logistic, -20, 20, close}, {graph.Sin, -50, 50, close}, {graph.Cos, -50, 50, close}, {graph.Floor, -9, 9, ieee},
	{graph.Ceil, -9, 9, ieee},
}

func elementwisePrograms() []program {
	m := newMaker(1)
	var ps []program
	unary := func(op graph.Op, d tensor.DType, tol tolerance, in []*tensor.Array) {
		ps = append(ps, program{fmt.Sprintf("%s %s", op, d), in, each(func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Make(op, nil, x)
		}), tol})
	}
	sized := func(make func(shape ...int) *tensor.Array) []*tensor.Array {
		var in []*tensor.Array
		for _, n := range append(edges, 1025) {
			in = append(in, make(n))
		}
		return append(in, make(), make(3, 5, 7))
	}
	for _, u := range unaryFloat {
		for _, d := range floats {
			in := sized(func(s ...int) *tensor.Array { return m.between(d, u.lo, u.hi, s...) })
			if u.op != graph.Sin && u.op != graph.Cos {
				in = append(in, special(d))
			}
			unary(u.op, d, u.tol, in)
		}
	}
	for _, op := range []graph.Op{graph.Neg, graph.Abs, graph.Sign} {
		for _, d := range ints {
			unary(op, d, bits, sized(func(s ...int) *tensor.Array { return m.normal(d, s...) }))
		}
	}
	for _, d := range floats {
		unary(graph.IsFinite, d, bits, append(sized(func(s ...int) *tensor.Array { return m.normal(d, s...) }), special(d)))
	}
	unary(graph.Not, tensor.Bool, bits, sized(func(s ...int) *tensor.Array { return m.normal(tensor.Bool, s...) }))

	binary := func(name string, op graph.Op, attr graph.Attr, tol tolerance, make func(i int, s tensor.Shape) *tensor.Array, extra ...*tensor.Array) {
		var in []*tensor.Array
		for _, s := range broadcasts {
			in = append(in, make(0, s[0]), make(1, s[1]))
		}
		ps = append(ps, program{name, append(in, extra...), pairs(func(b *graph.Builder, x, y *graph.Node) *graph.Node {
			return b.Make(op, attr, x, y)
		}), tol})
	}
	// grid pairs every special value with every other.
	grid := func(d tensor.DType) (x, y *tensor.Array) {
		s := special(d)
		n := s.Shape.Size()
		return must(s.Reshape(n, 1)), s
	}
	for _, op := range []graph.Op{graph.Add, graph.Sub, graph.Mul, graph.Div, graph.Max, graph.Min, graph.Pow, graph.Rem} {
		for _, d := range join(floats, ints) {
			var extra []*tensor.Array
			if d.IsFloat() && op != graph.Pow && op != graph.Rem {
				x, y := grid(d)
				extra = []*tensor.Array{x, y}
			}
			tol := ieee
			switch {
			case !d.IsFloat():
				tol = bits
			case op == graph.Pow || op == graph.Rem, op == graph.Max || op == graph.Min: // which zero is larger is open
				tol = close
			}
			binary(fmt.Sprintf("%s %s", op, d), op, nil, tol, func(i int, s tensor.Shape) *tensor.Array {
				switch {
				case op == graph.Pow && d.IsFloat():
					return m.between(d, []float64{0.1, -2}[i], []float64{3, 2}[i], s...)
				case op == graph.Rem && d.IsFloat():
					return m.between(d, []float64{-9, 1}[i], []float64{9, 4}[i], s...)
				case (op == graph.Div || op == graph.Rem) && i == 1 || op == graph.Pow:
					return m.between(d, 1, 5, s...)
				}
				return m.normal(d, s...)
			}, extra...)
		}
	}
	for _, op := range []graph.Op{graph.And, graph.Or} {
		binary(op.String(), op, nil, bits, func(_ int, s tensor.Shape) *tensor.Array { return m.normal(tensor.Bool, s...) })
	}
	for _, d := range join(floats, ints, []tensor.DType{tensor.Bool}) {
		for dir := graph.EQ; dir <= graph.GE; dir++ {
			var extra []*tensor.Array
			if d.IsFloat() {
				x, y := grid(d)
				extra = []*tensor.Array{x, y}
			}
			binary(fmt.Sprintf("compare %s %s", dir, d), graph.Compare, graph.CompareAttr{Direction: dir}, bits,
				func(_ int, s tensor.Shape) *tensor.Array {
					return must(must(m.normal(d, s...).Convert(tensor.I8)).Convert(d))
				}, extra...)
		}
		ps = append(ps, selectProgram(m, d))
		for _, to := range join(floats, ints, []tensor.DType{tensor.Bool}) {
			ps = append(ps, convertProgram(m, d, to))
		}
	}
	return ps
}

func selectProgram(m *maker, d tensor.DType) program {
	p := program{name: "select " + d.String(), tol: bits}
	add := func(pred, x, y tensor.Shape) {
		p.in = append(p.in, m.normal(tensor.Bool, pred...), m.normal(d, x...), m.normal(d, y...))
	}
	for _, s := range broadcasts {
		whole, err := graph.Broadcast(s[0], s[1])
		if err != nil {
			panic(err)
		}
		add(whole, s[0], s[1])
		add(s[0], whole, s[1])
		add(s[0], s[1], whole)
		add(tensor.Shape{}, s[0], s[1])
	}
	p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		var out []*graph.Node
		for i := 0; i < len(in); i += 3 {
			out = append(out, b.Make(graph.Select, nil, in[i:i+3]...))
		}
		return out
	}
	return p
}

func convertProgram(m *maker, from, to tensor.DType) program {
	p := program{name: fmt.Sprintf("convert %s %s", from, to), tol: ieee}
	for _, n := range append(edges, 1025) {
		switch {
		case from == tensor.Bool:
			p.in = append(p.in, m.normal(from, n))
		case from == tensor.U8 || to == tensor.U8:
			p.in = append(p.in, m.between(from, 0, 120, n))
		case from.IsFloat() && to.IsFloat():
			p.in = append(p.in, m.normal(from, n))
		default:
			p.in = append(p.in, m.between(from, -120, 120, n))
		}
	}
	if from.IsFloat() && (to.IsFloat() || to == tensor.Bool) {
		p.in = append(p.in, special(from))
	}
	p.build = each(func(b *graph.Builder, x *graph.Node) *graph.Node {
		return b.Make(graph.Convert, graph.ConvertAttr{DType: to}, x)
	})
	return p
}
