package cpu_test

import (
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/model/sd3"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// network is a transformer that denoises in a loop.
type network struct {
	model   any
	latents tensor.Shape
	inputs  func(eng *engine.Engine) []engine.Value // the same in all steps
	step    func(latents engine.Value, in []engine.Value) engine.Value
}

// fluxNetwork is for a picture of h×w patches, in bf16.
func fluxNetwork(t *testing.T, folder string, h, w int) network {
	c := flux.Defaults()
	reference.Config(t, folder, &c)
	m := flux.New(c)
	const text = 16
	up := func(eng *engine.Engine, shape ...int) engine.Value { return eng.Upload(wave(t, tensor.BF16, shape...)) }
	return network{m, tensor.Shape{1, h * w, c.InChannels},
		func(eng *engine.Engine) []engine.Value {
			ids := make([][]float64, text+h*w)
			for i := range ids {
				ids[i] = []float64{0, float64(i / w), float64(i % w)}
			}
			cos, sin := c.Rope(ids)
			in := []engine.Value{up(eng, 1, text, c.JointDim), eng.Upload(cos), eng.Upload(sin), eng.Upload(tensor.FromInt32([]int32{0}, 1))}
			return append(in, m.Modulation(flux.Conditions{Pooled: up(eng, 1, c.PooledDim), Timestep: up(eng, 1)})...)
		},
		func(latents engine.Value, in []engine.Value) engine.Value {
			return m.Forward(flux.Inputs{Hidden: latents, Text: in[0], Rope: nn.Rope{Cos: in[1], Sin: in[2]}, Rows: in[3], Modulation: in[4:]})
		}}
}

// sd3Network is for two pictures of h×w patches, in bf16.
func sd3Network(t *testing.T, folder string, h, w int) network {
	c := sd3.Defaults()
	reference.Config(t, folder, &c)
	m := sd3.New(c)
	up := func(eng *engine.Engine, shape ...int) engine.Value { return eng.Upload(wave(t, tensor.BF16, shape...)) }
	return network{m, tensor.Shape{2, c.InChannels, 2 * h, 2 * w},
		func(eng *engine.Engine) []engine.Value {
			in := []engine.Value{up(eng, 2, 20, c.JointDim), eng.Upload(tensor.FromInt32([]int32{0, 1}, 2))}
			return append(in, m.Modulation(sd3.Conditions{Pooled: up(eng, 2, c.PooledDim), Timestep: eng.Upload(wave(t, tensor.F32, 2))})...)
		},
		func(latents engine.Value, in []engine.Value) engine.Value {
			return m.Forward(sd3.Inputs{Hidden: latents, Text: in[0], Rows: in[1], Modulation: in[2:]})
		}}
}

// TestStepsTakeNoMemory: after its first step a loop whose idle memory is below the pool's limit takes no more from the
// system, whatever the mode, and each step gives back all that it used. What a step takes from Go's heap is handles, and the
// result that it reads: no more for a picture five times as large.
func TestStepsTakeNoMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only the test collects: else what a step uses depends on when
	for _, c := range []struct {
		name, variant string
		shared        bool
		build         func(t *testing.T, folder string, h, w int) network
	}{
		{"flux_schnell", "", false, fluxNetwork}, {"sd3", "fp16", true, sd3Network}, {"sd35", "", true, sd3Network},
	} {
		for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
			t.Run(c.name+"/"+mode.String(), func(t *testing.T) {
				golden := filepath.Join("..", "..", "testdata", "golden")
				if c.shared {
					golden = shareddata.Dir(t, "golden")
				}
				folder := filepath.Join(golden, "checkpoints", c.name, "transformer")
				var heap, result [2]int
				for i, h := range []int{4, 10} {
					heap[i], result[i] = denoise(t, folder, c.variant, mode, c.build(t, folder, h, h))
				}
				t.Logf("a step takes %d and %d bytes of Go's heap", heap[0], heap[1])
				if more, want := heap[1]-heap[0], result[1]-result[0]+32<<10; more > want {
					t.Errorf("a step of a large picture takes %d bytes more of Go's heap, expected at most %d", more, want)
				}
			})
		}
	}
}

// denoise runs a loop, and returns how many bytes a step allocates in Go's heap and how many of these are the result.
func denoise(t *testing.T, folder, variant string, mode engine.Mode, n network) (heap, result int) {
	eng, client := reference.Bind(t, n.model, folder, variant, tensor.BF16, mode)
	in := n.inputs(eng)
	fn := eng.Function("transformer", func(in []engine.Value) []engine.Value {
		return []engine.Value{n.step(in[0], in[1:])}
	})
	latents := wave(t, tensor.BF16, n.latents...)
	var live int64
	var mapped int
	heap = math.MaxInt
	for step := range 6 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		latents, err = fn.Call(append([]engine.Value{eng.Upload(latents)}, in...)...)[0].Read()
		if err != nil {
			t.Fatal(err)
		}
		if latents.FirstNonFinite() >= 0 {
			t.Fatalf("step %d is not finite", step)
		}
		runtime.ReadMemStats(&after)
		if step == 0 {
			live = settled(client)
			mapped = client.Mapped()
			continue
		}
		heap = min(heap, int(after.TotalAlloc-before.TotalAlloc))
		if l := settled(client); l != live {
			t.Errorf("after step %d %d bytes are in use, after the first %d", step, l, live)
		}
		if m := client.Mapped(); m != mapped {
			t.Errorf("step %d took %d bytes from the system, the first %d", step, m-mapped, mapped)
		}
	}
	return heap, len(latents.Data)
}

// settled returns the memory in use when nothing more is given back: cleanups run some time after a collection.
func settled(c *cpu.Client) int64 {
	live, same := c.MemoryInUse(), 0
	for same < 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
		if now := c.MemoryInUse(); now != live {
			live, same = now, 0
		} else {
			same++
		}
	}
	return live
}

// wave returns numbers between -1 and 1.
func wave(t *testing.T, d tensor.DType, shape ...int) *tensor.Array {
	t.Helper()
	v := make([]float32, tensor.Shape(shape).Size())
	for i := range v {
		v[i] = float32(math.Sin(float64(i)))
	}
	a, err := tensor.FromFloat32(v, shape...).Convert(d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
