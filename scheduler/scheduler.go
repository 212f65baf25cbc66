// Package scheduler turns a model's outputs into steps from noise to an image, with Diffusers' numbers: sigma tables
// agree in every bit, steps round where PyTorch rounds.
//
// The main type is [Scheduler]; [Load] makes the one that a checkpoint names:
//
//	s, err := scheduler.Load(filepath.Join(checkpoint, "scheduler"))
//	mu := s.Shifting().Mu(imageTokens)
//	err = s.SetTimesteps(scheduler.Schedule{Sigmas: scheduler.LinearSigmas(28), Mu: &mu})
//	for _, t := range s.Timesteps() {
//		output := model(latents, t)
//		latents, err = s.Step(output, t, latents, generator.Randn)
//	}
//
// Step works on host arrays. A pipeline that keeps its latents on a device asks for the numbers instead, where the
// scheduler has them: see [Linear].
package scheduler

import "github.com/gesso-go/gesso/tensor"

// Scheduler is a sampling method with its schedule and its position in it. It is not safe for concurrent use; every
// run takes a [Scheduler.Clone] of its own.
type Scheduler interface {
	// Class returns Diffusers' name of the method, such as FlowMatchEulerDiscreteScheduler.
	Class() string
	// Clone returns a scheduler of the same configuration with no schedule set.
	Clone() Scheduler
	// Shifting returns what a pipeline needs to compute Schedule.Mu.
	Shifting() Shifting
	// SetTimesteps computes the schedule and goes to its beginning.
	SetTimesteps(Schedule) error
	// Timesteps returns one value a model evaluation, which is what the model and Step are given; read-only.
	Timesteps() []float32
	// Sigmas returns the noise levels: one a timestep and the last one, where the image is; read-only.
	Sigmas() []float32
	// Order returns the model evaluations a step takes: 1, or 2 for Heun's method.
	Order() int
	// SetBeginIndex makes the first step start at Timesteps()[i]: 0, or further on for image-to-image.
	SetBeginIndex(i int) error
	// StepIndex returns the index in Timesteps of the next step, or -1 before the first.
	StepIndex() int
	// Step advances sample by one step along output, the model's answer for sample at timestep, which must be the
	// next of Timesteps. The result has the type of output. Noise is drawn only by stochastic methods.
	Step(output *tensor.Array, timestep float32, sample *tensor.Array, noise Noise) (*tensor.Array, error)
}

// Schedule is what a schedule is computed from.
type Schedule struct {
	// Steps is the number of steps; 0 stands for the length of Sigmas or Timesteps, which it must equal otherwise.
	Steps int
	// Sigmas replaces the method's own noise levels, before they are shifted.
	Sigmas []float64
	// Timesteps replaces the method's own timesteps, from 1000 downwards.
	Timesteps []float64
	// Mu is the resolution-dependent shift. It is required where Shifting().Dynamic is true, and ignored elsewhere.
	Mu *float64
}

// Noise draws a standard normal array; the Randn method of an rng.Generator is one.
type Noise func(d tensor.DType, shape ...int) (*tensor.Array, error)

// Linear is a scheduler whose step needs only the sample, the output and a few numbers, so that it can run where the
// latents are.
type Linear interface {
	Scheduler
	// StepCoefficients returns the numbers of the step at Timesteps()[i].
	StepCoefficients(i int) (StepCoefficients, error)
	// Advance goes on to the next step, as Step would have.
	Advance(timestep float32) (StepCoefficients, error)
}

// StepCoefficients are the numbers of one step. Unless Stochastic,
//
//	previous = sample + Dt*output
//
// and otherwise, with standard normal float32 noise of the sample's shape,
//
//	x0 = sample - Sigma*output
//	previous = (1-SigmaNext)*x0 + SigmaNext*noise
//
// Diffusers rounds thus: sample is taken to float32. Dt and Sigma are rounded to the output's type, and so is their
// product with output (a scalar tensor does not widen a bf16 one). All else is float32, and the result is rounded to the
// output's type.
type StepCoefficients struct {
	Sigma, SigmaNext float32
	Dt               float32 // SigmaNext - Sigma
	Stochastic       bool
}

// NoiseScaler is a scheduler that can mix an image with noise, for image-to-image and inpainting.
type NoiseScaler interface {
	// ScaleNoise returns sigma*noise + (1-sigma)*sample; the arrays have one shape and type, and every operation
	// rounds to it.
	ScaleNoise(sample *tensor.Array, timestep float32, noise *tensor.Array) (*tensor.Array, error)
	// NoiseSigma returns the sigma that ScaleNoise would use at timestep.
	NoiseSigma(timestep float32) (float32, error)
}
