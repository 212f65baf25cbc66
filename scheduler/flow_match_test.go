package scheduler

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

// static3 returns the scheduler of Stable Diffusion 3.
func static3(t *testing.T) *FlowMatchEuler {
	t.Helper()
	c := DefaultFlowMatchEulerConfig()
	c.Shift = 3
	s, err := NewFlowMatchEuler(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scheduled returns static3 with n steps.
func scheduled(t *testing.T, n int) *FlowMatchEuler {
	t.Helper()
	s := static3(t)
	if err := s.SetTimesteps(Schedule{Steps: n}); err != nil {
		t.Fatal(err)
	}
	return s
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("error is %v, want one with %q", err, p)
		}
	}
}

func TestScheduleErrors(t *testing.T) {
	mu, big, inf := 0.8, 1e4, math.Inf(1)
	for _, c := range []struct {
		name    string
		dynamic bool
		p       Schedule
		want    string
	}{
		{"nothing", false, Schedule{}, "no number of steps"},
		{"no sigmas", false, Schedule{Sigmas: []float64{}}, "no number of steps"},
		{"negative", false, Schedule{Steps: -1}, "-1 steps"},
		{"absurd", false, Schedule{Steps: 1 << 40}, "steps, expected"},
		{"sigmas for other steps", false, Schedule{Steps: 3, Sigmas: []float64{1, .5}}, "2 sigmas or timesteps for 3 steps"},
		{"timesteps for other steps", false, Schedule{Steps: 3, Timesteps: []float64{1000}}, "for 3 steps"},
		{"sigmas for other timesteps", false, Schedule{Sigmas: []float64{1, .5}, Timesteps: []float64{1000}}, "2 sigmas and 1 timesteps"},
		{"infinite sigma", false, Schedule{Sigmas: []float64{1, inf}}, "sigma 1 is +Inf"},
		{"no timestep", false, Schedule{Timesteps: []float64{math.NaN()}}, "timestep 0 is NaN"},
		{"no mu", true, Schedule{Steps: 4}, "mu is missing"},
		{"absurd mu", true, Schedule{Steps: 4, Mu: &big}, "sigma 0 of 4 is NaN"},
		{"good", true, Schedule{Steps: 4, Mu: &mu}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := DefaultFlowMatchEulerConfig()
			config.UseDynamicShifting = c.dynamic
			s, err := NewFlowMatchEuler(config)
			if err != nil {
				t.Fatal(err)
			}
			err = s.SetTimesteps(c.p)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, c.want)
			if s.Timesteps() != nil {
				t.Error("a failed call left a schedule")
			}
		})
	}
}

// A failed SetTimesteps leaves the earlier schedule and position as they were.
func TestFailedScheduleChangesNothing(t *testing.T) {
	s := scheduled(t, 4)
	if _, err := s.Advance(s.Timesteps()[0]); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(s.Sigmas())
	wantError(t, s.SetTimesteps(Schedule{}), "no number of steps")
	if !slices.Equal(s.Sigmas(), want) || s.StepIndex() != 1 {
		t.Error("the schedule changed")
	}
}

func TestSingleShiftEndsAtTheUnshiftedSigma(t *testing.T) {
	twice := scheduled(t, 40).Sigmas()
	if got := twice[39]; got != 0.008928571827709675 { // huggingface/diffusers#13243
		t.Errorf("last sigma is %v by default", got)
	}
	c := static3(t).Config()
	c.SingleShift = true
	s, err := NewFlowMatchEuler(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetTimesteps(Schedule{Steps: 40}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Sigmas()[39], float32(3*.001/(1+2*.001)); math.Abs(float64(got-want)) > 1e-9 {
		t.Errorf("last sigma is %v, want %v", got, want)
	}
}

func TestConfigEndsReplaceScheduleEnds(t *testing.T) {
	for _, key := range []string{"use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas"} {
		s, err := New(flowMatchEulerClass, []byte(`{"sigma_min": 0.25, "sigma_max": 0.75, "`+key+`": true}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetTimesteps(Schedule{Steps: 5}); err != nil {
			t.Fatal(err)
		}
		v := s.Sigmas()
		near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }
		if !near(v[0], .75) || !near(v[4], .25) || v[5] != 0 {
			t.Errorf("%s: sigmas are %v", key, v)
		}
	}
}

func step(s Scheduler, timestep float32) error {
	x := tensor.New(tensor.F32, 2)
	_, err := s.Step(x, timestep, x, nil)
	return err
}

func TestAnIndexIsNotATimestep(t *testing.T) {
	s := scheduled(t, 4)
	wantError(t, step(s, 1), "timestep 1 is not in the schedule", "not its index")
	if err := s.SetBeginIndex(0); err != nil {
		t.Fatal(err)
	}
	wantError(t, step(s, 1), "timestep 1 at step 0, expected 1000")
	if s.StepIndex() != -1 {
		t.Error("a refused step moved on")
	}
	if err := step(s, 1000); err != nil {
		t.Fatal(err)
	}
	wantError(t, step(s, 1000), "at step 1, expected 857")
}

func TestStepsEndWithTheSchedule(t *testing.T) {
	wantError(t, step(static3(t), 1000), "no schedule is set")
	s := scheduled(t, 2)
	for _, v := range s.Timesteps() {
		if err := step(s, v); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, step(s, s.Timesteps()[1]), "step 2 is outside")
}

func TestBeginIndex(t *testing.T) {
	s := static3(t)
	wantError(t, s.SetBeginIndex(0), "outside the schedule of 0")
	if err := s.SetTimesteps(Schedule{Sigmas: []float64{1, .5, .25}, Timesteps: []float64{900, 900, 100}}); err != nil {
		t.Fatal(err)
	}
	wantError(t, s.SetBeginIndex(3), "begin index 3")
	wantError(t, s.SetBeginIndex(-1), "begin index -1")
	// Without one, a timestep that occurs twice is its second occurrence.
	if err := step(s, 900); err != nil || s.StepIndex() != 2 {
		t.Errorf("step index is %d, %v, want 2", s.StepIndex(), err)
	}
	if err := s.SetTimesteps(Schedule{Sigmas: []float64{1, .5, .25}, Timesteps: []float64{900, 900, 100}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetBeginIndex(0); err != nil {
		t.Fatal(err)
	}
	if err := step(s, 900); err != nil || s.StepIndex() != 1 {
		t.Errorf("step index is %d, %v, want 1", s.StepIndex(), err)
	}
}

func TestNoiseSigmaFollowsThePosition(t *testing.T) {
	s := scheduled(t, 4)
	sigmas, timesteps := s.Sigmas(), s.Timesteps()
	check := func(timestep, want float32) {
		t.Helper()
		if got, err := s.NoiseSigma(timestep); err != nil || got != want {
			t.Errorf("sigma is %v, %v, want %v", got, err, want)
		}
	}
	check(timesteps[3], sigmas[3]) // by value
	if _, err := s.NoiseSigma(3); err == nil {
		t.Error("timestep 3 was found")
	}
	if err := s.SetBeginIndex(2); err != nil {
		t.Fatal(err)
	}
	check(timesteps[3], sigmas[2]) // where the steps will begin
	for i := 2; i < 4; i++ {
		if err := step(s, timesteps[i]); err != nil {
			t.Fatal(err)
		}
		check(timesteps[0], sigmas[i+1]) // where the next step will
	}
}

func TestScaleNoiseRoundsEveryOperation(t *testing.T) {
	s := scheduled(t, 4) // sigma 0.857692301 is 0.859375 in bf16
	timestep := s.Timesteps()[1]
	x, _ := tensor.FromFloat32([]float32{1, 1.0078125}, 2).Convert(tensor.BF16)
	n, _ := tensor.FromFloat32([]float32{3, -1.0078125}, 2).Convert(tensor.BF16)
	got, err := s.ScaleNoise(x, timestep, n)
	if err != nil {
		t.Fatal(err)
	}
	// 0.859375*3 = 2.578125 and 0.140625 are exact, 2.71875 their sum rounded to 8 bits;
	// 0.859375*1.0078125 = 0.86608… rounds to 0.8671875, 0.140625*1.0078125 = 0.14172… to 0.1416015625.
	want, _ := tensor.FromFloat32([]float32{2.71875, -0.8671875 + 0.1416015625}, 2).Convert(tensor.BF16)
	if !slices.Equal(got.Data, want.Data) {
		t.Errorf("got %v, want %v", got.Float32s(), want.Float32s())
	}
	x64, err := s.ScaleNoise(tensor.FromFloat64([]float64{1}, 1), timestep, tensor.FromFloat64([]float64{3}, 1))
	if sigma := float64(s.Sigmas()[1]); err != nil || x64.Float64s()[0] != sigma*3+(1-sigma) {
		t.Errorf("got %v, %v", x64, err)
	}
}

func TestStepRefusesArraysThatDoNotFit(t *testing.T) {
	s := scheduled(t, 4)
	f32, f16, i32 := tensor.New(tensor.F32, 2), tensor.New(tensor.F16, 2), tensor.New(tensor.I32, 2)
	short := &tensor.Array{DType: tensor.F32, Shape: tensor.Shape{2}, Data: make([]byte, 4)}
	for _, c := range []struct {
		output, sample *tensor.Array
		want           string
	}{
		{f32, tensor.New(tensor.F32, 2, 1), "shapes [2] and [2 1]"},
		{i32, f32, "array i32[2]"}, {f32, i32, "array i32[2]"}, {short, f32, "4 bytes"},
	} {
		_, err := s.Step(c.output, 1000, c.sample, nil)
		wantError(t, err, "scheduler step", c.want)
	}
	_, err := s.ScaleNoise(f32, 1000, f16)
	wantError(t, err, "scale noise", "expected the same type")
	_, err = s.ScaleNoise(f32, 1, f32)
	wantError(t, err, "timestep 1 is not in the schedule")
	if s.StepIndex() != -1 {
		t.Error("a refused step moved on")
	}
}

func TestFloat64Steps(t *testing.T) {
	for _, stochastic := range []bool{false, true} {
		c := static3(t).Config()
		c.StochasticSampling = stochastic
		s, err := NewFlowMatchEuler(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetTimesteps(Schedule{Steps: 4}); err != nil {
			t.Fatal(err)
		}
		v, x := tensor.FromFloat64([]float64{1.0 / 3}, 1), tensor.FromFloat64([]float64{0.5}, 1)
		noise := tensor.FromFloat32([]float32{2}, 1)
		got, err := s.Step(v, 1000, x, func(tensor.DType, ...int) (*tensor.Array, error) { return noise, nil })
		if err != nil {
			t.Fatal(err)
		}
		next := s.Sigmas()[1]
		want := 0.5 + float64(next-1)/3
		if stochastic {
			want = float64(1-next)*(0.5-1.0/3) + float64(next*2)
		}
		if got.DType != tensor.F64 || got.Float64s()[0] != want {
			t.Errorf("stochastic %v: got %v, want %v", stochastic, got.Float64s(), want)
		}
	}
}

func TestStochasticSamplingNeedsNoise(t *testing.T) {
	s, err := New(flowMatchEulerClass, []byte(`{"stochastic_sampling": true}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetTimesteps(Schedule{Steps: 2}); err != nil {
		t.Fatal(err)
	}
	wantError(t, step(s, 1000), "requires a random generator")
	broken := errors.New("broken")
	x := tensor.New(tensor.F32, 2)
	_, err = s.Step(x, 1000, x, func(tensor.DType, ...int) (*tensor.Array, error) { return nil, broken })
	if !errors.Is(err, broken) || s.StepIndex() != -1 {
		t.Errorf("error is %v at step %d", err, s.StepIndex())
	}
	if _, err = s.Step(x, 1000, x, rng.New(0).Randn); err != nil {
		t.Error(err)
	}
}

func TestCoefficientsAreTheStep(t *testing.T) {
	s := scheduled(t, 7)
	x, v := float32(0.3), float32(-1.7)
	for i, timestep := range s.Timesteps() {
		c, err := s.StepCoefficients(i)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Step(tensor.FromFloat32([]float32{v}, 1), timestep, tensor.FromFloat32([]float32{x}, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := x + float32(c.Dt*v); got.Float32s()[0] != want {
			t.Errorf("step %d gives %v, its coefficients %v", i, got.Float32s()[0], want)
		}
		if c.Sigma != s.Sigmas()[i] || c.SigmaNext != s.Sigmas()[i+1] || c.Stochastic {
			t.Errorf("coefficients of step %d are %+v", i, c)
		}
	}
	for _, i := range []int{-1, 7} {
		_, err := s.StepCoefficients(i)
		wantError(t, err, "outside the schedule of 7")
	}
}

func TestCloneHasNoSchedule(t *testing.T) {
	s := scheduled(t, 4)
	c := s.Clone()
	if c.Timesteps() != nil || c.Sigmas() != nil || c.StepIndex() != -1 || c.Shifting() != s.Shifting() {
		t.Error("a clone starts with the schedule of the original")
	}
	if err := c.SetTimesteps(Schedule{Steps: 2}); err != nil || len(s.Timesteps()) != 4 {
		t.Errorf("the clone's schedule changed the original's: %v", err)
	}
}

func TestLoad(t *testing.T) {
	write := func(t *testing.T, text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, ConfigFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	s, err := Load(write(t, `{"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3, "num_train_timesteps": 1000.0,
		"shift_terminal": null, "max_shift": null, "a_key_of_tomorrow": {"x": [1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultFlowMatchEulerConfig()
	want.Shift = 3
	if got := s.(*FlowMatchEuler).Config(); got != want {
		t.Errorf("config is %+v, want %+v", got, want)
	}
	if s.Class() != flowMatchEulerClass || s.Order() != 1 {
		t.Errorf("class %q, order %d", s.Class(), s.Order())
	}

	class := `{"_class_name": "FlowMatchEulerDiscreteScheduler", `
	for name, c := range map[string]struct{ text, want string }{
		"wrong class type":  {`{"_class_name": 3}`, `key "_class_name" is 3, expected a string`},
		"no class":          {`{"shift": 3}`, `key "_class_name" is missing, expected one of FlowMatchEulerDiscreteScheduler`},
		"unknown class":     {`{"_class_name": "PNDMScheduler"}`, `unknown scheduler class "PNDMScheduler" (known: FlowMatchEulerDiscreteScheduler)`},
		"not JSON":          {`{`, "line 1 is not JSON"},
		"a list":            {`[]`, "is an array, expected an object"},
		"shift as text":     {class + `"shift": "3.0"}`, `key "shift" is "3.0", expected a number`},
		"flag as number":    {class + `"use_dynamic_shifting": 1}`, `key "use_dynamic_shifting" is 1, expected true or false`},
		"half a timestep":   {class + `"num_train_timesteps": 0.5}`, `key "num_train_timesteps" is 0.5, expected a whole number`},
		"no timesteps":      {class + `"num_train_timesteps": 0}`, `"num_train_timesteps" is 0`},
		"terminal as flag":  {class + `"shift_terminal": true}`, `key "shift_terminal" is true, expected a number or null`},
		"terminal past 1":   {class + `"shift_terminal": 1}`, `"shift_terminal" is 1`},
		"negative shift":    {class + `"shift": -3}`, `"shift" is -3`},
		"unknown type":      {class + `"time_shift_type": "cubic"}`, `"time_shift_type" is "cubic"`},
		"two schedules":     {class + `"use_karras_sigmas": true, "use_beta_sigmas": true}`, "only one of"},
		"no base to shift":  {class + `"base_image_seq_len": 4096}`, "both 4096"},
		"a long wrong text": {class + `"shift": "` + strings.Repeat("x", 1000) + `"}`, "xxx…, expected"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, c.text)
			_, err := Load(dir)
			wantError(t, err, c.want, filepath.Join(dir, ConfigFile))
		})
	}
	_, err = Load(t.TempDir())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder gives %v", err)
	}
}

func TestRealConfigs(t *testing.T) {
	dir := shareddata.Dir(t, "data", "configs")
	for name, want := range map[string]FlowMatchEulerConfig{
		"flux1-schnell": {Shift: 1}, "flux1-dev": {Shift: 3, UseDynamicShifting: true},
		"sd3-medium": {Shift: 3}, "sd3.5-medium": {Shift: 3}, "sd3.5-large": {Shift: 3},
	} {
		s, err := Load(filepath.Join(dir, name, "scheduler"))
		if err != nil {
			t.Fatal(err)
		}
		w := DefaultFlowMatchEulerConfig()
		w.Shift, w.UseDynamicShifting = want.Shift, want.UseDynamicShifting
		if got := s.(*FlowMatchEuler).Config(); got != w {
			t.Errorf("%s: config is %+v, want %+v", name, got, w)
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add([]byte(`{"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0}`), 4)
	f.Add([]byte(`{"_class_name": "FlowMatchEulerDiscreteScheduler", "use_beta_sigmas": true, "sigma_min": -1e308}`), 1)
	f.Fuzz(func(t *testing.T, config []byte, steps int) {
		s, err := New("", config)
		if err != nil {
			return
		}
		mu := 0.5
		if steps > 1000 || s.SetTimesteps(Schedule{Steps: steps, Mu: &mu}) != nil {
			return
		}
		if len(s.Timesteps()) != steps || len(s.Sigmas()) != steps+1 {
			t.Errorf("%d timesteps and %d sigmas for %d steps", len(s.Timesteps()), len(s.Sigmas()), steps)
		}
	})
}

// The quantiles are scipy.stats.beta.ppf(p, 0.6, 0.6) of SciPy 1.17.1.
func TestBetaQuantile(t *testing.T) {
	for p, want := range map[float64]float64{
		0: 0, 1: 1, 0.5: 0.5000000000000001, 0.25: 0.17568037865269498, 0.001: 1.855873851745199e-05, 1e-6: 1.8558824624053043e-10, 0.49: 0.4861289142781599, 0.75: 0.824319621347305, 0.999: 0.9999814412614826,
	} {
		if got := betaQuantile(p); math.Abs(got-want) > 2e-15*want {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
}
