package cpu

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// planOf plans what build records over inputs of the given types.
func planOf(t *testing.T, types []graph.Type, build func(b *graph.Builder, in []*graph.Node) []*graph.Node) *program {
	t.Helper()
	in := make([]*graph.Node, len(types))
	for i, ty := range types {
		in[i] = graph.NewInput(i, ty)
	}
	b := &graph.Builder{}
	out := build(b, in)
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	g, err := graph.New(t.Name(), in, out)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan(newClient(t, Options{}), g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ops lists the steps' first operations.
func (p *program) ops() string {
	var s []string
	for i := range p.steps {
		s = append(s, p.steps[i].op.String())
	}
	return strings.Join(s, " ")
}

func bf16(shape ...int) graph.Type { return graph.Type{DType: tensor.BF16, Shape: shape} }

// TestFusion fixes what is one step: a change here is a change of speed.
func TestFusion(t *testing.T) {
	mk := func(b *graph.Builder, op graph.Op, in ...*graph.Node) *graph.Node { return b.Make(op, nil, in...) }
	linear := func(b *graph.Builder, act graph.Activation, in ...*graph.Node) *graph.Node {
		return b.Make(graph.Linear, graph.LinearAttr{Bias: len(in) == 3, Act: act}, in...)
	}
	slice := func(b *graph.Builder, x *graph.Node, axis, from, to int) *graph.Node {
		a := graph.SliceAttr{Start: make([]int, len(x.Shape)), Limit: x.Shape.Clone(), Stride: make([]int, len(x.Shape))}
		for i := range a.Stride {
			a.Stride[i] = 1
		}
		a.Start[axis], a.Limit[axis] = from, to
		return b.Make(graph.Slice, a, x)
	}
	const n, d = 10, 64
	for _, c := range []struct {
		name  string
		types []graph.Type
		build func(b *graph.Builder, in []*graph.Node) *graph.Node
		want  string
	}{
		{"elementwise chain", []graph.Type{bf16(n, d), bf16(d)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return mk(b, graph.Tanh, mk(b, graph.Add, mk(b, graph.Mul, in[0], in[1]), in[0]))
		}, "multiply"},
		{"gated residual in the product's epilogue", []graph.Type{bf16(1, n, d), bf16(1, 1, d), bf16(1, n, d), bf16(d, d), bf16(d)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return mk(b, graph.Add, in[0], mk(b, graph.Mul, in[1], linear(b, graph.NoActivation, in[2], in[3], in[4])))
		}, "linear"},
		{"gate cut from a projection that is made first", []graph.Type{bf16(1, n, d), bf16(1, 2*d), bf16(2*d, 2*d), bf16(d, d)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			lin := linear(b, graph.NoActivation, in[0], in[3])
			gate := slice(b, b.Reshape(linear(b, graph.NoActivation, in[1], in[2]), 1, 1, 2*d), 2, d, 2*d)
			return mk(b, graph.Add, in[0], mk(b, graph.Mul, lin, gate))
		}, "linear linear"},
		{"gated feed-forward", []graph.Type{bf16(n, d), bf16(d, d), bf16(d, d)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			gate := b.Make(graph.Gelu, graph.GeluAttr{Form: graph.ActGeluTanh}, linear(b, graph.NoActivation, in[0], in[1]))
			return mk(b, graph.Mul, gate, linear(b, graph.NoActivation, in[0], in[2]))
		}, "linear linear"},
		{"modulated layer norm", []graph.Type{bf16(1, n, d), bf16(1, 1, d), bf16(1, 1, d)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return mk(b, graph.Modulate, b.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, in[0]), in[1], in[2])
		}, "layer_norm"},
		{"attention on slices, into a concatenation", []graph.Type{bf16(1, n, 3*d), bf16(1, n, d), bf16(d, d)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			part := func(i int) *graph.Node { return b.Reshape(slice(b, in[0], 2, i*d, (i+1)*d), 1, n, 2, d/2) }
			o := b.Reshape(b.Make(graph.Attention, graph.AttentionAttr{Scale: 1}, part(0), part(1), part(2)), 1, n, d)
			mlp := linear(b, graph.ActGeluTanh, in[1], in[2])
			return b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: 2}, o, mlp)
		}, "attention linear"},
		{"normalised heads of two streams", []graph.Type{bf16(1, 3, 2, 32), bf16(1, n, 2, 32), bf16(32)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			norm := func(x *graph.Node) *graph.Node {
				return b.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, x, in[2])
			}
			return b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: 1}, norm(in[0]), norm(in[1]))
		}, "rms_norm rms_norm"},
		{"convolution, residual, clamp", []graph.Type{bf16(1, 4, 4, 8), bf16(8, 8, 3, 3), bf16(8), bf16(1, 4, 4, 8)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			one := [2]int{1, 1}
			y := b.Make(graph.Convolution, graph.ConvolutionAttr{Stride: one, Low: one, High: one, Bias: true}, in[:3]...)
			return mk(b, graph.Min, mk(b, graph.Add, in[3], y), b.Scalar(tensor.BF16, 1))
		}, "convolution"},
		{"a product with a transposed operand", []graph.Type{bf16(n, d), bf16(d, n)}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			tr := b.Make(graph.Transpose, graph.TransposeAttr{Perm: []int{1, 0}}, in[1])
			return b.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{1}}, in[0], tr)
		}, "dot_general"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.types, func(b *graph.Builder, in []*graph.Node) []*graph.Node { return []*graph.Node{c.build(b, in)} })
			if got := p.ops(); got != c.want {
				t.Errorf("steps are %q, expected %q", got, c.want)
			}
		})
	}
}

// TestInPlace: in a chain of separate steps, a step's result takes the memory of the operand that dies in it.
func TestInPlace(t *testing.T) {
	const n = 1 << 10
	p := planOf(t, []graph.Type{bf16(4, n), bf16(n, n)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		x := b.Make(graph.Linear, graph.LinearAttr{}, in[0], in[1])
		for range 5 {
			x = b.Make(graph.Softmax, nil, b.Make(graph.Softmax, nil, x))
		}
		return []*graph.Node{b.Make(graph.Linear, graph.LinearAttr{}, x, in[1])}
	})
	if want := 2 * 4 * n; p.arena != want {
		t.Errorf("the arena has %d bytes, expected %d: one value in place", p.arena, want)
	}
}

// TestArena: values that live at the same time never overlap.
func TestArena(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 200 {
		var temps []*storage
		peak := make([]int, 40)
		for range 1 + r.IntN(60) {
			first := r.IntN(40)
			st := &storage{bytes: 1 + r.IntN(5000), first: first, last: min(39, first+r.IntN(8))}
			temps = append(temps, st)
			for i := st.first; i <= st.last; i++ {
				peak[i] += (st.bytes + arenaAlign - 1) &^ (arenaAlign - 1)
			}
		}
		total := assignOffsets(temps)
		least := 0
		for _, n := range peak {
			least = max(least, n)
		}
		if total < least || total > 2*least {
			t.Fatalf("%d bytes for a peak of %d", total, least)
		}
		for i, a := range temps {
			if a.offset%arenaAlign != 0 || a.offset+a.bytes > total {
				t.Fatalf("storage %d at %d of %d", i, a.offset, total)
			}
			for _, b := range temps[:i] {
				if a.first <= b.last && b.first <= a.last && a.offset < b.offset+b.bytes && b.offset < a.offset+a.bytes {
					t.Fatalf("overlap: %+v and %+v", a, b)
				}
			}
		}
	}
}

// TestPanicBecomesError: a kernel that panics fails its run, names its operation, and leaves the client alive.
func TestPanicBecomesError(t *testing.T) {
	c := newClient(t, Options{Threads: 2})
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{5000}})
	n, err := graph.Make(graph.Tanh, nil, x)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := graph.New("broken", []*graph.Node{x}, []*graph.Node{n})
	e, err := newExecutable(c, g)
	if err != nil {
		t.Fatal(err)
	}
	good := e.prog.steps[0].run
	e.prog.steps[0].run = func(f *frame) error {
		c.par.For(10, 1, func(_, lo, _ int) {
			if lo == 7 {
				panic("seven")
			}
		})
		return nil
	}
	b, err := c.Upload(tensor.New(tensor.F32, 5000), 0)
	if err != nil {
		t.Fatal(err)
	}
	used := c.MemoryInUse()
	out, done, err := e.Run([]backend.Buffer{b})
	if err != nil {
		t.Fatal(err)
	}
	if err := done.Wait(); err == nil || !strings.Contains(err.Error(), "tanh: seven") {
		t.Errorf("the event says %v", err)
	}
	if _, err := out[0].Read(); err == nil {
		t.Error("Read gives no error")
	}
	if err := c.Sync(0); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("Sync says %v", err)
	}
	if err := c.Sync(0); err != nil {
		t.Errorf("Sync reports it again: %v", err)
	}
	if got := c.MemoryInUse(); got != used {
		t.Errorf("the failed run holds %d bytes", got-used)
	}
	e.prog.steps[0].run = good
	out, _, err = e.Run([]backend.Buffer{b})
	if err != nil {
		t.Fatal(err)
	}
	if err := out[0].Wait(); err != nil {
		t.Errorf("the client is broken: %v", err)
	}
}

// TestSteadyState: after the first run of a program the pool takes nothing more from the system.
func TestSteadyState(t *testing.T) {
	c := newClient(t, Options{})
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{300, 300}})
	b := &graph.Builder{}
	v := b.Make(graph.Linear, graph.LinearAttr{}, b.Make(graph.Linear, graph.LinearAttr{}, x, x), x)
	g, err := graph.New("steady", []*graph.Node{x}, []*graph.Node{v})
	if err != nil || b.Err != nil {
		t.Fatal(err, b.Err)
	}
	e, err := c.Compile(t.Context(), g, 0)
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.Upload(tensor.New(tensor.F32, 300, 300), 0)
	if err != nil {
		t.Fatal(err)
	}
	total := func() int {
		if err := c.Sync(0); err != nil {
			t.Fatal(err)
		}
		return c.mem.idle + c.mem.live
	}
	first := 0
	for i := range 20 {
		out, _, err := e.Run([]backend.Buffer{in})
		if err != nil {
			t.Fatal(err)
		}
		out[0].Free()
		if n := total(); i == 0 {
			first = n
		} else if n != first {
			t.Fatalf("run %d: the pool has %d bytes, %d after the first", i, n, first)
		}
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Options{ISA: "sse9"}); err == nil || !strings.Contains(err.Error(), "GESSO_CPU_ISA") {
		t.Errorf("an unknown level gives %v", err)
	}
	c := newClient(t, Options{ISA: "portable", Threads: 3})
	d := c.Devices()[0]
	if !strings.Contains(d.Detail, "portable") || !strings.Contains(d.Detail, "3 threads") || !strings.HasSuffix(c.Version(), "portable") {
		t.Errorf("device %+v, version %q", d, c.Version())
	}
	if found := isa.Detect(); found != isa.Portable && !strings.Contains(d.Detail, "(has "+found.String()+")") {
		t.Errorf("device %+v doesn't tell that %v was found", d, found)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if err := c.Sync(0); err == nil {
		t.Error("Sync after Close gave no error")
	}
}

// TestBiasAndResidual: an epilogue that one kernel does gives the bits of the operations one by one, for rows that are short
// and rows that are longer than a chunk.
func TestBiasAndResidual(t *testing.T) {
	for _, level := range isa.Available() {
		for _, channels := range []int{7, 128, 300, chunk + 33} {
			c := newClient(t, Options{ISA: level.String()})
			x, w, bias, r := bf16(1, 3, 5, 16), bf16(channels, 16, 1, 1), bf16(channels), bf16(1, 3, 5, channels)
			convolve := func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return b.Make(graph.Convolution, graph.ConvolutionAttr{Stride: [2]int{1, 1}, Bias: len(in) > 2}, in...)
			}
			add := func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				return []*graph.Node{b.Make(graph.Add, nil, in...)}
			}
			var args []backend.Buffer
			for _, typ := range []graph.Type{x, w, bias, r} {
				buf, err := c.Upload(random(typ), 0)
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, buf)
			}
			biased := compiled(t, c, []graph.Type{x, w, bias}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				return []*graph.Node{convolve(b, in)}
			})
			outs, _, err := biased.Run(args[:3])
			if err != nil {
				t.Fatal(err)
			}
			// A second result makes the epilogue a generic one.
			wide := compiled(t, c, []graph.Type{x, w, bias}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				y := convolve(b, in)
				return []*graph.Node{y, b.Make(graph.Neg, nil, y)}
			})
			first := results(t, biased, args[:3]...)[0]
			if !bytes.Equal(first, results(t, wide, args[:3]...)[0]) {
				t.Errorf("%v, %d channels: the bias gives other bits", level, channels)
			}
			want := results(t, compiled(t, c, []graph.Type{r, r}, add), outs[0], args[3])[0]
			together := compiled(t, c, []graph.Type{x, w, bias, r}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				return add(b, []*graph.Node{in[3], convolve(b, in[:3])})
			})
			if !bytes.Equal(results(t, together, args...)[0], want) {
				t.Errorf("%v, %d channels: bias and residual give other bits", level, channels)
			}
		}
	}
}

// TestGateAndGelu is TestBiasAndResidual for a product with an activation, and for one whose result is gated and added.
func TestGateAndGelu(t *testing.T) {
	for _, level := range isa.Available() {
		for _, channels := range []int{7, 128, chunk + 33} {
			c := newClient(t, Options{ISA: level.String()})
			types := []graph.Type{bf16(1, 5, 16), bf16(channels, 16), bf16(channels), bf16(1, 1, channels), bf16(1, 5, channels)}
			var args []backend.Buffer
			for _, typ := range types {
				buf, err := c.Upload(random(typ), 0)
				if err != nil {
					t.Fatal(err)
				}
				args = append(args, buf)
			}
			for _, act := range []graph.Activation{graph.NoActivation, graph.ActGeluTanh, graph.ActQuickGelu} {
				for _, gated := range []bool{false, true} {
					result := func(b *graph.Builder, in []*graph.Node) *graph.Node {
						y := b.Make(graph.Linear, graph.LinearAttr{Bias: true, Act: act}, in[:3]...)
						if gated {
							gate := b.Make(graph.BroadcastInDim, graph.BroadcastInDimAttr{Shape: types[4].Shape, Axes: []int{0, 1, 2}}, in[3])
							y = b.Make(graph.Add, nil, in[4], b.Make(graph.Mul, nil, gate, y))
						}
						return y
					}
					one := compiled(t, c, types, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
						return []*graph.Node{result(b, in)}
					})
					// A second result makes the epilogue a generic one.
					wide := compiled(t, c, types, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
						y := result(b, in)
						return []*graph.Node{y, b.Make(graph.Neg, nil, y)}
					})
					if !bytes.Equal(results(t, one, args...)[0], results(t, wide, args...)[0]) {
						t.Errorf("%v, %d channels, activation %v, gated %v: other bits", level, channels, act, gated)
					}
				}
			}
		}
	}
}
