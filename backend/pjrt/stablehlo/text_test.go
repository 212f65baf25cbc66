package stablehlo

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// go test ./backend/pjrt/stablehlo -update writes the golden texts anew. What changes must be read: a plugin compiles it.
var update = flag.Bool("update", false, "write testdata")

// program is a graph that a test builds.
type program struct {
	in    []graph.Type
	build func(b *graph.Builder, in []*graph.Node) []*graph.Node
	o     Options

	donated []int
}

func (p program) graph(t *testing.T, name string) *graph.Graph {
	t.Helper()
	in := make([]*graph.Node, len(p.in))
	for i, typ := range p.in {
		in[i] = graph.NewInput(i, typ)
	}
	b := &graph.Builder{}
	out := p.build(b, in)
	if b.Err != nil {
		t.Fatal(b.Err)
	}
	g, err := graph.New(name, in, out)
	if err != nil {
		t.Fatal(err)
	}
	g.Donated = p.donated
	return g
}

func typ(d tensor.DType, shape ...int) graph.Type {
	return graph.Type{DType: d, Shape: append(tensor.Shape{}, shape...)}
}

// layers is a model of n blocks, each x + gelu(norm(x)·W + b)·scale, between an input and an output projection.
func layers(n int) program {
	p := program{in: []graph.Type{typ(tensor.BF16, 4, 8), typ(tensor.BF16, 8, 8), typ(tensor.BF16, 8)}}
	for range n {
		p.in = append(p.in, typ(tensor.BF16, 8), typ(tensor.BF16, 8, 8), typ(tensor.BF16, 8))
	}
	p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		scale := b.Make(graph.Tanh, nil, in[2]) // all blocks share it
		x := b.Make(graph.Linear, graph.LinearAttr{}, in[0], in[1])
		for k := range n {
			w := in[3+3*k:]
			h := b.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, x, w[0])
			h = b.Make(graph.Linear, graph.LinearAttr{Bias: true}, h, w[1], w[2])
			h = b.Make(graph.Mul, nil, h, b.Make(graph.Logistic, nil, h))
			h = b.Make(graph.Mul, nil, h, scale)
			h = b.Make(graph.Abs, nil, h)
			x = b.Make(graph.Add, nil, x, h)
		}
		return []*graph.Node{b.Make(graph.Linear, graph.LinearAttr{}, x, in[1])}
	}
	return p
}

var programs = map[string]program{
	"twice": {in: []graph.Type{typ(tensor.F32, 3)}, build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		return []*graph.Node{b.Make(graph.Mul, nil, in[0], b.Scalar(tensor.F32, 2))}
	}},
	"linear": {
		in: []graph.Type{typ(tensor.BF16, 2, 8), typ(tensor.BF16, 4, 8), typ(tensor.BF16, 4)},
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{b.Make(graph.Linear, graph.LinearAttr{Bias: true}, in...)}
		},
	},
	"attention": {
		in: []graph.Type{typ(tensor.F32, 1, 5, 2, 4), typ(tensor.F32, 1, 7, 2, 4), typ(tensor.F32, 1, 7, 2, 4)},
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{b.Make(graph.Attention, graph.AttentionAttr{Scale: 0.5}, in...)}
		},
	},
	"constants": {build: func(b *graph.Builder, _ []*graph.Node) []*graph.Node {
		long := tensor.FromFloat32(make([]float32, 20), 20)
		for i := range long.Float32s() {
			long.Float32s()[i] = float32(i) / 2
		}
		nan := b.Make(graph.Log, nil, b.Scalar(tensor.F32, -1))
		return []*graph.Node{
			graph.NewConstant(long), b.Scalar(tensor.BF16, 0.1), b.Scalar(tensor.F16, -65504), nan,
			graph.NewConstant(tensor.FromFloat32([]float32{1, -0, 1e-40}, 3)), graph.NewConstant(tensor.New(tensor.Bool, 2)),
		}
	}},
	"aliased": {
		in: []graph.Type{typ(tensor.F32, 2, 3), typ(tensor.F32, 2, 3), typ(tensor.F32, 2, 3), typ(tensor.F32, 2, 3)},
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			sum := b.Make(graph.Add, nil, b.Make(graph.Add, nil, in[0], in[1]), in[2])
			rows := b.Make(graph.Reduce, graph.ReduceAttr{Kind: graph.ReduceSum, Axes: []int{1}}, in[3])
			return []*graph.Node{rows, b.Make(graph.Neg, nil, in[0]), sum}
		},
		donated: []int{1, 2, 3},
	},
	"sharded": { // a column-wise and a row-wise linear layer; one input is donated, one is used by every device
		in: []graph.Type{typ(tensor.F32, 2, 4), typ(tensor.F32, 8, 4), typ(tensor.F32, 8), typ(tensor.F32, 4, 8)},
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			h := b.Make(graph.Linear, graph.LinearAttr{Bias: true}, in[0], in[1], in[2])
			return []*graph.Node{b.Make(graph.Linear, graph.LinearAttr{}, h, in[3])}
		},
		donated: []int{0},
		o:       Options{Shards: &Shards{Devices: 4, Inputs: []int{Whole, 0, 0, 1}}},
	},
	"convolution": {
		in: []graph.Type{typ(tensor.F16, 1, 4, 4, 2), typ(tensor.F16, 3, 2, 3, 3), typ(tensor.F16, 3)},
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			a := graph.ConvolutionAttr{Stride: [2]int{2, 1}, Low: [2]int{1, 1}, High: [2]int{1, 1}, Bias: true}
			return []*graph.Node{b.Make(graph.Convolution, a, in...)}
		},
	},
	"quantized": {
		in: []graph.Type{typ(tensor.BF16, 2, 8), typ(tensor.I8, 4, 8), typ(tensor.F32, 4)},
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{b.Make(graph.QuantizedLinear, graph.QuantizedLinearAttr{}, in...)}
		},
	},
	"rounded": {in: []graph.Type{typ(tensor.F32, 2)}, build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		c := b.Scalar(tensor.F32, roundingConstant)
		sum := b.Make(graph.OptimizeBarrier, nil, b.Make(graph.Add, nil, in[0], c)) // somebody wants this too
		return []*graph.Node{b.Make(graph.Sub, nil, sum, c), sum}
	}},
	"blocks": layers(4),
}

// The text of each program is what it was, byte for byte, every time it is written.
func TestGolden(t *testing.T) {
	for name, p := range programs {
		t.Run(name, func(t *testing.T) {
			got, err := Text(p.graph(t, name), p.o)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if again, err := Text(p.graph(t, name), p.o); err != nil || again != got {
					t.Fatalf("written again it differs: %v\n%s", err, again)
				}
			}
			file := filepath.Join("testdata", name+".mlir")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the text is\n%s\nexpected\n%s", got, want)
			}
		})
	}
}

// A block is written once, however many there are.
func TestBlocks(t *testing.T) {
	var length []int
	for _, n := range []int{4, 40} {
		text, err := Text(layers(n).graph(t, "model"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		functions, calls := strings.Count(text, "func.func private @block"), strings.Count(text, "call @block0(")
		if functions != 1 || calls < n-1 {
			t.Errorf("%d blocks: %d functions, %d calls\n%.2000s", n, functions, calls, text)
		}
		length = append(length, strings.Count(text, "\n"))
	}
	if length[1] > length[0]+40 {
		t.Errorf("40 blocks take %d lines, 4 take %d", length[1], length[0])
	}
}

// What only looks alike is not made one function: here every second block reads the one before the last.
func TestAlmostBlocks(t *testing.T) {
	p := program{in: []graph.Type{typ(tensor.F32, 4)}}
	p.build = func(b *graph.Builder, in []*graph.Node) []*graph.Node {
		x, before := in[0], in[0]
		for k := range 6 {
			h := x
			for range 7 {
				h = b.Make(graph.Tanh, nil, h)
			}
			mid := h
			if k == 3 {
				mid = before
			}
			h = b.Make(graph.Add, nil, h, mid)
			before, x = x, b.Make(graph.Sub, nil, h, x)
		}
		return []*graph.Node{x}
	}
	g := p.graph(t, "almost")
	for _, r := range repeats(g) {
		for k := 1; k < r.count; k++ {
			for j := range r.period {
				a, b := g.Nodes[r.start+j], g.Nodes[r.start+k*r.period+j]
				if a.Op != b.Op || len(a.In) != len(b.In) {
					t.Fatalf("node %d of occurrence %d is a %s, of the first a %s", j, k, b.Op, a.Op)
				}
			}
		}
	}
}

// Repeats end where the graph does, and small graphs have none.
func TestRepeats(t *testing.T) {
	chain := func(n int) *graph.Graph {
		return program{in: []graph.Type{typ(tensor.F32, 4)}, build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			x := in[0]
			for range n {
				x = b.Make(graph.Tanh, nil, x)
			}
			return []*graph.Node{x}
		}}.graph(t, "chain")
	}
	if r := repeats(chain(minPeriod + minSaved - 1)); r != nil {
		t.Errorf("a short chain has repeats %+v", r)
	}
	for _, n := range []int{minPeriod + minSaved, 100, 1000} {
		found := repeats(chain(n))
		if len(found) != 1 || found[0].count*found[0].period < n-minPeriod || len(found[0].params[0]) != 1 || len(found[0].outs) != 1 {
			t.Errorf("a chain of %d: %+v", n, found)
		}
	}
}

func TestDonationErrors(t *testing.T) {
	g := programs["aliased"].graph(t, "g")
	for _, i := range []int{4, -1} {
		g.Donated = []int{i}
		if _, err := Text(g, Options{}); err == nil || !strings.HasPrefix(err.Error(), "stablehlo: graph g has no input") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// What can't be divided is refused, by number and type.
func TestShardErrors(t *testing.T) {
	p := programs["sharded"]
	for text, s := range map[string]Shards{
		"3 of its 4 inputs": {4, []int{Whole, 0, 0}},
		"among 0 devices":   {0, []int{Whole, 0, 0, 1}},
		"input 1, f32[8 4], can't be divided among 3 devices along axis 0": {3, []int{Whole, 0, 0, 1}},
		"input 2, f32[8], can't be divided among 4 devices along axis 1":   {4, []int{Whole, 0, 1, 1}},
	} {
		if _, err := Text(p.graph(t, "sharded"), Options{Shards: &s}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, expected %q", s, err, text)
		}
	}
}
