package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// edges are the extents at which kernels change their path.
var edges = []int{0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129}

var (
	floats = []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64}
	ints   = []tensor.DType{tensor.I32, tensor.I64, tensor.U8, tensor.I8}
)

func join(ds ...[]tensor.DType) []tensor.DType {
	var all []tensor.DType
	for _, d := range ds {
		all = append(all, d...)
	}
	return all
}

// maker makes reproducible arrays.
type maker struct{ r *rand.Rand }

func newMaker(seed uint64) *maker { return &maker{rand.New(rand.NewPCG(seed, 17))} }

func must(a *tensor.Array, err error) *tensor.Array {
	if err != nil {
		panic(err)
	}
	return a
}

// between returns uniform values in [lo, hi): for integers the whole numbers in it.
func (m *maker) between(d tensor.DType, lo, hi float64, shape ...int) *tensor.Array {
	n := tensor.Shape(shape).Size()
	if !d.IsFloat() {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(math.Floor(lo + (hi-lo)*m.r.Float64()))
		}
		return must(tensor.FromInt64(v, shape...).Convert(d))
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = lo + (hi-lo)*m.r.Float64()
	}
	return must(tensor.FromFloat64(v, shape...).Convert(d))
}

// normal returns values like a network's: normal for floats, small whole numbers for integers, coin throws for bool.
func (m *maker) normal(d tensor.DType, shape ...int) *tensor.Array {
	switch {
	case d == tensor.Bool:
		return m.between(d, 0, 2, shape...)
	case d == tensor.U8:
		return m.between(d, 0, 12, shape...)
	case !d.IsFloat():
		return m.between(d, -6, 7, shape...)
	}
	v := make([]float64, tensor.Shape(shape).Size())
	for i := range v {
		v[i] = m.r.NormFloat64()
	}
	return must(tensor.FromFloat64(v, shape...).Convert(d))
}

// special are the values at which floating-point code goes wrong.
func special(d tensor.DType) *tensor.Array {
	v := []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1e-3, -1e-3, 2, -2, 3.25, 10, -10, 30, -30, 80, -80, 100, -100, 1000, -1000, 60000, -60000,
		math.Inf(1), math.Inf(-1), math.NaN(), 0.999999, 1.000001, 6.5e4, 1.5, 2.5, -1.5, -2.5,
	}
	return must(tensor.FromFloat64(v, len(v)).Convert(d))
}

// tolerance is how close a result must be.
type tolerance int

const (
	bits  tolerance = iota // no difference: movement, integers, comparisons
	ieee                   // correctly rounded where the hardware does so, else like close
	close                  // functions: a few units in the last place
	sums                   // sums of products: against the array's magnitude
	deep                   // several of those after each other, each rounded
)

var relative = map[tensor.DType]float64{tensor.F32: 4e-6, tensor.BF16: 1.0 / 120, tensor.F16: 1.0 / 900, tensor.F64: 1e-12}

func (tol tolerance) compare(got, want *tensor.Array) error {
	g, w := graph.Type{DType: got.DType, Shape: got.Shape}, graph.Type{DType: want.DType, Shape: want.Shape}
	if !g.Equal(w) {
		return fmt.Errorf("is %s, expected %s", g, w)
	}
	if !want.DType.IsFloat() {
		x, y := got.Int64s(), want.Int64s()
		for i := range y {
			if x[i] != y[i] {
				return fmt.Errorf("element %d of %s is %d, expected %d", i, w, x[i], y[i])
			}
		}
		return nil
	}
	x, y := got.Float64s(), want.Float64s()
	scale := 0.02
	rel := relative[want.DType]
	if tol == sums || tol == deep {
		scale = magnitude(y)
		if want.DType == tensor.F32 {
			rel = 2e-5
		} else if tol == deep {
			rel *= 4
		}
	}
	worst, at := 0.0, -1
	for i := range y {
		var excess float64
		switch {
		case math.IsNaN(x[i]) && math.IsNaN(y[i]):
			continue
		case x[i] == y[i]:
			if tol != bits || math.Signbit(x[i]) == math.Signbit(y[i]) {
				continue
			}
			excess = 2
		case tol == bits || math.IsNaN(x[i]) || math.IsNaN(y[i]) || math.IsInf(y[i], 0):
			excess = math.Inf(1)
		default:
			excess = math.Abs(x[i]-y[i]) / (rel * (math.Abs(y[i]) + scale))
		}
		if excess > 1 && (at < 0 || excess > worst) {
			worst, at = excess, i
		}
	}
	if at >= 0 {
		return fmt.Errorf("element %d of %s is %.9g, expected %.9g (%.3g times the tolerance)", at, w, x[at], y[at], worst)
	}
	return nil
}

// magnitude is the mean absolute value of the finite elements.
func magnitude(v []float64) float64 {
	s, n := 0.0, 0
	for _, x := range v {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			s += math.Abs(x)
			n++
		}
	}
	return s / float64(max(n, 1))
}
