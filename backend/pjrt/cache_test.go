package pjrt

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// tiers are programs as the modes make them: of one operation, fused, and with matrix products.
func tiers(t *testing.T) []*graph.Graph {
	t.Helper()
	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{4, 4}})
	must := func(n *graph.Node, err error) *graph.Node {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tanh := must(graph.Make(graph.Tanh, nil, x))
	chain := must(graph.Make(graph.Mul, nil, must(graph.Make(graph.Exp, nil, tanh)), x))
	dot := must(graph.Make(graph.DotGeneral, graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}, chain, x))
	var gs []*graph.Graph
	for name, out := range map[string]*graph.Node{"tanh": tanh, "fused": chain, "block": dot} {
		g, err := graph.New(name, []*graph.Node{x}, []*graph.Node{out})
		if err != nil {
			t.Fatal(err)
		}
		gs = append(gs, g)
	}
	return gs
}

// A second client, as of another process, loads what the first has compiled, and computes the same bits.
func TestCache(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		dir := t.TempDir()
		in := tensor.New(tensor.F32, 4, 4)
		for i := range in.Float32s() {
			in.Float32s()[i] = float32(math.Sin(float64(i)))
		}
		results := func(wantHit bool) (all []string) {
			c := newTestClient(t, path, Options{Cache: diskcache.New(dir, 0)})
			for _, g := range tiers(t) {
				e, err := c.Compile(t.Context(), g, 0)
				if err != nil {
					t.Fatal(err)
				}
				if hit := e.(*Executable).FromDisk(); hit != wantHit {
					t.Errorf("%s: from disk: %v, expected %v", g.Name, hit, wantHit)
				}
				x, err := c.Upload(in, 0)
				if err != nil {
					t.Fatal(err)
				}
				out, _ := mustRun(t, e, x)
				a, err := out.Read()
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, g.Name+string(a.Data))
				if m := e.Memory(); m.Outputs != 64 {
					t.Errorf("%s: memory %+v", g.Name, m)
				}
			}
			return all
		}
		set := func(all []string) map[string]bool {
			m := map[string]bool{}
			for _, s := range all {
				m[s] = true
			}
			return m
		}
		first := set(results(false))
		for _, s := range results(true) {
			if !first[s] {
				t.Error("a loaded program computes something else")
			}
		}
		// Entries that the plugin can't load are compiled again.
		entries, err := filepath.Glob(filepath.Join(dir, "*.program"))
		if err != nil || len(entries) != 3 {
			t.Fatalf("%v, %v", entries, err)
		}
		for _, f := range entries {
			if err := os.WriteFile(f, []byte("no program"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		results(false)
		results(true)
	})
}

// Options, plugin and devices are part of the key.
func TestCacheKeys(t *testing.T) {
	dir := t.TempDir()
	open := func(path string, o Options) *Client {
		o.Cache = diskcache.New(dir, 0)
		return newTestClient(t, path, o)
	}
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		for _, o := range []Options{
			{},
			{Flags: map[string]any{"xla_backend_optimization_level": 1}},
			{Client: map[string]any{"cpu_device_count": int64(2)}},
		} {
			for i, want := range []bool{false, true} {
				c := open(path, o)
				e := adder(t, c, 0, 3)
				if hit := e.(*Executable).FromDisk(); hit != want {
					t.Errorf("%+v, client %d: from disk: %v", o, i, hit)
				}
			}
		}
	})
}

// A program for the second device is not that for the first.
func TestCacheDevices(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		dir := t.TempDir()
		for _, want := range []bool{false, true} {
			c := newTestClient(t, path, Options{Client: map[string]any{"cpu_device_count": int64(2)}, Cache: diskcache.New(dir, 0)})
			for device := range 2 {
				e := adder(t, c, device, 3)
				if hit := e.(*Executable).FromDisk(); hit != want {
					t.Errorf("device %d: from disk: %v, expected %v", device, hit, want)
				}
				y, _ := mustRun(t, e, upload(t, c, device, 1, 2, 3))
				if a, err := y.Read(); err != nil || a.Float32s()[2] != 6 {
					t.Errorf("device %d: %v, %v", device, a, err)
				}
			}
		}
	})
}

// Loading is what the second process does in place of compiling.
func BenchmarkCompile(b *testing.B) { benchmarkCompile(b, nil) }

func BenchmarkLoad(b *testing.B) { benchmarkCompile(b, diskcache.New(b.TempDir(), 0)) }

func benchmarkCompile(b *testing.B, cache *diskcache.Cache) {
	c := newTestClient(b, plugintest.Newest(b), Options{Cache: cache})
	adder(b, c, 0, 1024)
	for b.Loop() {
		adder(b, c, 0, 1024)
	}
}
