package pjrt

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// sum compiles the sum of three values of the type; one run needs the size of one of them for its result.
func sum(t *testing.T, c *Client, typ graph.Type) *Executable {
	t.Helper()
	in := []*graph.Node{graph.NewInput(0, typ), graph.NewInput(1, typ), graph.NewInput(2, typ)}
	y, err := graph.Make(graph.Add, nil, in[0], in[1])
	if err == nil {
		y, err = graph.Make(graph.Add, nil, y, in[2])
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New("transformer", in, []*graph.Node{y})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Compile(t.Context(), g, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e.(*Executable)
}

// What doesn't fit says which program, what it needs, what was free and what would fit. A device of 1,000,000 bytes with
// 600,000 in use is played by a plugin around a real one.
func TestOutOfMemory(t *testing.T) {
	path := plugintest.Wrap(t, plugintest.Newest(t))
	c := newTestClient(t, path, Options{Name: "tpu"})
	for _, test := range []struct {
		n     int // elements of each value
		dtype tensor.DType
		texts []string
		fits  string // what would fit
	}{
		// 3 × 100,000 bytes of arguments and 100,000 of results: with the rest offloaded 400,000 of 1,000,000.
		{25_000, tensor.F32, []string{"it needs 0.1 MB beside 0.3 MB of arguments"}, "; dtype bf16 or offload of the weights that it doesn't use would fit"},
		// Already 16-bit.
		{50_000, tensor.BF16, []string{"it needs 0.1 MB beside 0.3 MB of arguments"}, "; offload of the weights that it doesn't use would fit"},
		// All that is in use is its own, and half of it would do.
		{50_000, tensor.F32, []string{"it needs 0.2 MB beside 0.6 MB of arguments"}, "; dtype bf16 would fit"},
		// Larger than the device whatever is done.
		{1_000_000, tensor.BF16, []string{"it needs 2.0 MB beside 6.0 MB of arguments"}, ""},
	} {
		typ := graph.Type{DType: test.dtype, Shape: tensor.Shape{test.n}}
		e := sum(t, c, typ)
		x, err := c.Upload(tensor.New(typ.DType, typ.Shape...), 0)
		if err != nil {
			t.Fatal(err)
		}
		plugintest.Fail(t, "Execute")
		y, done := mustRun(t, e, x, x, x)
		err = done.Wait()
		plugintest.Fail(t, "")
		var oom *OutOfMemory
		if !errors.As(err, &oom) {
			t.Fatalf("got %v", err)
		}
		if oom.Program != "transformer" || oom.Device != "tpu:0" || oom.Free() != 400_000 {
			t.Errorf("%+v", oom)
		}
		for _, text := range append(test.texts, "tpu:0: run transformer: out of memory: ", "0.4 MB of 1.0 MB are free", "attempting to allocate 512.00K") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%d %s: %q doesn't say %q", test.n, test.dtype, err, text)
			}
		}
		if _, after, _ := strings.Cut(err.Error(), "are free"); !strings.HasPrefix(after, test.fits+": ") {
			t.Errorf("%d %s: %q, expected %q to be said to fit", test.n, test.dtype, err, test.fits)
		}
		if _, rerr := y.Read(); rerr != err {
			t.Errorf("Read says %v", rerr)
		}
		if serr := c.Sync(0); serr != err {
			t.Errorf("Sync says %v", serr)
		}
		// The device lives on.
		y, _ = mustRun(t, e, x, x, x)
		if _, err := y.Read(); err != nil {
			t.Error(err)
		}
	}
}

func TestOutOfMemoryElsewhere(t *testing.T) {
	path := plugintest.Wrap(t, plugintest.Newest(t))
	c := newTestClient(t, path, Options{Name: "tpu"})
	plugintest.Fail(t, "Upload")
	_, err := c.Upload(tensor.New(tensor.F32, 1000, 1000), 0)
	var oom *OutOfMemory
	if !errors.As(err, &oom) || oom.Need != 4_000_000 || !strings.Contains(err.Error(), "it needs 4.0 MB, and 0.4 MB of 1.0 MB are free") {
		t.Errorf("upload: %v", err)
	}
	plugintest.Fail(t, "Compile")
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{3}})
	y, err := graph.Make(graph.Exp, nil, x)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New("vae.decode", []*graph.Node{x}, []*graph.Node{y})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile(t.Context(), g, 0); !errors.As(err, &oom) || !strings.HasPrefix(err.Error(), "tpu:0: compile vae.decode: out of memory") {
		t.Errorf("compile: %v", err)
	}
}

// XLA's own allocator fails here: the result is larger than the address space.
func TestOutOfMemoryForReal(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newTestClient(t, path, Options{Name: "xla-cpu"})
		x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{1}})
		y, err := graph.Make(graph.BroadcastInDim, graph.BroadcastInDimAttr{Shape: tensor.Shape{1 << 46}, Axes: []int{0}}, x)
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.New("huge", []*graph.Node{x}, []*graph.Node{y})
		if err != nil {
			t.Fatal(err)
		}
		e, err := c.Compile(t.Context(), g, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		out, done := mustRun(t, e, upload(t, c, 0, 1))
		err = done.Wait()
		out.Free()
		var oom *OutOfMemory
		if !errors.As(err, &oom) || oom.Program != "huge" || oom.Need != 1<<48 {
			t.Fatalf("got %v", err)
		}
		if runtime.GOOS == "linux" && (oom.Free() <= 0 || !strings.Contains(err.Error(), "are free: ")) {
			t.Errorf("%v; %d bytes are free", err, oom.Free())
		}
		if serr := c.Sync(0); serr != err {
			t.Errorf("Sync says %v", serr)
		}
		z, _ := mustRun(t, adder(t, c, 0, 3), upload(t, c, 0, 1, 2, 3))
		if a, err := z.Read(); err != nil || a.Float32s()[2] != 6 {
			t.Errorf("afterwards: %v, %v", a, err)
		}
	})
}
