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
const groupRows = 64

// GroupMoments sets out (G) to the moments of the groups of C/G neighbouring channels over the rows of x (rows, C), as
// group normalisation of a channels-last image needs them; C is channels and a multiple of len(out). Scratch holds at
// least 4·C floats. For a large image call it on pieces of fixed size and merge the results in order.
func (f *Funcs) GroupMoments(out []Moments, x []float32, channels int, scratch []float32) {
	clear(out)
	per := channels / len(out)
	row := func(i int) []float32 { return scratch[i*channels : (i+1)*channels] }
	mean, acc, dev, sum := row(0), row(1), row(2), row(3)
	for len(x) >= channels {
		rows := min(len(x)/channels, groupRows)
		block := x[:rows*channels]
		x = x[rows*channels:]
		clear(acc)
		for r := range rows {
			f.Add(acc, acc, block[r*channels:(r+1)*channels])
		}
		for g := range out {
			m := 0.0
			for _, v := range acc[g*per : (g+1)*per] {
				m += float64(v)
			}
			m /= float64(rows * per)
			for c := g * per; c < (g+1)*per; c++ {
				mean[c] = float32(m)
			}
		}
		// Deviations are from the rounded mean; their sum tells what that leaves.
		clear(acc)
		clear(sum)
		for r := range rows {
			f.Sub(dev, block[r*channels:(r+1)*channels], mean)
			f.Add(sum, sum, dev)
			f.FMA(acc, dev, dev, acc)
		}
		n := float64(rows * per)
		for g := range out {
			d, m2 := 0.0, 0.0
			for c := g * per; c < (g+1)*per; c++ {
				d += float64(sum[c])
				m2 += float64(acc[c])
			}
			out[g].Merge(Moments{N: n, Mean: float64(mean[g*per]) + d/n, M2: m2 - d*d/n})
		}
	}
}

// GroupScaleShift turns the moments of each group into what [Funcs.ScaleShift] applies to each of the C channels:
// scale = rstd·weight, shift = bias - mean·scale. Weight and bias (C) may be nil.
func GroupScaleShift(scale, shift []float32, groups []Moments, weight, bias []float32, eps float64) {
	per := len(scale) / len(groups)
	for c := range scale {
		m := &groups[c/per]
		s := m.Rstd(eps)
		if weight != nil {
			s *= float64(weight[c])
		}
		b := -m.Mean * s
		if bias != nil {
			b += float64(bias[c])
		}
		scale[c], shift[c] = float32(s), float32(b)
	}
}

// ScaleShift sets each row of dst (rows, C) to x·scale+shift, rounded once; scale and shift have C elements.
func (f *Funcs) ScaleShift(dst, x, scale, shift []float32) {
	c := len(scale)
	for i := 0; i+c <= len(dst); i += c {
		f.FMA(dst[i:i+c], x[i:i+c], scale, shift)
	}
}
