package backendtest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// testStream checks order, asynchrony and use from several goroutines.
func testStream(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	m := newMaker(9)
	dot := graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}
	t.Run("Run does not wait", func(t *testing.T) {
		const n = 128
		x := graph.NewInput(0, f32(n, n))
		b := upload(t, c, m.between(tensor.F32, -0.1, 0.1, n, n))
		// A longer program each time, until one is seen under way.
		for length := 4; length <= 1<<14; length *= 4 {
			b2 := &graph.Builder{}
			v := x
			for range length {
				v = b2.Make(graph.Tanh, nil, b2.Make(graph.DotGeneral, dot, v, x))
			}
			g, err := graph.New("long", []*graph.Node{x}, []*graph.Node{v})
			if err != nil || b2.Err != nil {
				t.Fatal(err, b2.Err)
			}
			e := compile(t, c, g)
			out, done, err := e.Run([]backend.Buffer{b})
			if err != nil {
				t.Fatal(err)
			}
			ended, _ := done.Done()
			if err := out[0].Wait(); err != nil {
				t.Fatal(err)
			}
			if now, err := done.Done(); !now || err != nil {
				t.Errorf("after Wait the event says %v, %v", now, err)
			}
			if !ended {
				return
			}
		}
		t.Error("every program had ended when Run returned")
	})
	t.Run("order", func(t *testing.T) {
		e := compile(t, c, make1(t, graph.Add, nil, f32(17), f32(17)))
		one := upload(t, c, tensor.FromFloat32([]float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 17))
		v := one
		for range 999 {
			v = run(t, e, v, one)[0]
		}
		for i, x := range read(t, v).Float32s() {
			if x != 1000 {
				t.Fatalf("element %d is %v, expected 1000", i, x)
			}
		}
	})
	t.Run("several goroutines", func(t *testing.T) {
		g := make1(t, graph.Add, nil, f32(65), f32(65))
		shared := compile(t, c, g)
		var wg sync.WaitGroup
		for w := range 8 {
			start := m.between(tensor.F32, 0, 1, 65)
			wg.Go(func() {
				e := shared
				if w%2 == 1 {
					var err error
					if e, err = c.Compile(context.Background(), g, 0); err != nil {
						t.Error(err)
						return
					}
				}
				v, err := c.Upload(start, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for range 10 {
					out, _, err := e.Run([]backend.Buffer{v, v})
					if err != nil {
						t.Error(err)
						return
					}
					if w%3 == 0 {
						v.Free()
					}
					v = out[0]
					if w == 7 {
						if err := c.Sync(0); err != nil {
							t.Error(err)
						}
					}
				}
				a, err := v.Read()
				if err != nil {
					t.Error(err)
					return
				}
				for i, x := range a.Float32s() {
					if want := 1024 * start.Float32s()[i]; x != want {
						t.Errorf("goroutine %d: element %d is %v, expected %v", w, i, x, want)
						return
					}
				}
			})
		}
		wg.Wait()
	})
	t.Run("an executable closed early", func(t *testing.T) {
		e := compile(t, c, make1(t, graph.Linear, graph.LinearAttr{}, f32(64, 64), f32(64, 64)))
		x := upload(t, c, m.normal(tensor.F32, 64, 64))
		out := run(t, e, x, x)
		e.Close()
		if _, err := out[0].Read(); err != nil {
			t.Error(err)
		}
	})
	t.Run("names", func(t *testing.T) {
		if c.Platform() == "" || c.Version() == "" {
			t.Errorf("platform %q, version %q", c.Platform(), c.Version())
		}
		for i, d := range c.Devices() {
			if d.Kind == "" {
				t.Errorf("device %d has no kind", i)
			}
		}
	})
}

// inUse is what a client may offer so that this table can see memory come back: the bytes that buffers hold.
type inUse interface{ MemoryInUse() int64 }

func testMemory(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	const n = 1 << 18 // 1 MB
	e := compile(t, c, make1(t, graph.Neg, nil, f32(n)))
	if o := e.Memory().Outputs; o < 4*n {
		t.Errorf("Memory says outputs take %d bytes, expected at least %d", o, 4*n)
	}
	meter, ok := c.(inUse)
	if !ok {
		t.Skip("this backend does not say how much memory is in use")
	}
	x := upload(t, c, tensor.New(tensor.F32, n))
	sync := func() int64 {
		if err := c.Sync(0); err != nil {
			t.Fatal(err)
		}
		return meter.MemoryInUse()
	}
	before := sync()
	t.Run("freed", func(t *testing.T) {
		var held []backend.Buffer
		for range 8 {
			held = append(held, run(t, e, x)...)
		}
		if got := sync() - before; got < 8*4*n {
			t.Errorf("8 results hold %d bytes, expected at least %d", got, 8*4*n)
		}
		for _, b := range held {
			b.Free()
		}
		if got := sync(); got != before {
			t.Errorf("%d bytes in use after Free, expected %d", got, before)
		}
	})
	t.Run("donated", func(t *testing.T) {
		g := make1(t, graph.Neg, nil, f32(n))
		g.Donated = []int{0}
		taking := compile(t, c, g)
		held := run(t, e, x)
		for range 8 {
			held = append(held, run(t, taking, held[len(held)-1])...)
		}
		if got := sync() - before; got < 4*n || got >= 2*4*n {
			t.Errorf("%d bytes in use, expected one result of %d", got, 4*n)
		}
		held[len(held)-1].Free()
		if got := sync(); got != before {
			t.Errorf("%d bytes in use after Free, expected %d", got, before)
		}
		runtime.KeepAlive(held)
	})
	t.Run("unreachable", func(t *testing.T) {
		for range 8 {
			run(t, e, x)
		}
		deadline := time.Now().Add(10 * time.Second)
		for sync() != before {
			if time.Now().After(deadline) {
				t.Fatalf("%d bytes in use, expected %d: unreachable buffers stay", meter.MemoryInUse(), before)
			}
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	})
	t.Run("dropped op by op", func(t *testing.T) {
		for range 400 {
			run(t, e, x)
		}
		if got := sync() - before; got > 400*4*n/2 {
			t.Errorf("%d bytes in use after 400 dropped results of %d: nothing was collected", got, 4*n)
		}
	})
}
