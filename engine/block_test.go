package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// piece is a block of a model: x² + y.
func piece(x, y Value) Value {
	return Block(func(in []Value) []Value { return []Value{in[0].Mul(in[0]).Add(in[1])} }, x, y)[0]
}

func wantGone(t *testing.T, v Value) {
	t.Helper()
	_, err := v.Read()
	if err == nil || !strings.Contains(err.Error(), "f32[2] was donated at engine/block_test.go:") {
		t.Errorf("reading a donated value: %v", err)
	}
	w := v.AddScalar(1).Tanh()
	if _, werr := w.Read(); werr == nil || !strings.Contains(werr.Error(), err.Error()) || !strings.Contains(werr.Error(), "add: operand 0") {
		t.Errorf("using a donated value: %v", werr)
	}
}

// What is computed with donated values is what is computed without, and they are gone.
func TestDonate(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		f := e.Function("f", func(in []Value) []Value { return []Value{in[0].Mul(in[1])} })
		w := e.vec(1, -1)
		x := e.vec(0, 2)
		var old []Value
		for range 3 {
			old = append(old, x)
			x = piece(x.Donate(), w)
			old = append(old, x)
			x = f.Call(x.Donate(), w)[0]
		}
		wantValues(t, x, 5, -63)
		for _, v := range old {
			wantGone(t, v)
		}
		wantValues(t, w, 1, -1)
		if err := e.Sync(); err != nil {
			t.Error(err)
		}
	})
}

// A promise that comes to nothing leaves the value as it is.
func TestNotDonated(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		w := e.vec(1, -1)
		x := e.vec(3, 4)
		wantValues(t, x.Donate().Add(w), 4, 3) // an operation
		wantValues(t, x, 3, 4)

		waiting := x.Tanh()
		y := piece(x.Donate(), w)
		wantValues(t, y, 10, 15)
		if e.Mode() == Fused {
			wantValues(t, x, 3, 4)
		} else {
			wantGone(t, x)
		}
		if err := waiting.Wait(); err != nil {
			t.Error(err)
		}

		f := e.Function("f", func(in []Value) []Value { return []Value{in[0].Add(in[1])} })
		wantValues(t, f.Call(y.Donate(), y.Donate())[0], 20, 30)

		b, err := e.UploadParam(tensor.FromFloat32([]float32{5, 6}, 2))
		if err != nil {
			t.Fatal(err)
		}
		p := e.Param(graph.Type{DType: tensor.F32, Shape: tensor.Shape{2}}, fixed{b})
		wantValues(t, piece(p.Donate(), w), 26, 35)
		wantValues(t, p, 5, 6)

		seen := e.vec(1, 2)
		e.SetTap(func(string, Value) {})
		wantValues(t, piece(seen.Donate(), w), 2, 3)
		e.SetTap(nil)
		wantValues(t, seen, 1, 2)
	})
}

// Programs say which inputs they take over, in the modes that make programs of blocks and functions.
func TestDonatedInputs(t *testing.T) {
	for _, mode := range []Mode{Strict, Fused, Compiled} {
		c := &graphs{Client: newTestEngine(t, mode).client}
		e := New(c, Options{Mode: mode})
		f := e.Function("f", func(in []Value) []Value { return []Value{in[1].Mul(in[0])} })
		x, w := e.vec(1, 2), e.vec(3, 4)
		for range 2 {
			x = f.Call(w, x.Donate())[0]
		}
		wantValues(t, x, 9, 32)
		f.Call(w, x)
		var donated []int
		for _, g := range c.all {
			donated = append(donated, g.Donated...)
		}
		if want := map[Mode]int{Strict: 0, Fused: 1, Compiled: 1}[mode]; len(donated) != want {
			t.Errorf("%s: programs %v", mode, c.all)
		}
	}
}

// fixed is a parameter that is always there.
type fixed struct{ b backend.Buffer }

func (f fixed) Buffer() (backend.Buffer, error) { return f.b, nil }

// graphs notes what is compiled.
type graphs struct {
	backend.Client
	all []*graph.Graph
}

func (c *graphs) Compile(ctx context.Context, g *graph.Graph, device int) (backend.Executable, error) {
	c.all = append(c.all, g)
	return c.Client.Compile(ctx, g, device)
}

// A fused block is one program and takes over its inputs, although what it does repeats inside.
func TestBlockIsOneProgram(t *testing.T) {
	c := &graphs{Client: newTestEngine(t, Fused).client}
	e := New(c, Options{Mode: Fused})
	x, w := e.vec(0.5, -1), e.vec(1, 2)
	for range 3 {
		x = Block(func(in []Value) []Value {
			x := in[0]
			for range 6 {
				x = x.Mul(in[1]).Tanh().Add(in[1]).Tanh()
			}
			return []Value{x}
		}, x.Donate(), w)[0]
	}
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(c.all) != 1 || !slices.Equal(c.all[0].Donated, []int{0}) {
		t.Errorf("programs of three blocks: %v", c.all)
	}
	for range 30 { // what follows is cut where it repeats, as ever
		x = x.Mul(w).Tanh().Add(w).Tanh()
	}
	if n := e.Stats().Runs; n < 3+25 {
		t.Errorf("%d runs after a loop of 30", n)
	}
}
