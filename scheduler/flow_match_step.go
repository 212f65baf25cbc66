package scheduler

import (
	"fmt"

	"github.com/gesso-go/gesso/tensor"
)

// SetBeginIndex makes the first step start at Timesteps()[i]. Pipelines set it to 0, so that a schedule in which a
// timestep occurs twice starts at its first.
func (s *FlowMatchEuler) SetBeginIndex(i int) error {
	if i < 0 || i >= len(s.timesteps) {
		return fmt.Errorf("begin index %d is outside the schedule of %d timesteps", i, len(s.timesteps))
	}
	s.beginIndex = i
	return nil
}

// StepIndex returns the index of the next step, or -1 before the first.
func (s *FlowMatchEuler) StepIndex() int { return s.stepIndex }

// indexForTimestep returns where a schedule without a begin index starts: at the second occurrence of the timestep, if
// there are two, so that image-to-image starting in the middle skips no sigma.
func (s *FlowMatchEuler) indexForTimestep(timestep float32) (int, error) {
	first := -1
	for i, t := range s.timesteps {
		if t != timestep {
			continue
		}
		if first >= 0 {
			return i, nil
		}
		first = i
	}
	if first < 0 {
		return 0, fmt.Errorf("timestep %v is not in the schedule, expected one of Timesteps and not its index", timestep)
	}
	return first, nil
}

// StepCoefficients returns the numbers of the step at Timesteps()[i].
func (s *FlowMatchEuler) StepCoefficients(i int) (StepCoefficients, error) {
	if i < 0 || i >= len(s.timesteps) {
		return StepCoefficients{}, fmt.Errorf("step %d is outside the schedule of %d timesteps", i, len(s.timesteps))
	}
	return StepCoefficients{
		Sigma: s.sigmas[i], SigmaNext: s.sigmas[i+1], Dt: s.sigmas[i+1] - s.sigmas[i],
		Stochastic: s.config.StochasticSampling,
	}, nil
}

// Advance returns the numbers of the next step and goes past it. The timestep must be that of the step; an index into
// the schedule, which Diffusers refuses by its type, is refused by its value.
func (s *FlowMatchEuler) Advance(timestep float32) (StepCoefficients, error) {
	if s.timesteps == nil {
		return StepCoefficients{}, fmt.Errorf("no schedule is set, call SetTimesteps first")
	}
	i := s.stepIndex
	if i < 0 {
		i = s.beginIndex
	}
	if i < 0 {
		var err error
		if i, err = s.indexForTimestep(timestep); err != nil {
			return StepCoefficients{}, err
		}
	}
	c, err := s.StepCoefficients(i)
	if err != nil {
		return c, err
	}
	if s.timesteps[i] != timestep {
		return c, fmt.Errorf("timestep %v at step %d, expected %v: one of Timesteps, in order, and not its index",
			timestep, i, s.timesteps[i])
	}
	s.stepIndex = i + 1
	return c, nil
}

// Step advances sample along output by one step; see [StepCoefficients] for the formulas and the rounding.
func (s *FlowMatchEuler) Step(output *tensor.Array, timestep float32, sample *tensor.Array, noise Noise) (*tensor.Array, error) {
	if err := sameShape(output, sample); err != nil {
		return nil, fmt.Errorf("scheduler step: %w", err)
	}
	var n []float32
	if s.config.StochasticSampling {
		if noise == nil {
			return nil, fmt.Errorf("scheduler step: stochastic_sampling requires a random generator")
		}
	}
	before := s.stepIndex
	c, err := s.Advance(timestep)
	if err != nil {
		return nil, fmt.Errorf("scheduler step: %w", err)
	}
	if c.Stochastic {
		a, err := noise(tensor.F32, sample.Shape...)
		if err != nil {
			s.stepIndex = before
			return nil, fmt.Errorf("scheduler step: %w", err)
		}
		n = a.Float32s()
	}
	if output.DType == tensor.F64 {
		return tensor.FromFloat64(step64(c, output.Float64s(), sample.Float32s(), n), sample.Shape...), nil
	}
	d := output.DType
	return tensor.FromFloat32(step32(c, d, output.Float32s(), sample.Float32s(), n), sample.Shape...).Convert(d)
}

// step32 returns the next sample before its rounding to d, the type of v.
func step32(c StepCoefficients, d tensor.DType, v, x, noise []float32) []float32 {
	out := make([]float32, len(x))
	if c.Stochastic {
		sigma := tensor.RoundTo(d, c.Sigma)
		keep := 1 - c.SigmaNext
		for i := range out {
			x0 := x[i] - tensor.RoundTo(d, float32(sigma*v[i]))
			out[i] = float32(keep*x0) + float32(c.SigmaNext*noise[i])
		}
		return out
	}
	dt := tensor.RoundTo(d, c.Dt)
	for i := range out {
		out[i] = x[i] + tensor.RoundTo(d, float32(dt*v[i]))
	}
	return out
}

// step64 is step32 for a float64 model, where only the sample, the noise and the coefficients are float32.
func step64(c StepCoefficients, v []float64, x, noise []float32) []float64 {
	out := make([]float64, len(x))
	for i := range out {
		if c.Stochastic {
			x0 := float64(x[i]) - float64(float64(c.Sigma)*v[i])
			out[i] = float64(float64(1-c.SigmaNext)*x0) + float64(float32(c.SigmaNext*noise[i]))
		} else {
			out[i] = float64(x[i]) + float64(float64(c.Dt)*v[i])
		}
	}
	return out
}

// NoiseSigma returns the sigma that ScaleNoise uses: before any begin index is set that of timestep, after it that of
// the first step, and once steps have been taken that of the next one.
func (s *FlowMatchEuler) NoiseSigma(timestep float32) (float32, error) {
	i := s.stepIndex
	if s.beginIndex < 0 || i < 0 {
		i = s.beginIndex
	}
	if i < 0 {
		var err error
		if i, err = s.indexForTimestep(timestep); err != nil {
			return 0, err
		}
	}
	return s.sigmas[i], nil
}

// ScaleNoise mixes sample with noise, as if the model had yet to take the noise away: sigma*noise + (1-sigma)*sample,
// every operation rounded to their common type.
func (s *FlowMatchEuler) ScaleNoise(sample *tensor.Array, timestep float32, noise *tensor.Array) (*tensor.Array, error) {
	if err := sameShape(noise, sample); err != nil {
		return nil, fmt.Errorf("scale noise: %w", err)
	}
	if noise.DType != sample.DType {
		return nil, fmt.Errorf("scale noise: sample is %s, noise %s, expected the same type", sample, noise)
	}
	sigma32, err := s.NoiseSigma(timestep)
	if err != nil {
		return nil, fmt.Errorf("scale noise: %w", err)
	}
	d := sample.DType
	if d == tensor.F64 {
		x, n := sample.Float64s(), noise.Float64s()
		out := make([]float64, len(x))
		sigma := float64(sigma32)
		for i := range out {
			out[i] = float64(sigma*n[i]) + float64((1-sigma)*x[i])
		}
		return tensor.FromFloat64(out, sample.Shape...), nil
	}
	x, n := sample.Float32s(), noise.Float32s()
	out := make([]float32, len(x))
	round := func(v float32) float32 { return tensor.RoundTo(d, v) }
	sigma := round(sigma32)
	keep := round(1 - sigma)
	for i := range out {
		out[i] = round(float32(sigma*n[i])) + round(float32(keep*x[i]))
	}
	return tensor.FromFloat32(out, sample.Shape...).Convert(d)
}

// sameShape checks the arrays that a step or a mixture combines. The first is named output in the message.
func sameShape(output, sample *tensor.Array) error {
	for _, a := range []*tensor.Array{output, sample} {
		if d := a.DType; d != tensor.F32 && d != tensor.F64 && !d.IsHalf() {
			return fmt.Errorf("array %s, expected f32, bf16, f16 or f64", a)
		}
		if err := a.Check(); err != nil {
			return err
		}
	}
	if !output.Shape.Equal(sample.Shape) {
		return fmt.Errorf("shapes %v and %v, expected the same", output.Shape, sample.Shape)
	}
	return nil
}
