package scheduler

import (
	"fmt"
	"math"
	"slices"
)

const flowMatchEulerClass = "FlowMatchEulerDiscreteScheduler"

// maxSteps keeps a slip of the finger from asking for gigabytes of schedule.
const maxSteps = 1 << 20

// FlowMatchEulerConfig is the configuration of [FlowMatchEuler], named as in scheduler_config.json. Take
// [DefaultFlowMatchEulerConfig] and change it.
type FlowMatchEulerConfig struct {
	NumTrainTimesteps    int
	Shift                float64 // static shift; 1 is none
	UseDynamicShifting   bool    // shift by Schedule.Mu instead
	BaseShift            float64
	MaxShift             float64
	BaseImageSeqLen      int
	MaxImageSeqLen       int
	InvertSigmas         bool
	ShiftTerminal        float64 // last sigma that the schedule is stretched to; 0 is off
	UseKarrasSigmas      bool
	UseExponentialSigmas bool
	UseBetaSigmas        bool
	TimeShiftType        string // of dynamic shifting: exponential or linear
	StochasticSampling   bool

	// SigmaMin and SigmaMax, where a configuration has them, replace the ends of the Karras, exponential and beta
	// schedules.
	SigmaMin, SigmaMax *float64

	// SingleShift keeps Diffusers from shifting a static schedule of its own twice, once for its lower end and once as
	// a whole (huggingface/diffusers#13243). It is off by default and in no file: the published pictures of Stable
	// Diffusion 3 are made with the double shift.
	SingleShift bool
}

// DefaultFlowMatchEulerConfig returns Diffusers' defaults.
func DefaultFlowMatchEulerConfig() FlowMatchEulerConfig {
	return FlowMatchEulerConfig{
		NumTrainTimesteps: 1000, Shift: 1, BaseShift: 0.5, MaxShift: 1.15, BaseImageSeqLen: 256, MaxImageSeqLen: 4096,
		TimeShiftType: "exponential",
	}
}

func flowMatchEulerConfig(o object) (FlowMatchEulerConfig, error) {
	c := DefaultFlowMatchEulerConfig()
	var terminal *float64
	for _, err := range []error{
		o.count("num_train_timesteps", &c.NumTrainTimesteps),
		o.number("shift", &c.Shift),
		o.flag("use_dynamic_shifting", &c.UseDynamicShifting),
		o.number("base_shift", &c.BaseShift),
		o.number("max_shift", &c.MaxShift),
		o.count("base_image_seq_len", &c.BaseImageSeqLen),
		o.count("max_image_seq_len", &c.MaxImageSeqLen),
		o.flag("invert_sigmas", &c.InvertSigmas),
		o.optional("shift_terminal", &terminal),
		o.flag("use_karras_sigmas", &c.UseKarrasSigmas),
		o.flag("use_exponential_sigmas", &c.UseExponentialSigmas),
		o.flag("use_beta_sigmas", &c.UseBetaSigmas),
		o.text("time_shift_type", &c.TimeShiftType),
		o.flag("stochastic_sampling", &c.StochasticSampling),
		o.optional("sigma_min", &c.SigmaMin),
		o.optional("sigma_max", &c.SigmaMax),
	} {
		if err != nil {
			return c, err
		}
	}
	if terminal != nil {
		c.ShiftTerminal = *terminal
	}
	return c, nil
}

// check returns an error that names the first wrong key.
func (c *FlowMatchEulerConfig) check() error {
	n := 0
	for _, on := range []bool{c.UseKarrasSigmas, c.UseExponentialSigmas, c.UseBetaSigmas} {
		if on {
			n++
		}
	}
	switch {
	case n > 1:
		return fmt.Errorf("only one of use_beta_sigmas, use_exponential_sigmas, use_karras_sigmas can be true")
	case c.TimeShiftType != "exponential" && c.TimeShiftType != "linear":
		return fmt.Errorf(`key "time_shift_type" is %q, expected exponential or linear`, c.TimeShiftType)
	case c.NumTrainTimesteps < 1 || c.NumTrainTimesteps > 1<<24:
		return fmt.Errorf(`key "num_train_timesteps" is %d, expected 1 to 2^24`, c.NumTrainTimesteps)
	case !(c.Shift > 0):
		return fmt.Errorf(`key "shift" is %v, expected a positive number`, c.Shift)
	case !(c.ShiftTerminal >= 0 && c.ShiftTerminal < 1):
		return fmt.Errorf(`key "shift_terminal" is %v, expected 0 or more and below 1`, c.ShiftTerminal)
	case c.BaseImageSeqLen == c.MaxImageSeqLen:
		return fmt.Errorf(`keys "base_image_seq_len" and "max_image_seq_len" are both %d, expected two lengths`, c.MaxImageSeqLen)
	}
	return nil
}

// FlowMatchEuler is Euler's method for flow matching, the scheduler of FLUX.1, FLUX.2 and Stable Diffusion 3. It is a
// [Linear] scheduler and a [NoiseScaler].
// Source: FlowMatchEulerDiscreteScheduler (diffusers/schedulers/scheduling_flow_match_euler_discrete.py).
type FlowMatchEuler struct {
	config             FlowMatchEulerConfig
	sigmaMin, sigmaMax float64 // ends of the schedule made from a number of steps

	sigmas, timesteps []float32
	beginIndex        int // -1: unset
	stepIndex         int // -1: before the first step
}

var (
	_ Linear      = (*FlowMatchEuler)(nil)
	_ NoiseScaler = (*FlowMatchEuler)(nil)
)

// NewFlowMatchEuler returns a scheduler with no schedule set.
func NewFlowMatchEuler(c FlowMatchEulerConfig) (*FlowMatchEuler, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &FlowMatchEuler{config: c, beginIndex: -1, stepIndex: -1}
	// PyTorch makes all training timesteps, in float32, and shifts them; only the ends are used.
	n := float64(c.NumTrainTimesteps)
	ends := []float64{1, single(1 / n)}
	if !c.UseDynamicShifting && !c.SingleShift {
		staticShift(ends, c.Shift, single)
	}
	s.sigmaMax, s.sigmaMin = ends[0], ends[1]
	return s, nil
}

// Class returns "FlowMatchEulerDiscreteScheduler".
func (s *FlowMatchEuler) Class() string { return flowMatchEulerClass }

// Config returns the configuration.
func (s *FlowMatchEuler) Config() FlowMatchEulerConfig { return s.config }

// Clone returns a scheduler of the same configuration with no schedule set.
func (s *FlowMatchEuler) Clone() Scheduler {
	c := *s
	c.sigmas, c.timesteps, c.beginIndex, c.stepIndex = nil, nil, -1, -1
	return &c
}

// Shifting returns what a pipeline needs to compute mu.
func (s *FlowMatchEuler) Shifting() Shifting {
	c := &s.config
	return Shifting{
		Dynamic: c.UseDynamicShifting, BaseImageSeqLen: c.BaseImageSeqLen, MaxImageSeqLen: c.MaxImageSeqLen,
		BaseShift: c.BaseShift, MaxShift: c.MaxShift,
	}
}

// Order returns 1.
func (s *FlowMatchEuler) Order() int { return 1 }

// Timesteps returns the values for the model, one a step; nil before SetTimesteps.
func (s *FlowMatchEuler) Timesteps() []float32 { return s.timesteps }

// Sigmas returns the noise levels, one more than there are steps; nil before SetTimesteps.
func (s *FlowMatchEuler) Sigmas() []float32 { return s.sigmas }

// SetTimesteps computes the schedule: given or even noise levels, shifted, stretched to shift_terminal, replaced by a
// Karras, exponential or beta schedule between the same ends, and closed with 0 (or inverted, and closed with 1). Given
// timesteps stay as they are; without sigmas, the sigmas come from them and are shifted.
func (s *FlowMatchEuler) SetTimesteps(p Schedule) error {
	steps, err := p.steps()
	if err != nil {
		return fmt.Errorf("set timesteps: %w", err)
	}
	c := &s.config
	if c.UseDynamicShifting && p.Mu == nil {
		return fmt.Errorf("set timesteps: mu is missing, use_dynamic_shifting requires it")
	}
	levels, round := s.levels(p, steps)
	switch {
	case !c.UseDynamicShifting:
		staticShift(levels, c.Shift, round)
	case c.TimeShiftType == "linear":
		dynamicShift(levels, *p.Mu, round)
	default:
		dynamicShift(levels, math.Exp(*p.Mu), round)
	}
	if c.ShiftTerminal != 0 {
		stretchToTerminal(levels, c.ShiftTerminal, round)
	}
	levels = s.respace(levels)

	train := float32(c.NumTrainTimesteps)
	sigmas, timesteps := make([]float32, steps, steps+1), make([]float32, steps)
	for i, v := range levels {
		sigmas[i] = float32(v)
		timesteps[i] = sigmas[i] * train
		if p.Timesteps != nil {
			timesteps[i] = float32(p.Timesteps[i])
		}
		if c.InvertSigmas {
			sigmas[i] = 1 - sigmas[i]
			timesteps[i] = sigmas[i] * train
		}
		if f := float64(sigmas[i]); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("set timesteps: sigma %d of %d is %v with this shift and these sigmas", i, steps, f)
		}
	}
	last := float32(0)
	if c.InvertSigmas {
		last = 1
	}
	s.sigmas, s.timesteps = append(sigmas, last), timesteps
	s.beginIndex, s.stepIndex = -1, -1
	return nil
}

// steps returns the number of steps that all parts of the schedule agree on.
func (p *Schedule) steps() (int, error) {
	if p.Sigmas != nil && p.Timesteps != nil && len(p.Sigmas) != len(p.Timesteps) {
		return 0, fmt.Errorf("%d sigmas and %d timesteps, expected as many", len(p.Sigmas), len(p.Timesteps))
	}
	given := p.Timesteps
	if p.Sigmas != nil {
		given = p.Sigmas
	}
	infinite := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	if i := slices.IndexFunc(p.Sigmas, infinite); i >= 0 {
		return 0, fmt.Errorf("sigma %d is %v, expected a finite number", i, p.Sigmas[i])
	}
	if i := slices.IndexFunc(p.Timesteps, infinite); i >= 0 {
		return 0, fmt.Errorf("timestep %d is %v, expected a finite number", i, p.Timesteps[i])
	}
	switch {
	case p.Steps < 0 || p.Steps > maxSteps:
		return 0, fmt.Errorf("%d steps, expected 1 to %d", p.Steps, maxSteps)
	case p.Steps != 0 && given != nil && len(given) != p.Steps:
		return 0, fmt.Errorf("%d sigmas or timesteps for %d steps, expected as many", len(given), p.Steps)
	case p.Steps != 0:
		return p.Steps, nil
	case len(given) == 0:
		return 0, fmt.Errorf("no number of steps, no sigmas and no timesteps are given")
	}
	return len(given), nil
}
