package rng

import "math"

// PyTorch takes log, sin and cos of doubles from the C library, whose results are correctly rounded but for a few in
// a thousand. Here they are computed to about 100 bits and rounded once.

// dd is an unevaluated sum of two doubles, |lo| at most half a unit in the last place of hi.
// Source: Dekker 1971; Hida, Li and Bailey 2001.
type dd struct{ hi, lo float64 }

func twoSum(a, b float64) dd {
	s := a + b
	t := s - a
	return dd{s, (a - (s - t)) + (b - t)}
}

func twoProd(a, b float64) dd {
	p := float64(a * b)
	return dd{p, math.FMA(a, b, -p)}
}

func (a dd) add(b dd) dd {
	s := twoSum(a.hi, b.hi)
	t := twoSum(a.lo, b.lo)
	s = twoSum(s.hi, s.lo+t.hi)
	return twoSum(s.hi, s.lo+t.lo)
}

func (a dd) mul(b dd) dd {
	p := twoProd(a.hi, b.hi)
	return twoSum(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

// over divides by a double.
func (a dd) over(b dd) dd {
	q1 := a.hi / b.hi
	r := a.add(b.mul(dd{-q1, 0}))
	q2 := r.hi / b.hi
	r = r.add(b.mul(dd{-q2, 0}))
	return twoSum(q1, q2).add(dd{r.hi / b.hi, 0})
}

var (
	ln2    = dd{6.931471805599452862e-01, 2.319046813846299558e-17}
	halfPi = [3]float64{1.570796326794896558e+00, 6.123233995736766036e-17, -1.497384904859169777e-33}

	reciprocal, inverseFactorial = seriesCoefficients()
)

// seriesCoefficients returns 1/k and 1/k!.
func seriesCoefficients() (reciprocal, inverseFactorial [46]dd) {
	one := dd{1, 0}
	inverseFactorial[0] = one
	for k := 1; k < len(reciprocal); k++ {
		n := dd{float64(k), 0}
		reciprocal[k] = one.over(n)
		inverseFactorial[k] = inverseFactorial[k-1].over(n)
	}
	return reciprocal, inverseFactorial
}

// ln is the natural logarithm of 0 < x <= 1, correctly rounded.
func ln(x float64) float64 {
	if x == 1 {
		return 0
	}
	m, e := math.Frexp(x) // m in [1/2, 1)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	// ln m = 2 artanh s, s = (m-1)/(m+1), |s| <= 0.172: the series gains 5 bits a term.
	s := dd{m - 1, 0}.over(twoSum(m, 1))
	z := s.mul(s)
	sum := reciprocal[45]
	for k := 43; k >= 1; k -= 2 {
		sum = sum.mul(z).add(reciprocal[k])
	}
	sum = sum.mul(s)
	sum = dd{2 * sum.hi, 2 * sum.lo}.add(ln2.mul(dd{float64(e), 0}))
	return sum.hi + sum.lo
}

// sincos is the sine and cosine of 0 <= x <= 2π, correctly rounded.
func sincos(x float64) (sin, cos float64) {
	k := math.Round(x / halfPi[0])
	r := dd{x, 0}
	for _, p := range halfPi {
		r = r.add(twoProd(-k, p))
	}
	z := r.mul(r)
	z = dd{-z.hi, -z.lo}
	// Taylor's series for |r| <= π/4: the 28th term is below 1e-32.
	c, s := inverseFactorial[28], inverseFactorial[29]
	for n := 26; n >= 0; n -= 2 {
		c = c.mul(z).add(inverseFactorial[n])
		s = s.mul(z).add(inverseFactorial[n+1])
	}
	s = s.mul(r)
	switch int(k) & 3 {
	case 1:
		return c.hi, -s.hi
	case 2:
		return -s.hi, -c.hi
	case 3:
		return -c.hi, s.hi
	}
	return s.hi, c.hi
}
