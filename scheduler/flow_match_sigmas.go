package scheduler

import "math"

// NumPy computes with float32 arrays in float32, Python numbers beside them being rounded first, and with float64
// arrays in float64. The formulas below are written once, in double precision, and round every result: for + - * / and
// single this gives exactly the float32 result.
type rounding func(float64) float64

func single(v float64) float64 { return float64(float32(v)) }

func double(v float64) float64 { return v }

// levels returns the noise levels before any shift, and the precision that NumPy would go on with: float32 for given
// sigmas or timesteps, float64 for the scheduler's own.
func (s *FlowMatchEuler) levels(p Schedule, steps int) ([]float64, rounding) {
	train := float64(s.config.NumTrainTimesteps)
	v := make([]float64, steps)
	switch {
	case p.Sigmas != nil:
		for i, x := range p.Sigmas {
			v[i] = single(x)
		}
		return v, single
	case p.Timesteps != nil:
		for i, x := range p.Timesteps {
			v[i] = single(single(x) / train)
		}
		return v, single
	}
	copy(v, linspace(s.sigmaMax*train, s.sigmaMin*train, steps))
	for i := range v {
		v[i] /= train
	}
	return v, double
}

// staticShift replaces s by shift*s / (1 + (shift-1)*s).
func staticShift(v []float64, shift float64, round rounding) {
	up, down := round(shift), round(shift-1)
	for i, s := range v {
		v[i] = round(round(up*s) / round(1+round(down*s)))
	}
}

// dynamicShift replaces s by m / (m + 1/s - 1), with m = mu for the linear and e^mu for the exponential type.
func dynamicShift(v []float64, m float64, round rounding) {
	m = round(m)
	for i, s := range v {
		v[i] = round(m / round(m+round(round(1/s)-1)))
	}
}

// stretchToTerminal scales the distances to 1 so that the last level becomes terminal.
func stretchToTerminal(v []float64, terminal float64, round rounding) {
	scale := round(round(1-v[len(v)-1]) / round(1-terminal))
	for i, s := range v {
		v[i] = round(1 - round(round(1-s)/scale))
	}
}

// respace returns the Karras, exponential or beta schedule between the ends of v, or v itself. It works in float64
// whatever the precision of v.
func (s *FlowMatchEuler) respace(v []float64) []float64 {
	c, n := &s.config, len(v)
	lo, hi := v[n-1], v[0]
	if c.SigmaMin != nil {
		lo = *c.SigmaMin
	}
	if c.SigmaMax != nil {
		hi = *c.SigmaMax
	}
	switch {
	case c.UseKarrasSigmas:
		return karrasSigmas(lo, hi, n)
	case c.UseExponentialSigmas:
		return exponentialSigmas(lo, hi, n)
	case c.UseBetaSigmas:
		return betaSigmas(lo, hi, n)
	}
	return v
}

// karrasSigmas spaces the rho-th roots evenly.
// Source: Karras et al. 2022, equation 5; rho = 7 as there.
func karrasSigmas(lo, hi float64, n int) []float64 {
	const rho = 7.0
	lo, hi = math.Pow(lo, 1/rho), math.Pow(hi, 1/rho)
	v := linspace(0, 1, n)
	for i, ramp := range v {
		v[i] = math.Pow(hi+float64(ramp*(lo-hi)), rho)
	}
	return v
}

// exponentialSigmas spaces the logarithms evenly.
func exponentialSigmas(lo, hi float64, n int) []float64 {
	v := linspace(math.Log(hi), math.Log(lo), n)
	for i, x := range v {
		v[i] = math.Exp(x)
	}
	return v
}

// betaSigmas spaces the levels by quantiles of the beta distribution.
// Source: Lee et al. 2024, "Beta Sampling is All You Need"; both parameters are 0.6 as there.
func betaSigmas(lo, hi float64, n int) []float64 {
	v := linspace(0, 1, n)
	for i, ramp := range v {
		v[i] = lo + float64(betaQuantile(1-ramp)*(hi-lo))
	}
	return v
}

// betaQuantile returns the x with I_x(0.6, 0.6) = p, the inverse of the regularised incomplete beta function.
func betaQuantile(p float64) float64 {
	switch {
	case p <= 0:
		return 0
	case p >= 1:
		return 1
	case p == 0.5:
		// SciPy's median is a unit in the last place high, and decides how a sigma half-way between two float32 rounds.
		return math.Nextafter(0.5, 1)
	case p > 0.5: // both parameters are the same; 1-p is exact here
		return 1 - betaQuantile(1-p)
	}
	const a = 0.6
	norm := math.Gamma(2*a) / (math.Gamma(a) * math.Gamma(a))
	// Newton's method on log I against log x, which is nearly a line of slope a: it starts from that line and doubles
	// its digits each time.
	x := math.Min(0.5, math.Pow(p*a/norm, 1/a))
	for range 50 {
		// I_x = norm x^a Σ (1-a)_n / (n! (a+n)) x^n: all terms are positive, and x <= 1/2 halves them.
		sum, term := 0.0, 1.0
		for n := 0.0; term > 1e-18; n++ {
			sum += term / (a + n)
			term *= x * (n + 1 - a) / (n + 1)
		}
		cdf := norm * math.Pow(x, a) * sum
		density := norm * math.Pow(x*(1-x), a-1)
		next := x * math.Exp(math.Log(p/cdf)*cdf/(x*density))
		if math.Abs(next-x) <= 2e-16*x {
			return next
		}
		x = math.Min(0.5, next)
	}
	return x
}
