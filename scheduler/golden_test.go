package scheduler

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

// goldens is schedulers.json: what was asked of Diffusers; the answers are in schedulers.safetensors.
type goldens struct {
	Tables []struct {
		Name, Class  string
		Config       json.RawMessage
		SetTimesteps goldenCall `json:"set_timesteps"`
	}
	Linear struct {
		A, B, C       float64
		GeneratorSeed uint64 `json:"generator_seed"`
		Runs          []struct {
			Tag    string
			N      int
			Class  string
			Config json.RawMessage
			Error  string
		}
	}
	arrays map[string]*tensor.Array
}

type goldenCall struct {
	Steps     int `json:"num_inference_steps"`
	Sigmas    []float64
	Timesteps []float64
	Mu        *float64
}

// notYet are the classes that goldens exist for and Gesso has no scheduler for. A class leaves the list when its
// scheduler comes: a test fails if it is in both places.
var notYet = []string{
	"FlowMatchHeunDiscreteScheduler", "UniPCMultistepScheduler", "DPMSolverMultistepScheduler",
	"DPMSolverSinglestepScheduler", "DEISMultistepScheduler", "SASolverScheduler", "FlowMatchLCMScheduler",
}

// overGoldens runs fn over the goldens in testdata and, where it exists, in the shared folder.
func overGoldens(t *testing.T, fn func(t *testing.T, g goldens)) {
	read := func(t *testing.T, dir string) goldens {
		b, err := os.ReadFile(filepath.Join(dir, "schedulers.json"))
		if err != nil {
			t.Fatal(err)
		}
		var g goldens
		if err := json.Unmarshal(b, &g); err != nil {
			t.Fatal(err)
		}
		g.arrays = reference.Tensors(t, filepath.Join(dir, "schedulers.safetensors"))
		return g
	}
	t.Run("testdata", func(t *testing.T) { fn(t, read(t, "testdata")) })
	t.Run("shared", func(t *testing.T) { fn(t, read(t, shareddata.Dir(t, "golden", "components"))) })
}

// same fails unless every bit agrees.
func same(t *testing.T, name string, got []float32, want *tensor.Array) {
	t.Helper()
	if want == nil {
		t.Fatalf("%s: no golden", name)
	}
	w := want.Float32s()
	if len(got) != len(w) {
		t.Fatalf("%s: %d values, want %d", name, len(got), len(w))
	}
	for i := range w {
		if math.Float32bits(got[i]) != math.Float32bits(w[i]) {
			t.Fatalf("%s[%d] = %v, want %v", name, i, got[i], w[i])
		}
	}
}

func TestTablesAreDiffusers(t *testing.T) {
	overGoldens(t, func(t *testing.T, g goldens) {
		if len(g.Tables) < 90 {
			t.Fatalf("only %d tables", len(g.Tables))
		}
		for _, table := range g.Tables {
			t.Run(table.Name, func(t *testing.T) {
				if slices.Contains(notYet, table.Class) {
					t.Skipf("%s is not implemented yet", table.Class)
				}
				s, err := New(table.Class, table.Config)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.SetTimesteps(Schedule(table.SetTimesteps)); err != nil {
					t.Fatal(err)
				}
				same(t, "sigmas", s.Sigmas(), g.arrays[table.Name+".sigmas"])
				same(t, "timesteps", s.Timesteps(), g.arrays[table.Name+".timesteps"])
			})
		}
	})
}

func TestMuIsDiffusers(t *testing.T) {
	overGoldens(t, func(t *testing.T, g goldens) {
		mu := g.arrays["mu"] // rows of image tokens, steps, calculate_shift, compute_empirical_mu
		v := mu.Float64s()
		flux := Shifting{BaseImageSeqLen: 256, MaxImageSeqLen: 4096, BaseShift: 0.5, MaxShift: 1.15}
		for ; len(v) > 0; v = v[4:] {
			tokens, steps := int(v[0]), int(v[1])
			if got := flux.Mu(tokens); got != v[2] {
				t.Errorf("Mu(%d) = %v, want %v", tokens, got, v[2])
			}
			if got := EmpiricalMu(tokens, steps); got != v[3] {
				t.Errorf("EmpiricalMu(%d, %d) = %v, want %v", tokens, steps, got, v[3])
			}
		}
	})
}

// TestStepsAreDiffusers runs the schedulers on the model v = a*x + b*t/1000 + c.
func TestStepsAreDiffusers(t *testing.T) {
	overGoldens(t, func(t *testing.T, g goldens) {
		if len(g.Linear.Runs) < 30 {
			t.Fatalf("only %d runs", len(g.Linear.Runs))
		}
		x0 := g.arrays["linear.x0"]
		for _, run := range g.Linear.Runs {
			name := fmt.Sprintf("linear.%s.N%d", run.Tag, run.N)
			t.Run(name, func(t *testing.T) {
				if slices.Contains(notYet, run.Class) {
					t.Skipf("%s is not implemented yet", run.Class)
				}
				s, err := New(run.Class, run.Config)
				if err == nil {
					err = s.SetTimesteps(Schedule{Steps: run.N})
				}
				if run.Error != "" {
					if err == nil {
						t.Fatalf("accepted, Diffusers says %s", run.Error)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				same(t, "sigmas", s.Sigmas(), g.arrays[name+".sigmas"])
				same(t, "timesteps", s.Timesteps(), g.arrays[name+".timesteps"])

				generator := rng.New(g.Linear.GeneratorSeed)
				x, out := x0, []float32{}
				for _, timestep := range s.Timesteps() {
					v := make([]float32, x.Shape.Size())
					a, bt, c := float32(g.Linear.A), float32(g.Linear.B*(float64(timestep)/1000)), float32(g.Linear.C)
					for i, xi := range x.Float32s() {
						v[i] = float32(a*xi) + bt + c
					}
					x, err = s.Step(tensor.FromFloat32(v, x.Shape...), timestep, x, generator.Randn)
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, x.Float32s()...)
				}
				same(t, "samples", out, g.arrays[name+".samples"])
			})
		}
	})
}

func TestScaleNoiseIsDiffusers(t *testing.T) {
	overGoldens(t, func(t *testing.T, g goldens) {
		s := static3(t)
		if err := s.SetTimesteps(Schedule{Steps: 4}); err != nil {
			t.Fatal(err)
		}
		for i, timestep := range s.Timesteps() {
			got, err := s.ScaleNoise(g.arrays["linear.x0"], timestep, g.arrays["scale_noise.noise"])
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("scale_noise.t%d", i)
			same(t, name, got.Float32s(), g.arrays[name])
		}
	})
}

// TestHalfStepsArePipelines replays the steps of whole Diffusers pipelines, whose latents are in the models' type.
func TestHalfStepsArePipelines(t *testing.T) {
	all := reference.Tensors(t, "testdata/steps.safetensors")
	for name, config := range map[string]FlowMatchEulerConfig{
		"flux_dev_base": {Shift: 3, UseDynamicShifting: true},
		"flux_dev_bf16": {Shift: 3, UseDynamicShifting: true},
		"sd35_fp16":     {Shift: 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := DefaultFlowMatchEulerConfig()
			c.Shift, c.UseDynamicShifting = config.Shift, config.UseDynamicShifting
			s, err := NewFlowMatchEuler(c)
			if err != nil {
				t.Fatal(err)
			}
			p := Schedule{Steps: 5}
			if c.UseDynamicShifting {
				mu := s.Shifting().Mu(16)
				p = Schedule{Sigmas: LinearSigmas(5), Mu: &mu}
			}
			if err := s.SetTimesteps(p); err != nil {
				t.Fatal(err)
			}
			same(t, "sigmas", s.Sigmas(), all[name+".sigmas"])
			x := all[name+".initial"]
			for i, timestep := range s.Timesteps() {
				output, want := all[fmt.Sprintf("%s.output_%d", name, i)], all[fmt.Sprintf("%s.after_%d", name, i)]
				x, err = s.Step(output, timestep, x, nil)
				if err != nil {
					t.Fatal(err)
				}
				if x.DType != want.DType {
					t.Fatalf("step %d gives %s, want %s", i, x, want)
				}
				same(t, fmt.Sprintf("step %d", i), x.Float32s(), want)
			}
		})
	}
}
