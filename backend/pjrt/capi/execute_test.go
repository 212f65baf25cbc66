package capi_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

const double4 = `module @double {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}`

func compile(t testing.TB, c *capi.Client, text string, o capi.CompileOptions) *capi.LoadedExecutable {
	t.Helper()
	e, err := c.Compile([]byte(text), capi.FormatMLIR, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// put uploads f32 values to device d.
func put(t testing.TB, c *capi.Client, d int, v []float32, dims ...int64) *capi.Buffer {
	t.Helper()
	b, done, err := c.BufferFromHost(capi.HostBuffer{
		Data: bytesOf(v), Type: capi.F32, Dims: dims, Semantics: capi.UntilTransferred, Device: c.AddressableDevices()[d],
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := done.Await(); err != nil {
		t.Fatal(err)
	}
	done.Close()
	t.Cleanup(func() { b.Close() })
	return b
}

// get reads n f32 values.
func get(t testing.TB, b *capi.Buffer, n int) []float32 {
	t.Helper()
	v := make([]float32, n)
	done, err := b.ToHost(bytesOf(v))
	if err != nil {
		t.Fatal(err)
	}
	defer done.Close()
	if err := done.Await(); err != nil {
		t.Fatal(err)
	}
	return v
}

// run executes on one device and waits.
func run(t testing.TB, e *capi.LoadedExecutable, args ...*capi.Buffer) []*capi.Buffer {
	t.Helper()
	out, done, err := e.Execute([][]*capi.Buffer{args}, capi.ExecuteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer done[0].Close()
	if err := done[0].Await(); err != nil {
		t.Fatal(err)
	}
	if ready, err := done[0].Ready(); !ready || err != nil {
		t.Errorf("after Await the event says %v, %v", ready, err)
	}
	for _, b := range out[0] {
		t.Cleanup(func() { b.Close() })
	}
	return out[0]
}

func TestExecute(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		e := compile(t, c, double4, capi.CompileOptions{})
		x := put(t, c, 0, []float32{1, 2, 3, -4}, 4)
		y := run(t, e, x)[0]
		if got := get(t, y, 4); !slices.Equal(got, []float32{2, 4, 6, -8}) {
			t.Errorf("got %v", got)
		}
		if ty, err := y.ElementType(); err != nil || ty != capi.F32 {
			t.Errorf("element type %d, %v", ty, err)
		}
		if dims, err := y.Dims(); err != nil || !slices.Equal(dims, []int64{4}) {
			t.Errorf("dims %v, %v", dims, err)
		}
		if n, err := y.OnDeviceSize(); err != nil || n < 16 {
			t.Errorf("%d bytes, %v", n, err)
		}
		if cpu, err := y.IsOnCPU(); err != nil || !cpu {
			t.Errorf("on cpu: %v, %v", cpu, err)
		}
		ready, err := y.ReadyEvent()
		if err != nil {
			t.Fatal(err)
		}
		heard := make(chan error, 1)
		if err := ready.OnReady(func(err error) { heard <- err }); err != nil {
			t.Fatal(err)
		}
		ready.Close()
		if err := <-heard; err != nil {
			t.Error(err)
		}
		if _, _, err := e.Execute([][]*capi.Buffer{{}}, capi.ExecuteOptions{}); err == nil {
			t.Error("too few arguments were accepted")
		}
		x.Close()
		if _, _, err := e.Execute([][]*capi.Buffer{{x}}, capi.ExecuteOptions{}); capi.CodeOf(err) != capi.FailedPrecondition {
			t.Errorf("a closed argument: %v", err)
		}
	})
}

// Values of every rank and of no elements arrive row-major, in either direction, under every semantics.
func TestTransfers(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		for _, dims := range [][]int64{{}, {0}, {5}, {2, 3}, {3, 0, 2}, {2, 3, 4}, {1, 2, 3, 4, 5}} {
			n := 1
			for _, d := range dims {
				n *= int(d)
			}
			v := make([]int32, n)
			for i := range v {
				v[i] = int32(i * i)
			}
			for _, s := range []capi.Semantics{capi.CopyDuringCall, capi.UntilTransferred, capi.ZeroCopy} {
				b, done, err := c.BufferFromHost(capi.HostBuffer{Data: bytesOf(v), Type: capi.S32, Dims: dims, Semantics: s, Device: c.AddressableDevices()[0]})
				if err != nil {
					t.Fatalf("%v: %v", dims, err)
				}
				got := make([]int32, n)
				read, err := b.ToHost(bytesOf(got))
				if err != nil {
					t.Fatalf("%v: %v", dims, err)
				}
				if err := read.Await(); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, v) {
					t.Errorf("%v: %v, expected %v", dims, got, v)
				}
				for _, c := range []interface{ Close() error }{read, done, b} {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
		// The memory is given back when the plugin has let go of the buffers, perhaps on another thread.
		deadline := time.Now().Add(5 * time.Second)
		for capi.Outstanding() > 0 && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if n := capi.Outstanding(); n != 0 {
			t.Errorf("%d blocks of host memory are still held", n)
		}
	})
}

func TestCopyBetweenDevices(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(2)}})
		x := put(t, c, 0, []float32{1, 2, 3}, 3)
		y, err := x.CopyToDevice(c.AddressableDevices()[1])
		if err != nil {
			t.Fatal(err)
		}
		defer y.Close()
		if got := get(t, y, 3); !slices.Equal(got, []float32{1, 2, 3}) {
			t.Errorf("got %v", got)
		}
		id := func(b *capi.Buffer) int {
			d, err := b.Device()
			if err != nil {
				t.Fatal(err)
			}
			desc, err := d.Description()
			if err != nil {
				t.Fatal(err)
			}
			n, err := desc.ID()
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if id(x) != 0 || id(y) != 1 {
			t.Errorf("the copy went from device %d to %d", id(x), id(y))
		}
		m, err := x.Memory()
		if err != nil {
			t.Fatal(err)
		}
		if z, err := y.CopyToMemory(m); err != nil {
			t.Error(err)
		} else {
			if got := get(t, z, 3); !slices.Equal(got, []float32{1, 2, 3}) {
				t.Errorf("got %v", got)
			}
			z.Close()
		}
	})
}

// A donated argument's memory becomes the result.
func TestDonation(t *testing.T) {
	text := `module @donate {
  func.func public @main(%a: tensor<1024xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<1024xf32>) -> tensor<1024xf32> {
    %0 = stablehlo.add %a, %b : tensor<1024xf32>
    return %0 : tensor<1024xf32>
  }
}`
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		e := compile(t, c, text, capi.CompileOptions{})
		v := make([]float32, 1024)
		for i := range v {
			v[i] = float32(i)
		}
		x, y := put(t, c, 0, v, 1024), put(t, c, 0, v, 1024)
		out, done, err := e.Execute([][]*capi.Buffer{{x, y}}, capi.ExecuteOptions{NonDonatable: []int64{0}})
		if err != nil {
			t.Fatal(err)
		}
		if err := done[0].Await(); err != nil {
			t.Fatal(err)
		}
		done[0].Close()
		out[0][0].Close()
		if gone, err := x.IsDeleted(); err != nil || gone {
			t.Errorf("an argument that may not be donated was: %v, %v", gone, err)
		}
		z := run(t, e, x, y)[0]
		if got := get(t, z, 1024); got[1023] != 2046 {
			t.Errorf("got %v", got[1023])
		}
		if gone, err := x.IsDeleted(); err != nil || !gone {
			t.Errorf("the donated argument is still there: %v, %v", gone, err)
		}
		if gone, err := y.IsDeleted(); err != nil || gone {
			t.Errorf("the other argument is gone: %v, %v", gone, err)
		}
		if _, _, err := e.Execute([][]*capi.Buffer{{x, y}}, capi.ExecuteOptions{}); capi.CodeOf(err) != capi.InvalidArgument {
			t.Errorf("a donated argument was taken again: %v", err)
		}
		if s, err := e.Executable().MemoryStats(); err != nil || s.Alias != 4096 {
			t.Errorf("alias %d bytes, %v, expected 4096", s.Alias, err)
		}
	})
}

func TestErrors(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		for name, text := range map[string]string{
			"syntax":  "module { func.func @main( }",
			"unknown": strings.Replace(double4, "stablehlo.add", "stablehlo.nope", 1),
			"empty":   "",
		} {
			_, err := c.Compile([]byte(text), capi.FormatMLIR, capi.CompileOptions{})
			if err == nil || !strings.HasPrefix(err.Error(), "PJRT_Client_Compile: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := c.Compile([]byte(double4), "no such format", capi.CompileOptions{}); err == nil {
			t.Error("an unknown format was accepted")
		}
		_, err := c.Compile([]byte(double4), capi.FormatMLIR, capi.CompileOptions{Flags: map[string]any{"xla_no_such_option": "1"}})
		if err == nil || !strings.Contains(err.Error(), "xla_no_such_option") {
			t.Errorf("an unknown flag: %v", err)
		}
		if _, err := c.Load([]byte("not an executable"), nil); err == nil {
			t.Error("garbage was loaded")
		}
		e := compile(t, c, double4, capi.CompileOptions{})
		x := put(t, c, 0, []float32{1, 2}, 2)
		if _, _, err := e.Execute([][]*capi.Buffer{{x}}, capi.ExecuteOptions{}); capi.CodeOf(err) != capi.InvalidArgument {
			t.Errorf("another shape: %v", err)
		}
	})
}

func TestSerialize(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{})
		e := compile(t, c, double4, capi.CompileOptions{})
		exe := e.Executable()
		data, err := exe.Serialize()
		if err != nil {
			t.Fatal(err)
		}
		other := newClient(t, path, capi.ClientOptions{})
		e2, err := other.Load(data, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e2.Close()
		if got := get(t, run(t, e2, put(t, other, 0, []float32{1, 2, 3, 4}, 4))[0], 4); !slices.Equal(got, []float32{2, 4, 6, 8}) {
			t.Errorf("the loaded program gives %v", got)
		}
		if name, err := exe.Name(); err != nil || !strings.Contains(name, "double") {
			t.Errorf("name %q, %v", name, err)
		}
		if n, err := exe.NumReplicas(); err != nil || n != 1 {
			t.Errorf("%d replicas, %v", n, err)
		}
		if n, err := exe.NumPartitions(); err != nil || n != 1 {
			t.Errorf("%d partitions, %v", n, err)
		}
		if ts, err := exe.OutputTypes(); err != nil || !slices.Equal(ts, []capi.ElementType{capi.F32}) {
			t.Errorf("output types %v, %v", ts, err)
		}
		if dims, err := exe.OutputDims(); err != nil || fmt.Sprint(dims) != "[[4]]" {
			t.Errorf("output dims %v, %v", dims, err)
		}
		a, err := exe.Fingerprint()
		if b, berr := compile(t, c, double4, capi.CompileOptions{}).Executable().Fingerprint(); err != nil || berr != nil || a != b || a == "" {
			t.Errorf("fingerprints of one program are %q and %q, %v, %v", a, b, err, berr)
		}
		if s, err := exe.MemoryStats(); err != nil || s.Arguments != 16 || s.Outputs != 16 {
			t.Errorf("%+v, %v, expected 16 bytes in and out", s, err)
		}
		if cost, err := exe.CostAnalysis(); capi.CodeOf(err) != capi.Unimplemented && (err != nil || cost["flops"] != float32(4)) {
			t.Errorf("cost %v, %v", cost, err)
		}
		if code, format, err := exe.OptimizedProgram(); err != nil || len(code) == 0 || !strings.HasPrefix(format, "hlo") {
			t.Errorf("optimised program: %d bytes as %q, %v", len(code), format, err)
		} else if !bytes.Contains(code, []byte("double")) {
			t.Error("the optimised program doesn't have the module's name")
		}
	})
}
