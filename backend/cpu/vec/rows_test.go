package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

func normals(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 99))
	xs := make([]float32, n)
	for i := range xs {
		xs[i] = float32(r.NormFloat64())
	}
	return xs
}

func TestReductions(t *testing.T) {
	for _, n := range lengths {
		x, y := normals(n, 1), normals(n, 2)
		var sum, abs, dot, sq, dev float64
		top := math.Inf(-1)
		for i, v := range x {
			a, b := float64(v), float64(y[i])
			sum, abs, dot, sq, dev = sum+a, abs+math.Abs(a), dot+a*b, sq+a*a, dev+(a-0.25)*(a-0.25)
			top = max(top, a)
		}
		for _, l := range isa.Available() {
			f := For(l)
			for _, c := range []struct {
				name      string
				got       float32
				portable  float32
				want, tol float64
			}{
				{"Sum", f.Sum(x), goFuncs.Sum(x), sum, 1e-6 * abs},
				{"Dot", f.Dot(x, y), goFuncs.Dot(x, y), dot, 1e-6 * (sq + 1)},
				{"SumSquares", f.SumSquares(x), goFuncs.SumSquares(x), sq, 1e-6 * sq},
				{"SumSquaresFrom", f.SumSquaresFrom(x, 0.25), goFuncs.SumSquaresFrom(x, 0.25), dev, 1e-6 * dev},
				{"MaxOf", f.MaxOf(x), goFuncs.MaxOf(x), top, 0},
			} {
				if d := math.Abs(float64(c.got) - c.want); d > c.tol {
					t.Errorf("%v %s of %d: %g, want %g", l, c.name, n, c.got, c.want)
				}
				if c.got != c.portable {
					t.Errorf("%v %s of %d: %g, portable %g", l, c.name, n, c.got, c.portable)
				}
			}
		}
	}
}

func TestMaxOfNaN(t *testing.T) {
	for _, l := range isa.Available() {
		f := For(l)
		for _, n := range []int{1, 15, 64, 100, 200} {
			for at := range n {
				x := normals(n, 3)
				x[at] = float32(math.NaN())
				if m := f.MaxOf(x); m == m {
					t.Fatalf("%v: NaN at %d of %d gives %g", l, at, n, m)
				}
			}
		}
	}
}

type rowCase struct {
	name string
	do   func(f *Funcs, dst, x, w, b []float32)
	want func(dst, x, w, b []float64)
	tol  float64
}

const eps = 1e-5

var rowCases = []rowCase{
	{"LayerNorm", func(f *Funcs, d, x, w, b []float32) { f.LayerNorm(d, x, w, b, eps) }, layerNorm64, 3e-6},
	{"LayerNorm plain", func(f *Funcs, d, x, w, b []float32) { f.LayerNorm(d, x, nil, nil, eps) },
		func(d, x, w, b []float64) { layerNorm64(d, x, nil, nil) }, 3e-6},
	{"LayerNorm weight", func(f *Funcs, d, x, w, b []float32) { f.LayerNorm(d, x, w, nil, eps) },
		func(d, x, w, b []float64) { layerNorm64(d, x, w, nil) }, 3e-6},
	{"LayerNorm bias", func(f *Funcs, d, x, w, b []float32) { f.LayerNorm(d, x, nil, b, eps) },
		func(d, x, w, b []float64) { layerNorm64(d, x, nil, b) }, 3e-6},
	{"RMSNorm", func(f *Funcs, d, x, w, b []float32) { f.RMSNorm(d, x, w, eps, tensor.F32) }, rmsNorm64, 3e-6},
	{"RMSNorm plain", func(f *Funcs, d, x, w, b []float32) { f.RMSNorm(d, x, nil, eps, tensor.F32) },
		func(d, x, w, b []float64) { rmsNorm64(d, x, nil, nil) }, 3e-6},
	{"RMSNorm bf16", func(f *Funcs, d, x, w, b []float32) { f.RMSNorm(d, x, w, eps, tensor.BF16) }, rmsNorm64, 2e-2},
	{"RMSNorm f16", func(f *Funcs, d, x, w, b []float32) { f.RMSNorm(d, x, w, eps, tensor.F16) }, rmsNorm64, 4e-3},
	{"Softmax", func(f *Funcs, d, x, w, b []float32) { f.Softmax(d, x) }, softmax64, 1e-6},
	{"Modulate", func(f *Funcs, d, x, w, b []float32) { f.Modulate(d, x, w, b, tensor.F32) },
		func(d, x, w, b []float64) {
			for i := range d {
				d[i] = x[i]*(1+w[i]) + b[i]
			}
		}, 3e-6},
	{"Modulate bf16", func(f *Funcs, d, x, w, b []float32) { f.Modulate(d, x, w, b, tensor.BF16) },
		func(d, x, w, b []float64) {
			for i := range d {
				d[i] = float64(tensor.RoundTo(tensor.BF16, float32(x[i])*tensor.RoundTo(tensor.BF16, 1+float32(w[i]))) + float32(b[i]))
			}
		}, 0},
	{"Modulate f16", func(f *Funcs, d, x, w, b []float32) { f.Modulate(d, x, w, b, tensor.F16) },
		func(d, x, w, b []float64) {
			for i := range d {
				d[i] = float64(tensor.RoundTo(tensor.F16, float32(x[i])*tensor.RoundTo(tensor.F16, 1+float32(w[i]))) + float32(b[i]))
			}
		}, 0},
	{"Rope", func(f *Funcs, d, x, w, b []float32) { f.Rope(d, x, w, b) },
		func(d, x, w, b []float64) {
			for i := 0; i+1 < len(d); i += 2 {
				d[i] = x[i]*w[i] - x[i+1]*b[i]
				d[i+1] = x[i+1]*w[i+1] + x[i]*b[i+1]
			}
		}, 2e-6},
	{"RopeHalf", func(f *Funcs, d, x, w, b []float32) { f.RopeHalf(d, x, w, b) },
		func(d, x, w, b []float64) {
			h := len(d) / 2
			for i := range h {
				d[i] = x[i]*w[i] - x[i+h]*b[i]
				d[i+h] = x[i+h]*w[i+h] + x[i]*b[i+h]
			}
		}, 2e-6},
}

func layerNorm64(d, x, w, b []float64) {
	mean, v := 0.0, 0.0
	for _, a := range x {
		mean += a / float64(len(x))
	}
	for _, a := range x {
		v += (a - mean) * (a - mean) / float64(len(x))
	}
	for i, a := range x {
		d[i] = (a - mean) / math.Sqrt(v+eps)
		if w != nil {
			d[i] *= w[i]
		}
		if b != nil {
			d[i] += b[i]
		}
	}
}

func rmsNorm64(d, x, w, _ []float64) {
	v := 0.0
	for _, a := range x {
		v += a * a / float64(len(x))
	}
	for i, a := range x {
		d[i] = a / math.Sqrt(v+eps)
		if w != nil {
			d[i] *= w[i]
		}
	}
}

func softmax64(d, x, _, _ []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, a := range x {
		top = max(top, a)
	}
	for i, a := range x {
		d[i] = math.Exp(a - top)
		sum += d[i]
	}
	for i := range d {
		d[i] /= sum
	}
}

func widen(x []float32) []float64 {
	d := make([]float64, len(x))
	ToFloat64(d, x)
	return d
}

func TestRows(t *testing.T) {
	for _, n := range append([]int{3072}, lengths...) {
		if n%2 == 1 {
			n++ // rope turns pairs
		}
		x, w, b := normals(n, 1), normals(n, 2), normals(n, 3)
		for i := range x {
			x[i] = x[i]*3 + 1
		}
		for _, c := range rowCases {
			want := make([]float64, n)
			c.want(want, widen(x), widen(w), widen(b))
			portable := make([]float32, n)
			c.do(&goFuncs, portable, x, w, b)
			for _, l := range isa.Available() {
				buf := make([]float32, n+3)
				got := buf[1 : 1+n]
				c.do(For(l), got, x, w, b)
				for i := range got {
					if d := math.Abs(float64(got[i]) - want[i]); !(d <= c.tol*max(1, math.Abs(want[i]))) {
						t.Fatalf("%v %s of %d: element %d is %g, want %g", l, c.name, n, i, got[i], want[i])
					}
				}
				if i := sameBits(got, portable); i >= 0 {
					t.Fatalf("%v %s of %d: element %d is %g, portable %g", l, c.name, n, i, got[i], portable[i])
				}
				if buf[0] != 0 || buf[1+n] != 0 {
					t.Fatalf("%v %s of %d wrote outside its destination", l, c.name, n)
				}
				copy(got, x)
				c.do(For(l), got, got, w, b)
				if i := sameBits(got, portable); i >= 0 {
					t.Fatalf("%v %s of %d in place: element %d is %g, want %g", l, c.name, n, i, got[i], portable[i])
				}
			}
		}
	}
}

// TestLayerNormFarFromZero fails if the variance is computed as E[x²]-E[x]².
func TestLayerNormFarFromZero(t *testing.T) {
	const n = 1024
	x := normals(n, 5)
	for i := range x {
		x[i] += 4000
	}
	want := make([]float64, n)
	layerNorm64(want, widen(x), nil, nil)
	for _, l := range isa.Available() {
		got := make([]float32, n)
		For(l).LayerNorm(got, x, nil, nil, eps)
		for i := range got {
			if math.Abs(float64(got[i])-want[i]) > 1e-3 {
				t.Fatalf("%v: element %d is %g, want %g", l, i, got[i], want[i])
			}
		}
	}
}

func TestSoftmaxSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for _, l := range isa.Available() {
		f := For(l)
		got := make([]float32, 4)
		f.Softmax(got, []float32{1000, 1000, -inf, -1000})
		if want := [4]float32{0.5, 0.5, 0, 0}; [4]float32(got) != want {
			t.Errorf("%v: large logits give %v, want %v", l, got, want)
		}
		for _, row := range [][]float32{{-inf, -inf, -inf, -inf}, {0, inf, 0, 0}, {0, nan, 0, 0}} {
			f.Softmax(got, row)
			for i, v := range got {
				if v == v {
					t.Errorf("%v: softmax%v[%d] = %g, want NaN", l, row, i, v)
				}
			}
		}
	}
}

func TestGroupNorm(t *testing.T) {
	for _, c := range []struct{ rows, channels, groups int }{{1, 8, 4}, {99, 8, 4}, {1000, 96, 32}, {129, 128, 32}, {64, 512, 32}} {
		x, w, b := normals(c.rows*c.channels, 1), normals(c.channels, 2), normals(c.channels, 3)
		for i := range x {
			x[i] = 0.1*x[i] + 30
		}
		per := c.channels / c.groups
		want := make([]float64, len(x))
		for g := range c.groups {
			var mean, v, n float64
			for i, a := range x {
				if i%c.channels/per == g {
					mean += float64(a)
					n++
				}
			}
			mean /= n
			for i, a := range x {
				if i%c.channels/per == g {
					v += (float64(a) - mean) * (float64(a) - mean) / n
				}
			}
			for i, a := range x {
				if ch := i % c.channels; ch/per == g {
					want[i] = (float64(a)-mean)/math.Sqrt(v+1e-6)*float64(w[ch]) + float64(b[ch])
				}
			}
		}
		for _, l := range isa.Available() {
			f := For(l)
			m := make([]Moments, c.groups)
			f.GroupMoments(m, x, c.channels, make([]float32, 3*c.channels))
			mean, scale, got := make([]float32, c.channels), make([]float32, c.channels), make([]float32, len(x))
			GroupScale(mean, scale, m, w, 1e-6)
			f.Centred(got, x, mean, scale, b, false)
			for i := range got {
				// The shift is some 300 times a standard deviation: 300·2⁻²⁴ is what float32 leaves.
				if math.Abs(float64(got[i])-want[i]) > 1e-4*max(1, math.Abs(want[i])) {
					t.Fatalf("%v %v: element %d is %g, want %g", l, c, i, got[i], want[i])
				}
			}
			// Pieces, merged in order, are the same statistics.
			var merged Moments
			for r := 0; r < c.rows; r += 50 {
				p := make([]Moments, c.groups)
				f.GroupMoments(p, x[r*c.channels:min(r+50, c.rows)*c.channels], c.channels, make([]float32, 3*c.channels))
				merged.Merge(p[0])
			}
			if d := math.Abs(merged.Mean - m[0].Mean); merged.N != m[0].N || d > 1e-6 || math.Abs(merged.Rstd(1e-6)/m[0].Rstd(1e-6)-1) > 1e-4 {
				t.Fatalf("%v %v: merged %+v, whole %+v", l, c, merged, m[0])
			}
		}
	}
}

// The kernels on bfloat16 words give what those on float32 give of the same values, rounded; silu is of the rounded value.
func TestGroupNormBF16(t *testing.T) {
	for _, channels := range []int{8, 20, 64, 256} {
		const rows, groups = 130, 4
		words, wide := make([]uint16, rows*channels), make([]float32, rows*channels)
		for i, v := range normals(len(words), 4) {
			words[i] = tensor.Float32ToBF16(3*v - 1)
			wide[i] = tensor.BF16ToFloat32(words[i])
		}
		w, b := normals(channels, 5), normals(channels, 6)
		var portable []uint16
		for _, l := range append([]isa.Level{isa.Portable}, isa.Available()...) {
			f := For(l)
			m, m16, scratch := make([]Moments, groups), make([]Moments, groups), make([]float32, 3*channels)
			f.GroupMoments(m, wide, channels, scratch)
			f.GroupMomentsBF16(m16, words, channels, scratch)
			if !slices.Equal(m, m16) {
				t.Fatalf("%v: moments of words are %v, of floats %v", l, m16, m)
			}
			mean, scale := make([]float32, channels), make([]float32, channels)
			GroupScale(mean, scale, m, w, 1e-6)
			got, want := make([]uint16, len(words)), make([]float32, len(words))
			f.CentredBF16(got, words, mean, scale, b, false)
			f.Centred(want, wide, mean, scale, b, false)
			f.RoundBF16(want, want)
			for i, v := range want {
				if tensor.BF16ToFloat32(got[i]) != v {
					t.Fatalf("%v, %d channels: element %d is %g, want %g", l, channels, i, tensor.BF16ToFloat32(got[i]), v)
				}
			}
			f.CentredBF16(got, words, mean, scale, b, true)
			f.Silu(want, want)
			f.RoundBF16(want, want)
			for i, v := range want {
				if tensor.BF16ToFloat32(got[i]) != v {
					t.Fatalf("%v, %d channels: silu %d is %g, want %g", l, channels, i, tensor.BF16ToFloat32(got[i]), v)
				}
			}
			f.Centred(want, wide, mean, scale, b, true)
			again := make([]float32, len(wide))
			f.Centred(again, wide, mean, scale, b, false)
			f.Silu(again, again)
			if i := sameBits(want, again); i >= 0 {
				t.Fatalf("%v, %d channels: silu in one pass gives %g, in two %g", l, channels, want[i], again[i])
			}
			if portable == nil {
				portable = got
			} else if !slices.Equal(got, portable) {
				t.Fatalf("%v, %d channels: other bits than portable", l, channels)
			}
		}
	}
}
