package vec

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
)

// sweep returns float32 values of every exponent and sign with several mantissas, the special values, and a dense set in
// the range where the functions bend.
func sweep() []float32 {
	inf := float32(math.Inf(1))
	xs := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 88.72283, 88.72284, -87.33655, -103.97, -103.98, -104, 89, 9.01, 0.927734375, 3.92, 4}
	r := rand.New(rand.NewPCG(1, 2))
	for e := range uint32(255) {
		for m := range uint32(24) {
			man := r.Uint32() & 0x7fffff
			switch m {
			case 0:
				man = 0
			case 1:
				man = 0x7fffff
			case 2:
				man = 0x400000
			}
			xs = append(xs, float(e<<23|man), float(1<<31|e<<23|man))
		}
	}
	for range 100_000 {
		xs = append(xs, float32(r.Float64()*24-12)) // no function of package math, which may differ between machines
	}
	for range 20_000 {
		xs = append(xs, float32(r.Float64()*220-110))
	}
	return xs
}

// ulps is the distance of got from want in units of the last place of a float32 near want.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) || got != got {
		if math.IsNaN(want) && got != got {
			return 0
		}
		return math.Inf(1)
	}
	w := float32(want)
	if math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0) {
		if w == got {
			return 0
		}
		if math.IsInf(float64(w), 0) && math.IsInf(want, 0) {
			return math.Inf(1)
		}
	}
	e := int(math.Float64bits(want)>>52&0x7ff) - 1023
	return math.Abs(float64(got)-want) / math.Float64frombits(uint64(max(e-23, -149)+1023)<<52)
}

type unaryCase struct {
	name string
	f    func(*Funcs) func(dst, x []float32)
	want func(x float64) float64
	ulps float64
	// abs is an error that is accepted whatever the result, as a function of x.
	abs func(x float64) float64
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func tiny(float64) float64 { return 1e-36 }

var unaries = []unaryCase{
	{"Neg", func(f *Funcs) func(d, x []float32) { return f.Neg }, func(x float64) float64 { return -x }, 0, nil},
	{"Abs", func(f *Funcs) func(d, x []float32) { return f.Abs }, math.Abs, 0, nil},
	{"Exp", func(f *Funcs) func(d, x []float32) { return f.Exp }, math.Exp, 1.02, nil},
	{"Log", func(f *Funcs) func(d, x []float32) { return f.Log }, math.Log, 0.501, nil},
	{"Sqrt", func(f *Funcs) func(d, x []float32) { return f.Sqrt }, math.Sqrt, 0.5, nil},
	{"Rsqrt", func(f *Funcs) func(d, x []float32) { return f.Rsqrt }, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.5, nil},
	{"Tanh", func(f *Funcs) func(d, x []float32) { return f.Tanh }, math.Tanh, 3, nil},
	{"Erf", func(f *Funcs) func(d, x []float32) { return f.Erf }, math.Erf, 2, nil},
	{"Sigmoid", func(f *Funcs) func(d, x []float32) { return f.Sigmoid }, logistic, 2.9, nil},
	{"Sin", func(f *Funcs) func(d, x []float32) { return f.Sin }, math.Sin, 0.501, nil},
	{"Cos", func(f *Funcs) func(d, x []float32) { return f.Cos }, math.Cos, 0.501, nil},
	{"Silu", func(f *Funcs) func(d, x []float32) { return f.Silu }, func(x float64) float64 {
		if math.IsInf(x, -1) {
			return math.NaN() // as PyTorch: -Inf/Inf
		}
		return x * logistic(x)
	}, 2.5, tiny},
	{"Gelu", func(f *Funcs) func(d, x []float32) { return f.Gelu }, func(x float64) float64 {
		return x * 0.5 * (1 + math.Erf(x/math.Sqrt2))
	}, 0, func(x float64) float64 { return 0x1p-23 * max(1, math.Abs(x)) }},
	{"GeluTanh", func(f *Funcs) func(d, x []float32) { return f.GeluTanh }, func(x float64) float64 {
		if math.IsInf(x, -1) {
			return math.NaN() // as PyTorch: -Inf·0
		}
		return x * logistic(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))
	}, 13.1, func(x float64) float64 {
		if x < -3 {
			return 0x1p-23
		}
		return 1e-36
	}},
	{"QuickGelu", func(f *Funcs) func(d, x []float32) { return f.QuickGelu }, func(x float64) float64 {
		if math.IsInf(x, -1) {
			return math.NaN()
		}
		return x * logistic(1.702*x)
	}, 0, func(x float64) float64 {
		return 1e-36 + math.Abs(x*logistic(1.702*x))*(0x1p-22+0x1p-23*math.Abs(x))
	}},
	{"Floor", func(f *Funcs) func(d, x []float32) { return f.Floor }, math.Floor, 0, nil},
	{"Ceil", func(f *Funcs) func(d, x []float32) { return f.Ceil }, math.Ceil, 0, nil},
}

func TestUnaryAgainstFloat64(t *testing.T) {
	xs := sweep()
	got := make([]float32, len(xs))
	for _, c := range unaries {
		f := For(isa.Detect())
		c.f(f)(got, xs)
		worst, at := 0.0, float32(0)
		for i, x := range xs {
			want := c.want(float64(x))
			if c.abs != nil && math.Abs(float64(got[i])-want) <= c.abs(float64(x)) {
				continue
			}
			if u := ulps(got[i], want); u > worst {
				worst, at = u, x
			}
		}
		t.Logf("%s: %.3f ulp at %g", c.name, worst, at)
		if worst > c.ulps {
			c.f(f)(got[:1], []float32{at})
			t.Errorf("%s(%g) = %g, want %g: %.3g ulp, above %g", c.name, at, got[0], c.want(float64(at)), worst, c.ulps)
		}
	}
}

func sameBits(a, b []float32) int {
	for i := range a {
		if bits(a[i]) != bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
			return i
		}
	}
	return -1
}

// otherLevels calls fn for every level but the portable one.
func otherLevels(t *testing.T, fn func(t *testing.T, f *Funcs)) {
	for _, l := range isa.Available() {
		f := For(l)
		if f.Level() == isa.Portable {
			continue
		}
		t.Run(l.String(), func(t *testing.T) { fn(t, f) })
	}
}

func TestUnarySameBitsOnEveryLevel(t *testing.T) {
	xs := sweep()
	want, got := make([]float32, len(xs)), make([]float32, len(xs))
	cases := append([]unaryCase{
		{name: "RoundBF16", f: func(f *Funcs) func(d, x []float32) { return f.RoundBF16 }},
		{name: "RoundF16", f: func(f *Funcs) func(d, x []float32) { return f.RoundF16 }},
	}, unaries...)
	for _, c := range cases {
		c.f(&goFuncs)(want, xs)
		otherLevels(t, func(t *testing.T, f *Funcs) {
			c.f(f)(got, xs)
			if i := sameBits(want, got); i >= 0 {
				t.Errorf("%s(%g [%#x]) = %g, portable %g", c.name, xs[i], bits(xs[i]), got[i], want[i])
			}
		})
	}
}

type manyCase struct {
	name string
	do   func(f *Funcs, dst, x, y, z []float32)
	want func(x, y, z float32) float32
}

const testScalar = float32(1.37)

func nanOr(x, y float32, pick bool) float32 {
	switch {
	case x != x:
		return x
	case y != y:
		return y
	case pick:
		return x
	}
	return y
}

func truth(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

var manies = []manyCase{
	{"Add", func(f *Funcs, d, x, y, z []float32) { f.Add(d, x, y) }, func(x, y, z float32) float32 { return x + y }},
	{"Sub", func(f *Funcs, d, x, y, z []float32) { f.Sub(d, x, y) }, func(x, y, z float32) float32 { return x - y }},
	{"Mul", func(f *Funcs, d, x, y, z []float32) { f.Mul(d, x, y) }, func(x, y, z float32) float32 { return x * y }},
	{"Div", func(f *Funcs, d, x, y, z []float32) { f.Div(d, x, y) }, func(x, y, z float32) float32 { return x / y }},
	{"Max", func(f *Funcs, d, x, y, z []float32) { f.Max(d, x, y) }, func(x, y, z float32) float32 { return nanOr(x, y, x > y) }},
	{"Min", func(f *Funcs, d, x, y, z []float32) { f.Min(d, x, y) }, func(x, y, z float32) float32 { return nanOr(x, y, x < y) }},
	{"Equal", func(f *Funcs, d, x, y, z []float32) { f.Equal(d, x, y) }, func(x, y, z float32) float32 { return truth(x == y) }},
	{"NotEqual", func(f *Funcs, d, x, y, z []float32) { f.NotEqual(d, x, y) }, func(x, y, z float32) float32 { return truth(x != y) }},
	{"Less", func(f *Funcs, d, x, y, z []float32) { f.Less(d, x, y) }, func(x, y, z float32) float32 { return truth(x < y) }},
	{"LessEqual", func(f *Funcs, d, x, y, z []float32) { f.LessEqual(d, x, y) }, func(x, y, z float32) float32 { return truth(x <= y) }},
	{"Greater", func(f *Funcs, d, x, y, z []float32) { f.Greater(d, x, y) }, func(x, y, z float32) float32 { return truth(x > y) }},
	{"GreaterEqual", func(f *Funcs, d, x, y, z []float32) { f.GreaterEqual(d, x, y) }, func(x, y, z float32) float32 { return truth(x >= y) }},
	{"Select", func(f *Funcs, d, x, y, z []float32) { f.Select(d, x, y, z) }, func(x, y, z float32) float32 {
		if x != 0 {
			return y
		}
		return z
	}},
	{"Pow", func(f *Funcs, d, x, y, z []float32) { f.Pow(d, x, y) }, func(x, y, z float32) float32 { return float32(math.Pow(float64(x), float64(y))) }},
	{"MulAdd", func(f *Funcs, d, x, y, z []float32) { f.MulAdd(d, x, y, z) }, func(x, y, z float32) float32 { return float32(x*y) + z }},
	{"FMA", func(f *Funcs, d, x, y, z []float32) { f.FMA(d, x, y, z) }, fma},
	{"AddScalar", func(f *Funcs, d, x, y, z []float32) { f.AddScalar(d, x, testScalar) }, func(x, y, z float32) float32 { return x + testScalar }},
	{"SubScalar", func(f *Funcs, d, x, y, z []float32) { f.SubScalar(d, x, testScalar) }, func(x, y, z float32) float32 { return x - testScalar }},
	{"MulScalar", func(f *Funcs, d, x, y, z []float32) { f.MulScalar(d, x, testScalar) }, func(x, y, z float32) float32 { return x * testScalar }},
	{"DivScalar", func(f *Funcs, d, x, y, z []float32) { f.DivScalar(d, x, testScalar) }, func(x, y, z float32) float32 { return x / testScalar }},
	{"ScalarSub", func(f *Funcs, d, x, y, z []float32) { f.ScalarSub(d, x, testScalar) }, func(x, y, z float32) float32 { return testScalar - x }},
	{"ScalarDiv", func(f *Funcs, d, x, y, z []float32) { f.ScalarDiv(d, x, testScalar) }, func(x, y, z float32) float32 { return testScalar / x }},
	{"MaxScalar", func(f *Funcs, d, x, y, z []float32) { f.MaxScalar(d, x, testScalar) }, func(x, y, z float32) float32 { return nanOr(x, testScalar, x > testScalar) }},
	{"MinScalar", func(f *Funcs, d, x, y, z []float32) { f.MinScalar(d, x, testScalar) }, func(x, y, z float32) float32 { return nanOr(x, testScalar, x < testScalar) }},
	{"PowScalar", func(f *Funcs, d, x, y, z []float32) { f.PowScalar(d, x, 3) }, func(x, y, z float32) float32 { return float32(math.Pow(float64(x), 3)) }},
	{"ScalarPow", func(f *Funcs, d, x, y, z []float32) { f.ScalarPow(d, x, 3) }, func(x, y, z float32) float32 { return float32(math.Pow(3, float64(x))) }},
}

// mixed returns n values: mostly ordinary, some special.
func mixed(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	inf := float32(math.Inf(1))
	special := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), 1e-40, -1e-44, 3e38, 1}
	xs := make([]float32, n)
	for i := range xs {
		if r.IntN(4) == 0 {
			xs[i] = special[r.IntN(len(special))]
		} else {
			xs[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(40)-20))
		}
	}
	return xs
}

func TestManyOperands(t *testing.T) {
	const n = 5003
	x, y, z := mixed(n, 1), mixed(n, 2), mixed(n, 3)
	got := make([]float32, n)
	for _, l := range isa.Available() {
		for _, c := range manies {
			c.do(For(l), got, x, y, z)
			for i := range got {
				if w := c.want(x[i], y[i], z[i]); got[i] != w && (got[i] == got[i] || w == w) {
					t.Errorf("%v %s(%g, %g, %g) = %g, want %g", l, c.name, x[i], y[i], z[i], got[i], w)
					break
				}
			}
		}
	}
}

var lengths = []int{0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 77, 127, 128, 129, 191, 333, 1000}

// TestEdges runs every elementwise function at all lengths and an odd alignment, in place and not, and looks at the
// elements around the result.
func TestEdges(t *testing.T) {
	const guard = float32(-7.25)
	for _, l := range isa.Available() {
		f := For(l)
		var cases []manyCase
		cases = append(cases, manies...)
		for _, u := range unaries {
			cases = append(cases, manyCase{name: u.name, do: func(f *Funcs, d, x, y, z []float32) { u.f(f)(d, x) }})
		}
		cases = append(cases,
			manyCase{name: "RoundBF16", do: func(f *Funcs, d, x, y, z []float32) { f.RoundBF16(d, x) }},
			manyCase{name: "RoundF16", do: func(f *Funcs, d, x, y, z []float32) { f.RoundF16(d, x) }})
		for _, c := range cases {
			for _, n := range lengths {
				for off := range 3 {
					x, y, z := mixed(n+off, 4)[off:], mixed(n+off, 5)[off:], mixed(n+off, 6)[off:]
					want := make([]float32, n)
					c.do(&goFuncs, want, x, y, z)
					buf := make([]float32, n+off+20)
					for i := range buf {
						buf[i] = guard
					}
					dst := buf[off+1 : off+1+n]
					c.do(f, dst, x, y, z)
					if i := sameBits(want, dst); i >= 0 {
						t.Fatalf("%v %s length %d: element %d is %g, want %g", l, c.name, n, i, dst[i], want[i])
					}
					for i, v := range buf {
						if (i <= off || i > off+n) && v != guard {
							t.Fatalf("%v %s length %d wrote outside its destination", l, c.name, n)
						}
					}
					copy(dst, x)
					c.do(f, dst, dst, y, z)
					if i := sameBits(want, dst); i >= 0 {
						t.Fatalf("%v %s length %d in place: element %d is %g, want %g", l, c.name, n, i, dst[i], want[i])
					}
				}
			}
		}
	}
}

func TestShortSourcePanics(t *testing.T) {
	for _, l := range isa.Available() {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: a source shorter than the destination must panic", l)
				}
			}()
			For(l).Add(make([]float32, 4), make([]float32, 4), make([]float32, 3))
		}()
	}
}

// TestFMA compares the portable fused multiply-add with exact big arithmetic where float64 rounds twice.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	otherLevels(t, func(t *testing.T, f *Funcs) {
		const n = 1 << 16
		x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range x {
			// Products of few bits next to sums at every distance make ties common.
			x[i] = float32(math.Ldexp(float64(r.IntN(1<<13)-1<<12), r.IntN(60)-80))
			y[i] = float32(math.Ldexp(float64(r.IntN(1<<13)-1<<12), r.IntN(60)-80))
			z[i] = float32(math.Ldexp(float64(r.IntN(1<<24)-1<<23), r.IntN(120)-172))
		}
		want, got := make([]float32, n), make([]float32, n)
		goFuncs.FMA(want, x, y, z)
		f.FMA(got, x, y, z)
		if i := sameBits(want, got); i >= 0 {
			t.Errorf("fma(%g, %g, %g): portable %g, processor %g", x[i], y[i], z[i], want[i], got[i])
		}
	})
}

func ExampleFuncs_Exp() {
	f := For(isa.Detect())
	x := []float32{0, 1, -1}
	f.Exp(x, x)
	fmt.Println(x)
	// Output: [1 2.7182817 0.36787945]
}

// TestBitsAreFixed keeps the functions from changing unnoticed, and machines from differing: the sum is over the results
// on the whole sweep.
func TestBitsAreFixed(t *testing.T) {
	want := map[string]uint64{
		"Erf":       0x84ffa678ec1fc44b,
		"Exp":       0x7dae448c15217dc5,
		"Gelu":      0x8c1fd8191061b460,
		"GeluTanh":  0x1927f35ca8f635ce,
		"QuickGelu": 0x5d6471f3dae2edf0,
		"Rsqrt":     0x21c3d2bfd4eb98f6,
		"Sigmoid":   0x2595aeacdd43a4a,
		"Silu":      0x4ad2aad31c68162a,
		"Tanh":      0x5a00c91ffdeec093,
	}
	xs := sweep()
	got := make([]float32, len(xs))
	for _, c := range unaries {
		w, ok := want[c.name]
		if !ok {
			continue
		}
		for _, l := range isa.Available() {
			c.f(For(l))(got, xs)
			h := fnv.New64a()
			for _, v := range got {
				u := bits(v)
				if v != v {
					u = 0x7fc00000
				}
				h.Write([]byte{byte(u), byte(u >> 8), byte(u >> 16), byte(u >> 24)})
			}
			if h.Sum64() != w {
				t.Errorf("%v %s: sum %#x, want %#x", l, c.name, h.Sum64(), w)
			}
		}
	}
}
