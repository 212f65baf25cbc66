package pjrt

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

func newTestClient(t testing.TB, path string, o Options) *Client {
	t.Helper()
	c, err := New(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// adder compiles x + x for f32[n].
func adder(t testing.TB, c *Client, device, n int) backend.Executable {
	t.Helper()
	return compileAdder(t, c, device, n, nil)
}

// takingAdder compiles the same, where the result takes over x.
func takingAdder(t testing.TB, c *Client, n int) backend.Executable {
	t.Helper()
	return compileAdder(t, c, 0, n, []int{0})
}

func compileAdder(t testing.TB, c *Client, device, n int, donated []int) backend.Executable {
	t.Helper()
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{n}})
	y, err := graph.Make(graph.Add, nil, x, x)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New("twice", []*graph.Node{x}, []*graph.Node{y})
	if err != nil {
		t.Fatal(err)
	}
	g.Donated = donated
	e, err := c.Compile(t.Context(), g, device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func upload(t testing.TB, c *Client, device int, v ...float32) backend.Buffer {
	t.Helper()
	b, err := c.Upload(tensor.FromFloat32(v, len(v)), device)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustRun(t testing.TB, e backend.Executable, args ...backend.Buffer) (backend.Buffer, backend.Event) {
	t.Helper()
	out, done, err := e.Run(args)
	if err != nil {
		t.Fatal(err)
	}
	return out[0], done
}

// promised is an argument that is not there yet: what is issued with it can't end before the promise is kept.
func promised(t *testing.T, c *Client, n int) (backend.Buffer, *capi.Promise) {
	t.Helper()
	m, err := c.devices[0].d.DefaultMemory()
	if err != nil {
		t.Fatal(err)
	}
	b, p, err := c.c.NewPromise(capi.F32, []int64{int64(n)}, m)
	if err != nil {
		t.Fatal(err)
	}
	v := &value{c: c, typ: graph.Type{DType: tensor.F32, Shape: tensor.Shape{n}}, buf: b}
	c.adopt(v, 1)
	return newBuffer(v), p
}

// Of a thousand dependent operations all are issued before the first has run.
func TestAsynchronous(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{})
		e := adder(t, c, 0, 4)
		b, p := promised(t, c, 4)
		var events []backend.Event
		for range 1000 {
			next, done := mustRun(t, e, b)
			events = append(events, done)
			b.Free()
			b = next
		}
		for i, ev := range events {
			if done, err := ev.Done(); done {
				t.Fatalf("operation %d has ended before its argument was there: %v", i, err)
			}
		}
		one := upload(t, c, 0, 1, 0, -1, 0).(*buffer)
		if err := p.Fulfill(one.v.buf); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(0); err != nil {
			t.Fatal(err)
		}
		for i, ev := range events {
			if done, err := ev.Done(); !done || err != nil {
				t.Fatalf("after Sync operation %d says %v, %v", i, done, err)
			}
		}
		a, err := b.Read()
		if err != nil {
			t.Fatal(err)
		}
		// 2^1000 is an infinity in f32.
		if v := a.Float32s(); v[1] != 0 || v[0] < 1e38 || v[2] > -1e38 {
			t.Errorf("got %v", v)
		}
	})
}

// An execution that fails while others wait for it: one text everywhere, once in Sync, and the device lives on.
func TestFailureWhileOthersWait(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{Name: "xla-cpu"})
		e := adder(t, c, 0, 4)
		b, p := promised(t, c, 4)
		first, firstDone := mustRun(t, e, b)
		second, _ := mustRun(t, e, first)
		third, thirdDone := mustRun(t, e, second)
		fine, _ := mustRun(t, e, upload(t, c, 0, 1, 2, 3, 4))
		if err := p.Fail(capi.DataLoss, "the value was lost"); err != nil {
			t.Fatal(err)
		}
		err := firstDone.Wait()
		if err == nil || !strings.Contains(err.Error(), "the value was lost") || !strings.HasPrefix(err.Error(), "xla-cpu: run twice: ") {
			t.Errorf("the first says %v", err)
		}
		for _, b := range []backend.Buffer{first, second, third} {
			if werr := b.Wait(); werr != err {
				t.Errorf("Wait says %v, expected %v", werr, err)
			}
			if _, rerr := b.Read(); rerr != err {
				t.Errorf("Read says %v, expected %v", rerr, err)
			}
		}
		if terr := thirdDone.Wait(); terr != err {
			t.Errorf("the last says %v, expected %v", terr, err)
		}
		later, laterDone := mustRun(t, e, third) // issued when it is known
		if lerr := laterDone.Wait(); lerr != err {
			t.Errorf("what was issued afterwards says %v", lerr)
		}
		later.Free()
		if a, err := fine.Read(); err != nil || a.Float32s()[3] != 8 {
			t.Errorf("what doesn't depend on it: %v, %v", a, err)
		}
		if serr := c.Sync(0); serr != err {
			t.Errorf("Sync says %v, expected %v", serr, err)
		}
		if serr := c.Sync(0); serr != nil {
			t.Errorf("Sync says it twice: %v", serr)
		}
	})
}

// Executions whose results together would take more than InFlight bytes wait for each other, but nobody waits for them.
func TestInFlight(t *testing.T) {
	c := newTestClient(t, plugintest.Newest(t), Options{InFlight: 64})
	e := adder(t, c, 0, 4)
	b, p := promised(t, c, 4)
	var events []*run
	for range 8 { // 16 bytes each: four fit
		_, done := mustRun(t, e, b)
		events = append(events, done.(*run))
	}
	events[3].reach(issued)
	time.Sleep(10 * time.Millisecond)
	if s := events[4].state.Load(); s != waiting {
		t.Errorf("the fifth execution is in state %d", s)
	}
	if err := p.Fulfill(upload(t, c, 0, 1, 2, 3, 4).(*buffer).v.buf); err != nil {
		t.Fatal(err)
	}
	for _, r := range events {
		if err := r.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestDevices(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{Client: map[string]any{"cpu_device_count": int64(2)}})
		if n := len(c.Devices()); n != 2 {
			t.Fatalf("%d devices", n)
		}
		e := adder(t, c, 1, 3)
		y, _ := mustRun(t, e, upload(t, c, 1, 1, 2, 3))
		if err := y.Wait(); err != nil {
			t.Fatal(err)
		}
		d, err := y.(*buffer).v.buf.Device()
		if err != nil {
			t.Fatal(err)
		}
		desc, err := d.Description()
		if err != nil {
			t.Fatal(err)
		}
		if id, err := desc.ID(); err != nil || id != c.devices[1].id {
			t.Errorf("the result is on device %d, %v", id, err)
		}
		if _, _, err := e.Run([]backend.Buffer{upload(t, c, 0, 1, 2, 3)}); err == nil || !strings.Contains(err.Error(), "on device 0, the program on 1") {
			t.Errorf("an argument of the other device: %v", err)
		}
		if err := c.Sync(1); err != nil {
			t.Error(err)
		}
	})
}

// After Close everything answers with an error, and what still exists may be freed.
func TestClose(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c, err := New(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := adder(t, c, 0, 3)
		x := upload(t, c, 0, 1, 2, 3)
		y, done := mustRun(t, e, x)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		if ended, err := done.Done(); !ended || err != nil {
			t.Errorf("Close didn't wait: %v, %v", ended, err)
		}
		if _, _, err := e.Run([]backend.Buffer{x}); !errors.Is(err, errClosed) {
			t.Errorf("Run says %v", err)
		}
		if _, err := y.Read(); err == nil {
			t.Error("a buffer was read")
		}
		if _, err := c.Upload(tensor.New(tensor.F32, 3), 0); !errors.Is(err, errClosed) {
			t.Errorf("Upload says %v", err)
		}
		if err := c.Sync(0); !errors.Is(err, errClosed) {
			t.Errorf("Sync says %v", err)
		}
		if _, err := c.Compile(context.Background(), &graph.Graph{}, 0); !errors.Is(err, errClosed) {
			t.Errorf("Compile says %v", err)
		}
		x.Free()
		y.Free()
	})
}

// 10,000 executions, half of which take over what the one before has made, leave nothing behind: whether results are freed or
// left to the collector.
func TestLeak(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c, err := New(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		const n = 16 << 10 // 64 KB
		e, taking := adder(t, c, 0, n), takingAdder(t, c, n)
		host := make([]float32, n)
		some := func(count int) {
			for i := 0; i < count; i += 4 {
				x, err := c.Upload(tensor.FromFloat32(host, n), 0)
				if err != nil {
					t.Fatal(err)
				}
				y, _ := mustRun(t, e, x)
				z, _ := mustRun(t, taking, y)
				z, _ = mustRun(t, taking, z)
				w, _ := mustRun(t, e, z)
				if i%100 == 0 {
					if _, err := w.Read(); err != nil {
						t.Fatal(err)
					}
				}
				if i%8 == 0 {
					x.Free()
					z.Free()
					w.Free()
				}
			}
		}
		settle := func() {
			deadline := time.Now().Add(10 * time.Second)
			for time.Now().Before(deadline) {
				runtime.GC()
				time.Sleep(time.Millisecond) // the collector's cleanups run after it
				c.janitor.flush()
				c.mu.Lock()
				empty := c.values.head == nil
				c.mu.Unlock()
				if empty && c.MemoryInUse() == 0 {
					return
				}
			}
			t.Errorf("%d bytes are still in use", c.MemoryInUse())
		}
		some(10_000) // allocators settle
		settle()
		before := resident()
		some(10_000)
		settle()
		grown := resident() - before
		t.Logf("10,000 executions: %+d KB resident", grown>>10)
		if grown > 128<<20 { // a tenth of what went through; allocators keep some, and give it back
			t.Errorf("the process grew by %d bytes", grown)
		}
		e.Close()
		taking.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, %d at the start", now, goroutines)
	}
}

func resident() int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return pages * os.Getpagesize()
}

// Run of a program that does next to nothing, its result freed at once: what Gesso adds is the difference to
// BenchmarkExecute of package capi.
func BenchmarkRun(b *testing.B) {
	c := newTestClient(b, plugintest.Newest(b), Options{})
	e := adder(b, c, 0, 4)
	args := []backend.Buffer{upload(b, c, 0, 1, 2, 3, 4)}
	b.ReportAllocs()
	for b.Loop() {
		out, _, err := e.Run(args)
		if err != nil {
			b.Fatal(err)
		}
		out[0].Free()
	}
}

// The same as a chain, results left to the collector, as strict mode does.
func BenchmarkRunChain(b *testing.B) {
	c := newTestClient(b, plugintest.Newest(b), Options{})
	e := adder(b, c, 0, 4)
	v := upload(b, c, 0, 0, 0, 0, 0)
	for b.Loop() {
		v, _ = mustRun(b, e, v)
	}
	if err := v.Wait(); err != nil {
		b.Fatal(err)
	}
}
