package scheduler

// Shifting is the part of a scheduler's configuration from which pipelines compute mu. The zero value never shifts.
type Shifting struct {
	Dynamic                         bool // use_dynamic_shifting: SetTimesteps requires Mu
	BaseImageSeqLen, MaxImageSeqLen int  // numbers of image tokens
	BaseShift, MaxShift             float64
}

// Mu returns the shift for an image of the given number of tokens, as FLUX.1 and Stable Diffusion 3 compute it: on the
// line through (BaseImageSeqLen, BaseShift) and (MaxImageSeqLen, MaxShift).
// Source: calculate_shift (diffusers/pipelines/flux/pipeline_flux.py).
func (s Shifting) Mu(imageSeqLen int) float64 {
	m := (s.MaxShift - s.BaseShift) / float64(s.MaxImageSeqLen-s.BaseImageSeqLen)
	b := s.BaseShift - float64(m*float64(s.BaseImageSeqLen))
	return float64(float64(imageSeqLen)*m) + b
}

// EmpiricalMu returns the shift of FLUX.2 for a number of image tokens and steps. The constants are fits by its authors:
// one line for 10 steps, one for 200, between which the number of steps interpolates.
// Source: compute_empirical_mu (diffusers/pipelines/flux2/pipeline_flux2.py).
func EmpiricalMu(imageSeqLen, steps int) float64 {
	n := float64(imageSeqLen)
	at200 := float64(0.00016927*n) + 0.45666666
	if imageSeqLen > 4300 {
		return at200
	}
	at10 := float64(8.73809524e-05*n) + 1.89833333
	a := (at200 - at10) / 190
	b := at200 - float64(200*a)
	return float64(a*float64(steps)) + b
}

// LinearSigmas returns 1, …, 1/n in n equal steps: the noise levels that the FLUX pipelines pass to SetTimesteps.
func LinearSigmas(n int) []float64 { return linspace(1, 1/float64(n), n) }

// linspace is numpy.linspace(start, stop, n).
func linspace(start, stop float64, n int) []float64 {
	v := make([]float64, n)
	step := (stop - start) / float64(n-1)
	for i := range v {
		if i == 0 {
			v[i] = start
			continue
		}
		v[i] = float64(float64(i)*step) + start
	}
	if n > 1 {
		v[n-1] = stop
	}
	return v
}
