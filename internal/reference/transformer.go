package reference

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// Config reads a component's config.json.
func Config(t testing.TB, folder string, config any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err == nil {
		err = json.Unmarshal(b, config)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Bind gives a transformer the weights of the checkpoint (of a variant, or "") in folder, as d, on the CPU backend. All is
// closed when the test ends.
func Bind(t testing.TB, model any, folder, variant string, d tensor.DType, mode engine.Mode) (*engine.Engine, *cpu.Client) {
	t.Helper()
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	eng := engine.New(client, engine.Options{Mode: mode})
	ckpt, err := weights.Open(folder, weights.Options{Variant: variant})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	params := placement.NewResident(eng, ckpt, placement.Options{DType: d})
	t.Cleanup(func() { params.Close() })
	if err := nn.Bind(model, params, "transformer"); err != nil {
		t.Fatal(err)
	}
	return eng, client
}

// Transformer runs a reference case's first call of the transformer: one subtest a mode. Build returns the model, to be
// bound to the checkpoint (of a variant, or "") in folder, and forward its call with the case's tensors. The result must be
// within tol of the stored one, and so must every module's output that the case has stored.
func Transformer(t *testing.T, folder, variant, tensors string, d tensor.DType, tol float64,
	build func() any, forward func(model any, eng *engine.Engine, in map[string]*tensor.Array) engine.Value) {
	t.Helper()
	in := Tensors(t, filepath.Join(tensors, "tensors.safetensors"))
	for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
		t.Run(filepath.Base(tensors)+"/"+mode.String(), func(t *testing.T) {
			model := build()
			eng, _ := Bind(t, model, folder, variant, d, mode)
			var mu sync.Mutex
			seen := map[string]engine.Value{}
			if mode == engine.Strict {
				eng.SetTap(func(name string, v engine.Value) {
					mu.Lock()
					defer mu.Unlock()
					seen[name] = v
				})
			}
			fn := eng.Function("transformer", func([]engine.Value) []engine.Value {
				return []engine.Value{forward(model, eng, in)}
			})
			got, err := fn.Call()[0].Read()
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "transformer.call0.out", got, in["transformer.call0.out"], tol)
			if mode != engine.Strict {
				return
			}
			for name, want := range in {
				name, ok := strings.CutPrefix(name, "trace.")
				if !ok || !strings.HasPrefix(name, "transformer.") {
					continue
				}
				v, ok := seen[name]
				if !ok {
					t.Errorf("no layer reported %s", name)
					continue
				}
				got, err := v.Read()
				if err != nil {
					t.Fatal(err)
				}
				compare(t, name, got, want, tol)
			}
		})
	}
}

func compare(t *testing.T, name string, got, want *tensor.Array, tol float64) {
	t.Helper()
	if want == nil {
		t.Errorf("%s is not in the case", name)
		return
	}
	if !got.Shape.Equal(want.Shape) {
		t.Errorf("%s has shape %v, want %v", name, got.Shape, want.Shape)
		return
	}
	g, w := got.Float64s(), want.Float64s()
	worst := 0.0
	for i := range g {
		if d := math.Abs(g[i] - w[i]); !(d <= worst) {
			worst = d
		}
	}
	if !(worst <= tol) {
		t.Errorf("%s differs by %g, more than %g", name, worst, tol)
	}
}
