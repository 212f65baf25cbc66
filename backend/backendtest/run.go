// Package backendtest is one table of programs that every backend must run as the reference interpreter does.
//
//	func TestBackend(t *testing.T) {
//		backendtest.Run(t, func(t *testing.T) backend.Client { … })
//	}
//
// Sizes lie at block edges (0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129 …); every operation occurs in every dtype it
// takes. A program that a backend refuses with backend.ErrUnsupported is skipped.
package backendtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// NewClient makes the client under test; the tests close it.
type NewClient func(t *testing.T) backend.Client

// Run tests what every backend promises.
func Run(t *testing.T, newClient NewClient) {
	t.Run("ops", func(t *testing.T) { testPrograms(t, newClient, withinTolerance) })
	t.Run("decompositions", func(t *testing.T) { testDecompositions(t, newClient) })
	t.Run("buffers", func(t *testing.T) { testBuffers(t, newClient) })
	t.Run("errors", func(t *testing.T) { testErrors(t, newClient) })
	t.Run("stream", func(t *testing.T) { testStream(t, newClient) })
	t.Run("memory", func(t *testing.T) { testMemory(t, newClient) })
}

// RunExact tests what only some backends promise: operations that IEEE 754 defines are rounded correctly, and a program
// gives the same bits as its operations one by one.
func RunExact(t *testing.T, newClient NewClient) {
	t.Run("rounding", func(t *testing.T) { testPrograms(t, newClient, exactly) })
	t.Run("op by op", func(t *testing.T) { testOpByOp(t, newClient) })
	t.Run("random", func(t *testing.T) { testRandom(t, newClient) })
}

// RunSame tests that two clients give the same bits: that what tells them apart, such as the number of threads, has no
// influence.
func RunSame(t *testing.T, a, b NewClient) {
	x, y := open(t, a), open(t, b)
	for _, p := range table() {
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.name, func(t *testing.T) {
			want, got := evaluate(t, x, g, p.in), evaluate(t, y, g, p.in)
			for i := range want {
				if err := bits.compare(got[i], want[i]); err != nil {
					t.Errorf("output %d: %v\n%s", i, err, excerpt(g))
				}
			}
		})
	}
}

// RunAgree tests that two backends agree on every program of the table, within the tolerance that each has of the
// reference interpreter.
func RunAgree(t *testing.T, a, b NewClient) {
	x, y := open(t, a), open(t, b)
	for _, p := range table() {
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.name, func(t *testing.T) {
			want, got := evaluate(t, x, g, p.in), evaluate(t, y, g, p.in)
			for i := range want {
				if err := p.tol.compare(got[i], want[i]); err != nil {
					t.Errorf("output %d: %v\n%s", i, err, excerpt(g))
				}
			}
		})
	}
}

// program is one entry of the table.
type program struct {
	name  string
	in    []*tensor.Array
	build func(b *graph.Builder, in []*graph.Node) []*graph.Node
	tol   tolerance
}

// graph builds the program's graph.
func (p *program) graph() (*graph.Graph, error) {
	b := &graph.Builder{}
	in := make([]*graph.Node, len(p.in))
	for i, a := range p.in {
		in[i] = graph.NewInput(i, graph.Type{DType: a.DType, Shape: a.Shape})
	}
	out := p.build(b, in)
	if b.Err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, b.Err)
	}
	return graph.New(p.name, in, out)
}

// table returns every program.
func table() []program {
	var ps []program
	ps = append(ps, elementwisePrograms()...)
	ps = append(ps, layoutPrograms()...)
	ps = append(ps, sumPrograms()...)
	ps = append(ps, compositePrograms()...)
	ps = append(ps, multiPrograms()...)
	return ps
}

type mode int

const (
	withinTolerance mode = iota
	exactly              // only the programs whose result IEEE 754 defines, bit for bit
)

func testPrograms(t *testing.T, newClient NewClient, m mode) {
	c := open(t, newClient)
	seen := map[graph.Op]bool{graph.Input: true}
	for _, p := range table() {
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range g.Nodes {
			seen[n.Op] = true
		}
		if m == exactly && p.tol != ieee && p.tol != bits {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			want, err := interp.Eval(g, p.in)
			if err != nil {
				t.Fatal(err)
			}
			got := evaluate(t, c, g, p.in)
			tol := p.tol
			if m == exactly {
				tol = bits
			}
			for i := range want {
				if err := tol.compare(got[i], want[i]); err != nil {
					t.Errorf("output %d: %v\n%s", i, err, excerpt(g))
				}
			}
		})
	}
	graph.Ops(func(op graph.Op) {
		if !seen[op] {
			t.Errorf("no program in the table has %s", op)
		}
	})
}

// testDecompositions compares each composite with its definition on the same backend.
func testDecompositions(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	for _, p := range compositePrograms() {
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.name, func(t *testing.T) {
			low, err := graph.Lower(g, func(*graph.Node) bool { return false })
			if err != nil {
				t.Fatal(err)
			}
			want := evaluate(t, c, low, p.in)
			got := evaluate(t, c, g, p.in)
			for i := range want {
				if err := p.tol.compare(got[i], want[i]); err != nil {
					t.Errorf("output %d: %v\n%s", i, err, excerpt(g))
				}
			}
		})
	}
}

// testOpByOp runs each program whole, and then every node as a program of its own.
func testOpByOp(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	for _, p := range table() {
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.name, func(t *testing.T) {
			got := evaluate(t, c, g, p.in)
			want := alone(t, c, g, p.in)
			for i := range want {
				if err := bits.compare(got[i], want[i]); err != nil {
					t.Errorf("output %d: %v\n%s", i, err, excerpt(g))
				}
			}
		})
	}
}

// testRandom runs random programs several times, for what the first run leaves behind, and their operations one by one.
func testRandom(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	for _, p := range randomPrograms() {
		g, err := p.graph()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(p.name, func(t *testing.T) {
			want := alone(t, c, g, p.in)
			e := compile(t, c, g)
			defer e.Close()
			args := make([]backend.Buffer, len(p.in))
			for i, a := range p.in {
				args[i] = upload(t, c, a)
				defer args[i].Free()
			}
			for time := range 3 {
				for i, b := range run(t, e, args...) {
					if err := bits.compare(read(t, b), want[i]); err != nil {
						t.Fatalf("run %d, output %d: %v\n%s", time, i, err, excerpt(g))
					}
					b.Free()
				}
			}
		})
	}
}

// alone evaluates g node by node on the backend.
func alone(t *testing.T, c backend.Client, g *graph.Graph, in []*tensor.Array) []*tensor.Array {
	t.Helper()
	val := make(map[*graph.Node]backend.Buffer)
	for i, n := range g.Inputs {
		val[n] = upload(t, c, in[i])
	}
	for _, n := range g.Nodes {
		inputs := make([]*graph.Node, len(n.In))
		args := make([]backend.Buffer, len(n.In))
		for i, o := range n.In {
			inputs[i] = graph.NewInput(i, o.Type)
			args[i] = val[o]
		}
		one, err := graph.New(n.Op.String(), inputs, []*graph.Node{{Op: n.Op, In: inputs, Attr: n.Attr, Type: n.Type}})
		if err != nil {
			t.Fatal(err)
		}
		val[n] = run(t, compile(t, c, one), args...)[0]
	}
	out := make([]*tensor.Array, len(g.Outputs))
	for i, n := range g.Outputs {
		out[i] = read(t, val[n])
	}
	return out
}

func open(t *testing.T, newClient NewClient) backend.Client {
	t.Helper()
	c := newClient(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func compile(t *testing.T, c backend.Client, g *graph.Graph) backend.Executable {
	t.Helper()
	e, err := c.Compile(t.Context(), g, 0)
	if errors.Is(err, backend.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("compile: %v\n%s", err, excerpt(g))
	}
	return e
}

func upload(t *testing.T, c backend.Client, a *tensor.Array) backend.Buffer {
	t.Helper()
	b, err := c.Upload(a, 0)
	if err != nil {
		t.Fatalf("upload: %v", err)
	}
	return b
}

func run(t *testing.T, e backend.Executable, args ...backend.Buffer) []backend.Buffer {
	t.Helper()
	out, _, err := e.Run(args)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return out
}

func read(t *testing.T, b backend.Buffer) *tensor.Array {
	t.Helper()
	a, err := b.Read()
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return a
}

// evaluate compiles and runs g once.
func evaluate(t *testing.T, c backend.Client, g *graph.Graph, in []*tensor.Array) []*tensor.Array {
	t.Helper()
	e := compile(t, c, g)
	defer e.Close()
	args := make([]backend.Buffer, len(in))
	for i, a := range in {
		args[i] = upload(t, c, a)
	}
	out := run(t, e, args...)
	arrays := make([]*tensor.Array, len(out))
	for i, b := range out {
		arrays[i] = read(t, b)
		b.Free()
	}
	return arrays
}

// excerpt is the start of a program's listing.
func excerpt(g *graph.Graph) string {
	s := g.String()
	if len(s) > 2000 {
		s = s[:2000] + "…"
	}
	return s
}
