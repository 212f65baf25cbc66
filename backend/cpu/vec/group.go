package vec

import "math"

// Moments are the count, mean and sum of squared deviations of some values.
type Moments struct{ N, Mean, M2 float64 }

// Merge adds the values of o to m (Chan, Golub and LeVeque 1979). It isn't associative to the last bit: merge in a fixed
// order.
func (m *Moments) Merge(o Moments) {
	if o.N == 0 {
		return
	}
	n := m.N + o.N
	d := o.Mean - m.Mean
	m.M2 += o.M2 + d*d*m.N*o.N/n
	m.Mean += d * o.N / n
	m.N = n
}

// Rstd returns 1/√(variance+eps), the variance being the mean squared deviation.
func (m *Moments) Rstd(eps float64) float64 { return 1 / math.Sqrt(m.M2/m.N+eps) }

// groupRows is how many rows GroupMoments sums in float32 before it goes on in float64.
const groupRows = 256

// GroupMoments sets out (G) to the moments of the groups of C/G neighbouring channels over the rows of x (rows, C), as
// group normalisation of a channels-last image needs them; C is channels and a multiple of len(out). Scratch holds at
// least 3·C floats. For a large image call it on pieces of fixed size and merge the results in order.
func (f *Funcs) GroupMoments(out []Moments, x []float32, channels int, scratch []float32) {
	groupMoments(f.k.moments, func(dst, x []float32) { copy(dst, x) }, out, x, channels, scratch)
}

// GroupMomentsBF16 is GroupMoments of bfloat16 words.
func (f *Funcs) GroupMomentsBF16(out []Moments, x []uint16, channels int, scratch []float32) {
	groupMoments(f.k.momentsBF16, f.FromBF16, out, x, channels, scratch)
}

// groupMoments takes the sums of each channel from its first value on, so that little is lost where the mean is large, in
// one pass.
func groupMoments[T float32 | uint16](add func(sum, squares, c *float32, x0, x1, x2, x3 *T, n int), widen func(dst []float32, x []T), out []Moments, x []T, channels int, scratch []float32) {
	clear(out)
	per := channels / len(out)
	first, sum, squares := scratch[:channels], scratch[channels:2*channels], scratch[2*channels:3*channels]
	for len(x) >= channels {
		rows := min(len(x)/channels, groupRows)
		widen(first, x)
		clear(sum)
		clear(squares)
		row := func(r int) *T {
			if r >= rows {
				r = 0 // which adds nothing
			}
			return &x[r*channels]
		}
		for r := 0; r < rows; r += 4 {
			add(&sum[0], &squares[0], &first[0], row(r), row(r+1), row(r+2), row(r+3), channels)
		}
		n, all := float64(rows), float64(rows*per)
		for g := range out {
			mean, m2 := 0.0, 0.0
			for c := g * per; c < (g+1)*per; c++ {
				mean += float64(first[c]) + float64(sum[c])/n
			}
			mean /= float64(per)
			for c := g * per; c < (g+1)*per; c++ {
				// Σ(x-mean)², x being first+d: Σd² + 2·(first-mean)·Σd + n·(first-mean)²
				d := float64(first[c]) - mean
				m2 += float64(squares[c]) + d*(2*float64(sum[c])+d*n)
			}
			out[g].Merge(Moments{N: all, Mean: mean, M2: max(m2, 0)})
		}
		x = x[rows*channels:]
	}
}

// GroupScale turns the moments of each group into what [Funcs.Centred] applies to each of the C channels: the group's mean,
// and rstd·weight (C).
func GroupScale(mean, scale []float32, groups []Moments, weight []float32, eps float64) {
	per := len(scale) / len(groups)
	for g := range groups {
		m, rstd := float32(groups[g].Mean), groups[g].Rstd(eps)
		for c := g * per; c < (g+1)*per; c++ {
			mean[c], scale[c] = m, float32(rstd*float64(weight[c]))
		}
	}
}

// Centred sets each row of dst (rows, C) to (x-mean)·scale+offset, or to the silu of that: what group normalisation is when
// the moments are known. Mean, scale and offset have C elements. The mean comes off first: where it is large, x·scale+shift
// would lose digits.
func (f *Funcs) Centred(dst, x, mean, scale, offset []float32, silu bool) {
	k := f.k.centred
	if silu {
		k = f.k.centredSilu
	}
	centred(k, dst, x, mean, scale, offset)
}

// CentredBF16 is Centred of bfloat16 words, rounded, before the silu as well.
func (f *Funcs) CentredBF16(dst, x []uint16, mean, scale, offset []float32, silu bool) {
	k := f.k.centredBF16
	if silu {
		k = f.k.centredSiluBF16
	}
	centred(k, dst, x, mean, scale, offset)
}

func centred[T float32 | uint16](row func(dst, x *T, mean, scale, offset *float32, n int), dst, x []T, mean, scale, offset []float32) {
	c := len(mean)
	for i := 0; i+c <= len(dst); i += c {
		row(&dst[i], &x[i], &mean[0], &scale[:c][0], &offset[:c][0], c)
	}
}
