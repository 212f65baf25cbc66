package pjrt

import (
	"errors"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// The result of a program lies where the argument was that it took over, and nobody can use that argument any more.
func TestDonation(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{})
		const n = 1 << 18 // 1 MB
		e, taking := adder(t, c, 0, n), takingAdder(t, c, n)
		if s, err := taking.(*Executable).loaded.Executable().MemoryStats(); err != nil || s.Alias != 4*n {
			t.Errorf("the result shares %d bytes with arguments, %v", s.Alias, err)
		}
		if kept, taken := e.Memory().Outputs, taking.Memory().Outputs; kept-taken != 4*n {
			t.Errorf("Memory says that outputs take %d bytes, and %d in the argument's place", kept, taken)
		}
		host := make([]float32, n)
		host[0] = 1
		x := upload(t, c, 0, host...)
		y, _ := mustRun(t, e, x)
		live := func() int64 {
			if err := c.Sync(0); err != nil {
				t.Fatal(err)
			}
			return c.MemoryInUse()
		}
		if l := live(); l != 4*n {
			t.Errorf("one result is alive: %d bytes", l)
		}
		z, _ := mustRun(t, taking, y)
		if l := live(); l != 4*n {
			t.Errorf("a result is alive that took over the other: %d bytes", l)
		}
		if _, err := y.Read(); err == nil || !strings.Contains(err.Error(), "was freed") {
			t.Errorf("reading what was donated: %v", err)
		}
		if _, _, err := e.Run([]backend.Buffer{y}); err == nil || !strings.Contains(err.Error(), "argument 0 was freed") {
			t.Errorf("running with what was donated: %v", err)
		}
		mine, _ := mustRun(t, taking, x) // the upload lies in host
		for i, b := range []backend.Buffer{z, mine} {
			if a, err := b.Read(); err != nil || a.Float32s()[0] != []float32{4, 2}[i] {
				t.Errorf("result %d: %v, %v", i, a, err)
			}
		}
		if host[0] != 1 {
			t.Errorf("a program wrote into the caller's memory: %v", host[0])
		}
	})
}

// What is donated need not be there yet, and its error is that of everything computed from it.
func TestDonationOfWhatIsToCome(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		for _, lost := range []bool{false, true} {
			c := newTestClient(t, path, Options{})
			e := takingAdder(t, c, 4)
			b, p := promised(t, c, 4)
			for range 100 {
				b, _ = mustRun(t, e, b)
			}
			if done, err := b.(*buffer).v.run.Done(); done {
				t.Fatalf("an execution has ended before its argument was there: %v", err)
			}
			var err error
			if lost {
				err = p.Fail(capi.DataLoss, "the value was lost")
			} else {
				err = p.Fulfill(upload(t, c, 0, 1, 0, -1, 0).(*buffer).v.buf)
			}
			if err != nil {
				t.Fatal(err)
			}
			a, err := b.Read()
			if lost {
				if err == nil || !strings.Contains(err.Error(), "the value was lost") {
					t.Errorf("reading what was computed from a lost value: %v", err)
				}
				if serr := c.Sync(0); !errors.Is(serr, err) {
					t.Errorf("Sync says %v", serr)
				}
			} else if err != nil || a.Float32s()[0] != 1<<100 {
				t.Errorf("got %v, %v", a, err)
			}
		}
	})
}

// Two runs that were given one buffer at the same time: the second one fails, and the device lives on.
func TestDonatedTwice(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{})
		e := takingAdder(t, c, 4)
		b := upload(t, c, 0, 1, 2, 3, 4).(*buffer)
		b.v.retain()
		other := newBuffer(b.v) // as a call sees b that has checked it before the other call frees it
		first, _ := mustRun(t, e, b)
		second, _ := mustRun(t, e, other)
		if a, err := first.Read(); err != nil || a.Float32s()[3] != 8 {
			t.Errorf("the first: %v, %v", a, err)
		}
		if _, err := second.Read(); err == nil || !strings.Contains(err.Error(), "donated") {
			t.Errorf("the second: %v", err)
		}
		if err := c.Sync(0); err == nil {
			t.Error("Sync says nothing of the second")
		}
		third, _ := mustRun(t, e, first)
		if a, err := third.Read(); err != nil || a.Float32s()[3] != 16 {
			t.Errorf("afterwards: %v, %v", a, err)
		}
	})
}

// Of the hidden states between the blocks of a model one is alive, whoever still has the values.
func TestBlocksDonate(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		const n = 1 << 18 // 1 MB
		for _, mode := range []engine.Mode{engine.Fused, engine.Compiled} {
			c := newTestClient(t, path, Options{})
			e := engine.New(c, engine.Options{Mode: mode})
			x := e.Upload(tensor.New(tensor.F32, n))
			step := e.Function("step", func(in []engine.Value) []engine.Value {
				return engine.Block(func(in []engine.Value) []engine.Value {
					return []engine.Value{in[0].AddScalar(1).Mul(in[0]).AddScalar(1)}
				}, in...)
			})
			var all []engine.Value
			for range 4 {
				x = step.Call(x.Donate())[0]
				all = append(all, x)
			}
			if err := e.Sync(); err != nil {
				t.Fatal(err)
			}
			if m := c.MemoryInUse(); m != 4*n {
				t.Errorf("%s: %d bytes are alive, the last result has %d", mode, m, 4*n)
			}
			if a, err := x.Read(); err != nil || a.Float32s()[0] != 183 { // 1, 3, 13, 183
				t.Errorf("%s: %v, %v", mode, a, err)
			}
			if _, err := all[0].Read(); err == nil || !strings.Contains(err.Error(), "was donated at pjrt/donate_test.go:") {
				t.Errorf("%s: reading what was donated: %v", mode, err)
			}
		}
	})
}
