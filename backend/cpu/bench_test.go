package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// bench compiles a program and measures runs of it, each waited for; it reports bytes moved at least: operands once and
// results once.
func bench(b *testing.B, types []graph.Type, build func(l *graph.Builder, in []*graph.Node) *graph.Node) {
	c, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := make([]*graph.Node, len(types))
	args := make([]backend.Buffer, len(types))
	bytes := 0
	for i, t := range types {
		in[i] = graph.NewInput(i, t)
		if args[i], err = c.Upload(random(t), 0); err != nil {
			b.Fatal(err)
		}
		bytes += t.Bytes()
	}
	l := &graph.Builder{}
	out := build(l, in)
	if l.Err != nil {
		b.Fatal(l.Err)
	}
	g, err := graph.New("bench", in, []*graph.Node{out})
	if err != nil {
		b.Fatal(err)
	}
	e, err := c.Compile(b.Context(), g, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(bytes + out.Bytes()))
	b.ReportAllocs()
	for b.Loop() {
		outs, done, err := e.Run(args)
		if err != nil {
			b.Fatal(err)
		}
		if err := done.Wait(); err != nil {
			b.Fatal(err)
		}
		outs[0].Free()
	}
}

func random(t graph.Type) *tensor.Array {
	r := rand.New(rand.NewPCG(1, 2))
	v := make([]float32, t.Shape.Size())
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	a, err := tensor.FromFloat32(v, t.Shape...).Convert(t.DType)
	if err != nil {
		panic(err)
	}
	return a
}

// BenchmarkDispatch is what the caller pays for one small operation: Run alone, the device works beside it.
func BenchmarkDispatch(b *testing.B) {
	c, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	t := graph.Type{DType: tensor.F32, Shape: tensor.Shape{16}}
	x := graph.NewInput(0, t)
	n, err := graph.Make(graph.Neg, nil, x)
	if err != nil {
		b.Fatal(err)
	}
	g, _ := graph.New("negate", []*graph.Node{x}, []*graph.Node{n})
	e, err := c.Compile(b.Context(), g, 0)
	if err != nil {
		b.Fatal(err)
	}
	v, err := c.Upload(random(t), 0)
	if err != nil {
		b.Fatal(err)
	}
	args := []backend.Buffer{v}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		out, _, err := e.Run(args)
		if err != nil {
			b.Fatal(err)
		}
		args[0] = out[0]
		if i++; i%1000 == 0 {
			b.StopTimer()
			if err := c.Sync(0); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	}
}

// BenchmarkElementwise runs the chains of a transformer block: gated residual, modulation, activation.
func BenchmarkElementwise(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		full := graph.Type{DType: d, Shape: tensor.Shape{1, 4096, 3072}}
		row := graph.Type{DType: d, Shape: tensor.Shape{1, 1, 3072}}
		b.Run("residual/"+d.String(), func(b *testing.B) {
			bench(b, []graph.Type{full, row, full}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				return l.Make(graph.Add, nil, in[0], l.Make(graph.Mul, nil, in[1], in[2]))
			})
		})
		b.Run("modulate/"+d.String(), func(b *testing.B) {
			bench(b, []graph.Type{full, row, row}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				return l.Make(graph.Modulate, nil, in...)
			})
		})
		b.Run("gelu/"+d.String(), func(b *testing.B) {
			bench(b, []graph.Type{full}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				return l.Make(graph.Gelu, graph.GeluAttr{Form: graph.ActGeluTanh}, in[0])
			})
		})
		b.Run("euler step/"+d.String(), func(b *testing.B) {
			s := graph.Type{DType: d}
			bench(b, []graph.Type{full, full, s}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				v := l.Make(graph.Mul, nil, l.Convert(in[1], tensor.F32), l.Convert(in[2], tensor.F32))
				return l.Convert(l.Make(graph.Add, nil, l.Convert(in[0], tensor.F32), v), d)
			})
		})
	}
}

// BenchmarkNorms runs normalisations at the sizes of FLUX and of its autoencoder.
func BenchmarkNorms(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		x := graph.Type{DType: d, Shape: tensor.Shape{1, 4096, 3072}}
		row := graph.Type{DType: d, Shape: tensor.Shape{1, 1, 3072}}
		b.Run("layer_norm+modulate/"+d.String(), func(b *testing.B) {
			bench(b, []graph.Type{x, row, row}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				return l.Make(graph.Modulate, nil, l.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, in[0]), in[1], in[2])
			})
		})
		heads := graph.Type{DType: d, Shape: tensor.Shape{1, 4096, 24, 128}}
		b.Run("rms_norm heads/"+d.String(), func(b *testing.B) {
			bench(b, []graph.Type{heads, {DType: d, Shape: tensor.Shape{128}}}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				return l.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, in...)
			})
		})
		table := graph.Type{DType: tensor.F32, Shape: tensor.Shape{4096, 128}}
		b.Run("rope/"+d.String(), func(b *testing.B) {
			bench(b, []graph.Type{heads, table, table}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				return l.Make(graph.Rope, graph.RopeAttr{}, in...)
			})
		})
		for _, s := range []tensor.Shape{{1, 128, 128, 512}, {1, 512, 512, 128}} {
			c := graph.Type{DType: d, Shape: s[3:]}
			b.Run(fmt.Sprintf("group_norm %v/%s", s, d), func(b *testing.B) {
				bench(b, []graph.Type{{DType: d, Shape: s}, c, c}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
					return l.Make(graph.GroupNorm, graph.GroupNormAttr{Groups: 32, Eps: 1e-6, Silu: true}, in...)
				})
			})
		}
	}
}

// BenchmarkCompile plans a chain of many operations.
func BenchmarkCompile(b *testing.B) {
	c, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	t := graph.Type{DType: tensor.F32, Shape: tensor.Shape{64, 64}}
	x := graph.NewInput(0, t)
	l := &graph.Builder{}
	v := x
	for range 1000 {
		v = l.Make(graph.Add, nil, v, l.Make(graph.Tanh, nil, l.Make(graph.Linear, graph.LinearAttr{}, v, x)))
	}
	g, err := graph.New("chain", []*graph.Node{x}, []*graph.Node{v})
	if err != nil || l.Err != nil {
		b.Fatal(err, l.Err)
	}
	for b.Loop() {
		if _, err := c.Compile(b.Context(), g, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProducts runs products with their weights as arguments, as models pass them.
func BenchmarkProducts(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		for _, m := range []int{1, 64, 512} {
			const k, n = 3072, 3072
			b.Run(fmt.Sprintf("linear %d×%d×%d/%s", m, n, k, d), func(b *testing.B) {
				bench(b, []graph.Type{{DType: d, Shape: tensor.Shape{m, k}}, {DType: d, Shape: tensor.Shape{n, k}}}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
					return l.Make(graph.Linear, graph.LinearAttr{Act: graph.ActGeluTanh}, in...)
				})
				b.ReportMetric(2*float64(m)*n*k*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		b.Run("convolution 64×64×512/"+d.String(), func(b *testing.B) {
			const c = 512
			bench(b, []graph.Type{{DType: d, Shape: tensor.Shape{1, 64, 64, c}}, {DType: d, Shape: tensor.Shape{c, c, 3, 3}}}, func(l *graph.Builder, in []*graph.Node) *graph.Node {
				one := [2]int{1, 1}
				return l.Make(graph.Convolution, graph.ConvolutionAttr{Stride: one, Low: one, High: one}, in...)
			})
			b.ReportMetric(2*64*64*9*c*c*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
