package capi_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// resident returns the process's resident bytes, or 0 where they can't be known.
func resident() int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return pages * os.Getpagesize()
}

// 10,000 times an upload, an execution, one that takes over its result, a download, a callback and an event leave nothing behind.
func TestLeak(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		goroutines := runtime.NumGoroutine()
		c, err := loadPlugin(t, path).NewClient(capi.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		const n = 4096 // 16 KB a value
		text := strings.ReplaceAll(double4, "4xf32", "4096xf32")
		e, err := c.Compile([]byte(text), capi.FormatMLIR, capi.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, "%a: tensor<4096xf32>", "%a: tensor<4096xf32> {tf.aliasing_output = 0 : i32}", 1)
		taking, err := c.Compile([]byte(text), capi.FormatMLIR, capi.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		host, back := make([]float32, n), make([]float32, n)
		once := func() {
			x, sent, err := c.BufferFromHost(capi.HostBuffer{Data: bytesOf(host), Type: capi.F32, Dims: []int64{n}, Semantics: capi.ZeroCopy, Device: c.AddressableDevices()[0]})
			if err != nil {
				t.Fatal(err)
			}
			out, done, err := e.Execute([][]*capi.Buffer{{x}}, capi.ExecuteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			taken, last, err := taking.Execute(out, capi.ExecuteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			heard := make(chan error, 1)
			if err := last[0].OnReady(func(err error) { heard <- err }); err != nil {
				t.Fatal(err)
			}
			read, err := taken[0][0].ToHost(bytesOf(back))
			if err != nil {
				t.Fatal(err)
			}
			if err := read.Await(); err != nil {
				t.Fatal(err)
			}
			if err := <-heard; err != nil {
				t.Fatal(err)
			}
			for _, c := range []interface{ Close() error }{x, sent, out[0][0], done[0], taken[0][0], last[0], read} {
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 1000 { // allocators settle
			once()
		}
		before := resident()
		for range 10_000 {
			once()
		}
		grown := resident() - before
		t.Logf("10,000 executions: %+d KB resident", grown>>10)
		if grown > 10_000*n*4/20 {
			t.Errorf("%d executions left %d bytes behind", 10_000, grown)
		}
		for _, e := range []*capi.LoadedExecutable{e, taking} {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		deadline := time.Now().Add(5 * time.Second)
		for (runtime.NumGoroutine() > goroutines || capi.Outstanding() > 0) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if now := runtime.NumGoroutine(); now > goroutines || capi.Outstanding() > 0 {
			t.Errorf("%d goroutines, %d at the start; %d functions wait for events", now, goroutines, capi.Outstanding())
		}
	})
}

// Dispatch, one execution at a time, of a program that does next to nothing.
func BenchmarkExecute(b *testing.B) {
	c := newClient(b, plugintest.Newest(b), capi.ClientOptions{})
	e := compile(b, c, double4, capi.CompileOptions{})
	x := put(b, c, 0, []float32{1, 2, 3, 4}, 4)
	args := [][]*capi.Buffer{{x}}
	b.ReportAllocs()
	for b.Loop() {
		out, done, err := e.Execute(args, capi.ExecuteOptions{})
		if err != nil {
			b.Fatal(err)
		}
		done[0].Close()
		out[0][0].Close()
	}
}
