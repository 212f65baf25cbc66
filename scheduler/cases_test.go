package scheduler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

// pipelineCase is a run of a Diffusers pipeline.
type pipelineCase struct {
	Checkpoint, Pipeline, DType string
	ExpectError                 json.RawMessage `json:"expect_error"`
	Scheduler                   [2]json.RawMessage
	Call                        struct {
		Steps  int `json:"num_inference_steps"`
		Sigmas []float64
	}
	Recorded struct {
		Mu         *float64
		Duplicates map[string]string `json:"duplicates_not_stored"`
	}
}

func (c pipelineCase) scheduler(checkpoints string) (Scheduler, error) {
	if c.Scheduler[0] == nil {
		return Load(filepath.Join(checkpoints, c.Checkpoint, "scheduler"))
	}
	return New(c.class(), c.Scheduler[1])
}

func (c pipelineCase) class() string { return strings.Trim(string(c.Scheduler[0]), `"`) }

// TestPipelineCases replays schedule and steps of all reference pipelines.
func TestPipelineCases(t *testing.T) {
	dir := shareddata.Dir(t, "golden")
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*", "case.json"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c pipelineCase
			if err := json.Unmarshal(b, &c); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(notYet, c.class()) {
				t.Skipf("%s is not implemented yet", c.class())
			}
			if c.ExpectError != nil {
				t.Skip("the pipeline fails")
			}
			s, err := c.scheduler(filepath.Join(dir, "checkpoints"))
			if err != nil {
				t.Fatal(err)
			}
			p := Schedule{Steps: c.Call.Steps, Mu: c.Recorded.Mu}
			if !strings.HasPrefix(c.Pipeline, "StableDiffusion3") {
				p.Steps, p.Sigmas = 0, LinearSigmas(c.Call.Steps)
				if c.Call.Sigmas != nil {
					p.Sigmas = c.Call.Sigmas
				}
			}
			if err := s.SetTimesteps(p); err != nil {
				t.Fatal(err)
			}
			all := reference.Tensors(t, filepath.Join(filepath.Dir(file), "tensors.safetensors"))
			same(t, "sigmas", s.Sigmas(), all["sigmas"])
			same(t, "timesteps", s.Timesteps(), all["timesteps"])
			if !strings.Contains(c.Pipeline, "Inpaint") { // which changes the latents between steps
				c.replay(t, s, p, all)
			}
		})
	}
}

// replay takes every step whose three arrays are recorded.
func (c pipelineCase) replay(t *testing.T, s Scheduler, p Schedule, all map[string]*tensor.Array) {
	find := func(name string, i int) *tensor.Array {
		name = fmt.Sprintf("%s.step_%d", name, i)
		if strings.HasPrefix(name, "latents") {
			name = fmt.Sprintf("latents.after_step_%d", i)
		}
		if d, ok := c.Recorded.Duplicates[name]; ok {
			name = d
		}
		a := all[name]
		if a == nil {
			return nil
		}
		d, err := tensor.ParseDType(c.DType) // halves are stored as float32
		if err != nil {
			t.Fatal(err)
		}
		a, err = a.Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	taken := 0
	for find("latents", taken) != nil {
		taken++
	}
	begin := len(s.Timesteps()) - taken // image-to-image starts late
	replayed := 0
	for i := 1; i < taken; i++ {
		x, v, want := find("latents", i-1), find("noise_pred", i), find("latents", i)
		if v == nil {
			continue
		}
		if err := s.SetTimesteps(p); err != nil {
			t.Fatal(err)
		}
		if err := s.SetBeginIndex(begin + i); err != nil {
			t.Fatal(err)
		}
		got, err := s.Step(v, s.Timesteps()[begin+i], x, nil)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("step %d", i), got.Float32s(), want)
		replayed++
	}
	if taken > 1 && replayed == 0 {
		t.Error("no step was replayed")
	}
}
