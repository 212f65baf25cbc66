package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

func newTestEngine(t *testing.T, mode Mode) *Engine {
	t.Helper()
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := New(c, Options{Mode: mode})
	t.Cleanup(func() {
		_ = e.Sync()
		c.Close()
	})
	return e
}

func allModes(t *testing.T, fn func(t *testing.T, e *Engine)) {
	for _, m := range []Mode{Strict, Fused, Compiled, Blocking} {
		t.Run(m.String(), func(t *testing.T) { fn(t, newTestEngine(t, m)) })
	}
}

func (e *Engine) vec(v ...float32) Value { return e.Upload(tensor.FromFloat32(v, len(v))) }

func wantValues(t *testing.T, v Value, want ...float32) {
	t.Helper()
	a, err := v.Read()
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Float32s(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChain(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		x := e.vec(1, 2, 3)
		y := x.Mul(x).AddScalar(1)
		z := y.Sub(x)
		wantValues(t, z, 1, 3, 7)
		wantValues(t, y, 2, 5, 10) // passed over by the first cut in fused mode, computed again
		wantValues(t, x, 1, 2, 3)
		wantValues(t, e.ConstScalar(tensor.F32, 4).Reshape(1), 4)
	})
}

// A program of an operation that takes one value twice is not that of two values.
func TestOneOperandTwice(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		x, w := e.vec(2, 3), e.vec(5, 7)
		wantValues(t, x.Mul(x), 4, 9)
		wantValues(t, x.Mul(w), 10, 21)
		wantValues(t, w.Mul(w), 25, 49)
	})
}

// A mistake names the operation, the shapes and this file's line, and comes out of the first boundary.
func TestFailedValue(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		bad := e.vec(1, 2).Add(e.vec(1, 2, 3))
		after := bad.MulScalar(2).Reshape(7).Slice(3, 0, 1).Tanh()
		_, err := after.Read()
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range []string{"add", "[2]", "[3]", "engine/engine_test.go:"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not name %q", err, want)
			}
		}
		for name, v := range map[string]Value{
			"zero value": Value{}.Add(e.vec(1)),
			"axis":       e.vec(1).Slice(2, 0, 1),
			"dtype":      e.vec(1).Add(e.Scalar(tensor.BF16, 1)),
			"split":      e.vec(1, 2).Split(0, 1, 2)[0],
			"concat":     Concat(0, e.vec(1), Value{}),
			"gather":     e.vec(1).Gather(e.vec(1)),
		} {
			if err := v.Wait(); err == nil || !strings.Contains(err.Error(), "engine_test.go:") {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantValues(t, e.vec(1).AddScalar(1), 2) // the engine goes on
	})
}

// A second identical recording compiles nothing, in any mode.
func TestCacheHits(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		f := e.Function("f", func(in []Value) []Value { return []Value{in[0].Mul(in[1]).Tanh().AddScalar(0.5)} })
		call := func(n int, v float32) {
			t.Helper()
			data := make([]float32, n)
			for i := range data {
				data[i] = v
			}
			if err := f.Call(e.vec(data...), e.Scalar(tensor.F32, float64(v)))[0].Wait(); err != nil {
				t.Fatal(err)
			}
		}
		call(4, 1)
		first := e.Stats()
		if first.Compiles == 0 {
			t.Fatal("nothing was compiled")
		}
		call(4, 2) // other numbers
		if d := e.Stats().Sub(first); d.Compiles != 0 || d.MemoryHits == 0 {
			t.Errorf("the same shapes compiled %d programs, %d hits", d.Compiles, d.MemoryHits)
		}
		call(5, 1)
		other := e.Stats()
		if d := other.Sub(first); d.Compiles != first.Compiles {
			t.Errorf("a new shape compiled %d programs, the first one %d", d.Compiles, first.Compiles)
		}
		call(4, 3) // back
		if d := e.Stats().Sub(other); d.Compiles != 0 {
			t.Errorf("going back compiled %d programs", d.Compiles)
		}
		if e.Mode() == Compiled && first.CompilesOf["f"] != 1 {
			t.Errorf("compiled %v, want f once", first.CompilesOf)
		}
	})
}

// Two blocks with parameters of their own share one program.
func TestFunctionCapturesParameters(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		var fns []*Function
		for _, w := range []float32{2, 3, 4} {
			p := e.vec(w, w)
			fns = append(fns, e.Function("block", func(in []Value) []Value { return []Value{in[0].Mul(p)} }))
		}
		x := e.vec(1, 10)
		for _, f := range fns {
			x = f.Call(x)[0]
		}
		wantValues(t, x, 24, 240)
		if n := e.Stats().CompilesOf["block"]; e.Mode() == Compiled && n != 1 {
			t.Errorf("three blocks of one class compiled %d programs", n)
		}
	})
}

func TestFunctionErrors(t *testing.T) {
	e := newTestEngine(t, Compiled)
	fail := func(name, want string, fn func([]Value) []Value) {
		t.Helper()
		err := e.Function(name, fn).Call(e.vec(1, 2))[0].Wait()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	fail("shape", "engine_test.go:", func(in []Value) []Value { return []Value{in[0].Reshape(7)} })
	fail("read", "while its function is traced", func(in []Value) []Value {
		_, err := in[0].Read()
		return []Value{e.failed(err)}
	})
	fail("nothing", "returned nothing", func([]Value) []Value { return nil })
	var leaked Value
	e.Function("leak", func(in []Value) []Value { leaked = in[0]; return in }).Call(e.vec(1))
	if err := leaked.AddScalar(1).Wait(); err == nil {
		t.Error("a traced value was read after its function")
	}
}

// A loop body that repeats becomes one program, whatever its length from 3 to 127.
func TestRepeatingTail(t *testing.T) {
	for _, body := range []int{3, 4, 17, 127} {
		t.Run(fmt.Sprint(body), func(t *testing.T) {
			e := newTestEngine(t, Fused)
			step := func(x, y Value) (Value, Value) {
				for i := range body - 1 { // two carried values; y is not the last one recorded
					if i == 0 {
						y = y.Add(x)
					} else {
						x = x.MulScalar(1 + float64(i)/1000)
					}
				}
				return x.Add(y), y
			}
			run := func(rounds int) (float32, Snapshot) {
				x, y := e.vec(1, 2), e.vec(3, 4)
				for range rounds {
					x, y = step(x, y)
				}
				a, err := x.Sub(y).Read()
				if err != nil {
					t.Fatal(err)
				}
				return a.Float32s()[1], e.Stats()
			}
			got, s1 := run(12)
			if s1.Runs < 10 {
				t.Errorf("12 rounds ran as %d programs", s1.Runs)
			}
			_, s2 := run(12)
			_, s3 := run(30)
			if d := s3.Sub(s2); d.Compiles > 2 { // the rest behind the last whole round may differ
				t.Errorf("30 rounds after 12 compiled %d more programs", d.Compiles)
			}
			strict := newTestEngine(t, Strict)
			x, y := strict.vec(1, 2), strict.vec(3, 4)
			for range 12 {
				x, y = step(x, y)
			}
			a, err := x.Sub(y).Read()
			if err != nil {
				t.Fatal(err)
			}
			if want := a.Float32s()[1]; got != want {
				t.Errorf("fused %v, strict %v", got, want)
			}
		})
	}
}

// Rounds that the caller cuts stay whole, although what comes before the first looks like a round's end, and although
// something else is recorded.
func TestCutRounds(t *testing.T) {
	e := newTestEngine(t, Fused)
	x := e.vec(1, 2)
	for i := range 10 {
		x.AddScalar(float64(i))
	}
	for round := range 13 {
		first := 0
		if round == 0 {
			first = 30
		}
		for i := first; i < 40; i++ {
			x = x.MulScalar(1 + float64(i)/1000)
		}
		if err := e.Cut(x); err != nil {
			t.Fatal(err)
		}
	}
	if s := e.Stats(); s.Compiles != 3 || s.Runs != 14 { // the part of a round, what else is recorded, and rounds
		t.Errorf("13 rounds: %d programs, run %d times", s.Compiles, s.Runs)
	}
}

// What a recording computes does not depend on where it is cut.
func TestFusedKeepsOtherReaders(t *testing.T) {
	e := newTestEngine(t, Fused)
	x := e.vec(1, 2)
	a := x.AddScalar(1)
	b := a.MulScalar(2)
	c := a.MulScalar(3)
	wantValues(t, b, 4, 6)
	wantValues(t, c, 6, 9)
	if err := e.Sync(); err != nil {
		t.Fatal(err)
	}
	wantValues(t, a, 2, 3)
}

func TestLongFusedRecordingIsCut(t *testing.T) {
	e := newTestEngine(t, Fused)
	x := e.vec(0)
	for i := range 3 * maxPending { // no period up to 127: the constants count up
		x = x.AddScalar(float64(i % 1000))
	}
	if e.Stats().Runs == 0 {
		t.Error("nothing ran before somebody looked")
	}
	if _, err := x.Read(); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentUse(t *testing.T) {
	allModes(t, func(t *testing.T, e *Engine) {
		f := e.Function("f", func(in []Value) []Value { return []Value{in[0].AddScalar(1).Mul(in[0])} })
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 20 {
					v := float32(g*100 + i)
					a, err := f.Call(e.vec(v, v))[0].Read()
					if err != nil {
						t.Error(err)
						return
					}
					if got := a.Float32s()[0]; got != (v+1)*v {
						t.Errorf("got %v, want %v", got, (v+1)*v)
					}
				}
			})
		}
		wg.Wait()
		if n := e.Stats().CompilesOf["f"]; e.Mode() == Compiled && n != 1 {
			t.Errorf("eight callers compiled %d programs", n)
		}
	})
}

// fakeClient runs nothing until it is told to, and fails what it is told to.
type fakeClient struct {
	backend.Client
	mu      sync.Mutex
	started int
	release chan struct{}
	failAt  int // the execution (from 1) that fails
	sticky  error
}

var errDevice = errors.New("device: out of luck")

func (c *fakeClient) Platform() string { return "fake" }
func (c *fakeClient) Compile(_ context.Context, g *graph.Graph, _ int) (backend.Executable, error) {
	return &fakeExe{c: c, out: g.Outputs[0].Type}, nil
}
func (c *fakeClient) Upload(a *tensor.Array, _ int) (backend.Buffer, error) {
	return &fakeBuffer{typ: typeOf(a), done: func() error { return nil }}, nil
}
func (c *fakeClient) Sync(int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.sticky
	c.sticky = nil
	return err
}

type fakeExe struct {
	c   *fakeClient
	out graph.Type
}

func (x *fakeExe) Run(args []backend.Buffer) ([]backend.Buffer, backend.Event, error) {
	x.c.mu.Lock()
	x.c.started++
	fails := x.c.started == x.c.failAt
	x.c.mu.Unlock()
	done := sync.OnceValue(func() error {
		<-x.c.release
		for _, a := range args {
			if err := a.Wait(); err != nil {
				return err
			}
		}
		if fails {
			x.c.mu.Lock()
			x.c.sticky = errDevice
			x.c.mu.Unlock()
			return errDevice
		}
		return nil
	})
	b := &fakeBuffer{typ: x.out, done: done}
	return []backend.Buffer{b}, b, nil
}
func (x *fakeExe) Memory() backend.MemoryStats { return backend.MemoryStats{} }
func (x *fakeExe) Close()                      {}

type fakeBuffer struct {
	typ  graph.Type
	done func() error
}

func (b *fakeBuffer) Type() graph.Type    { return b.typ }
func (b *fakeBuffer) Wait() error         { return b.done() }
func (b *fakeBuffer) Done() (bool, error) { return true, b.done() }
func (b *fakeBuffer) Free()               {}
func (b *fakeBuffer) Read() (*tensor.Array, error) {
	if err := b.done(); err != nil {
		return nil, err
	}
	return tensor.New(b.typ.DType, b.typ.Shape...), nil
}

// Strict mode issues a thousand dependent operations without waiting for the first.
func TestStrictIsAsynchronous(t *testing.T) {
	c := &fakeClient{release: make(chan struct{})}
	e := New(c, Options{})
	x := e.vec(1)
	for range 1000 {
		x = x.Tanh()
	}
	if c.started != 1000 {
		t.Errorf("%d of 1000 operations were issued", c.started)
	}
	close(c.release)
	if err := x.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A context that ends while the device computes ends a read, and what was issued can be read later.
func TestReadContext(t *testing.T) {
	c := &fakeClient{release: make(chan struct{})}
	e := New(c, Options{})
	x := e.vec(1).Tanh()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := x.ReadContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(c.release)
	if _, err := x.ReadContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// An operation that fails on the device is reported with the line that made it, by what depends on it and by Sync.
func TestAsynchronousErrorNamesItsLine(t *testing.T) {
	c := &fakeClient{release: make(chan struct{}), failAt: 2}
	close(c.release)
	e := New(c, Options{})
	x := e.vec(1).Tanh()
	x = makeFailing(x)
	for range 5 {
		x = x.Tanh()
	}
	for what, err := range map[string]error{"read": x.Wait(), "sync": e.Sync()} {
		if !errors.Is(err, errDevice) {
			t.Fatalf("%s: %v", what, err)
		}
		if !strings.Contains(err.Error(), "engine/failing_test.go:6") {
			t.Errorf("%s: %v does not name the failing line", what, err)
		}
	}
	if err := e.Sync(); err != nil {
		t.Errorf("the error came twice: %v", err)
	}
	if err := e.vec(1).Tanh().Wait(); err != nil {
		t.Errorf("the engine does not go on: %v", err)
	}
}
