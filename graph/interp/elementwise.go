package interp

import (
	"math"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

func unary(n *graph.Node, x *tensor.Array) *tensor.Array {
	v := load(x)
	if n.Op == graph.IsFinite || n.Op == graph.Not {
		out := make([]int64, x.Shape.Size())
		for k := range out {
			if n.Op == graph.Not && v.i[k] == 0 || n.Op == graph.IsFinite && !math.IsNaN(v.f[k]) && !math.IsInf(v.f[k], 0) {
				out[k] = 1
			}
		}
		return values{i: out}.store(tensor.Bool, n.Shape)
	}
	out := zeros(x.DType, x.Shape.Size())
	for k, a := range v.f {
		out.f[k] = unaryFloat(n.Op, a)
	}
	for k, a := range v.i {
		out.i[k] = unaryInt(n.Op, a)
	}
	return out.store(n.DType, n.Shape)
}

func unaryFloat(op graph.Op, a float64) float64 {
	switch op {
	case graph.Neg:
		return -a
	case graph.Abs:
		return math.Abs(a)
	case graph.Sign:
		switch {
		case a > 0:
			return 1
		case a < 0:
			return -1
		}
		return a // zero keeps its sign, NaN stays
	case graph.Exp:
		return math.Exp(a)
	case graph.Log:
		return math.Log(a)
	case graph.Sqrt:
		return math.Sqrt(a)
	case graph.Rsqrt:
		return 1 / math.Sqrt(a)
	case graph.Tanh:
		return math.Tanh(a)
	case graph.Erf:
		return math.Erf(a)
	case graph.Logistic:
		return 1 / (1 + math.Exp(-a))
	case graph.Sin:
		return math.Sin(a)
	case graph.Cos:
		return math.Cos(a)
	case graph.Floor:
		return math.Floor(a)
	case graph.Ceil:
		return math.Ceil(a)
	}
	panic("interp: " + op.String() + " of a float")
}

func unaryInt(op graph.Op, a int64) int64 {
	switch {
	case op == graph.Neg, op == graph.Abs && a < 0:
		return -a
	case op == graph.Abs:
		return a
	case op == graph.Sign && a > 0:
		return 1
	case op == graph.Sign && a < 0:
		return -1
	case op == graph.Sign:
		return 0
	}
	panic("interp: " + op.String() + " of an integer")
}

func binary(n *graph.Node, in []*tensor.Array) *tensor.Array {
	l, r := load(in[0]), load(in[1])
	out := zeros(n.DType, n.Shape.Size())
	walk(n.Shape, func(k int, at []int) {
		if n.DType.IsFloat() {
			out.f[k] = binaryFloat(n.Op, l.f[at[0]], r.f[at[1]])
		} else {
			out.i[k] = binaryInt(n.Op, n.DType, l.i[at[0]], r.i[at[1]])
		}
	}, spread(in[0].Shape, n.Shape), spread(in[1].Shape, n.Shape))
	return out.store(n.DType, n.Shape)
}

func binaryFloat(op graph.Op, a, b float64) float64 {
	switch op {
	case graph.Add:
		return a + b
	case graph.Sub:
		return a - b
	case graph.Mul:
		return a * b
	case graph.Div:
		return a / b
	case graph.Max:
		return max(a, b)
	case graph.Min:
		return min(a, b)
	case graph.Pow:
		return math.Pow(a, b)
	case graph.Rem:
		return math.Mod(a, b)
	}
	panic("interp: " + op.String() + " of floats")
}

func binaryInt(op graph.Op, d tensor.DType, a, b int64) int64 {
	switch op {
	case graph.Add:
		return a + b
	case graph.Sub:
		return a - b
	case graph.Mul:
		return a * b
	case graph.Div:
		if b == 0 {
			return -1
		}
		return a / b
	case graph.Rem:
		if b == 0 {
			return a
		}
		return a % b
	case graph.Max:
		return max(a, b)
	case graph.Min:
		return min(a, b)
	case graph.Pow:
		return powInt(a, b)
	case graph.And:
		return a & b
	case graph.Or:
		return a | b
	}
	panic("interp: " + op.String() + " of integers")
}

// powInt wraps; a negative exponent gives 1/a^|b| truncated: zero unless a is 1 or -1 (and, as in XLA, for a = 0).
func powInt(a, b int64) int64 {
	if b < 0 {
		switch {
		case a == 1, a == -1 && b%2 == 0:
			return 1
		case a == -1:
			return -1
		}
		return 0
	}
	out := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			out *= a
		}
		a *= a
	}
	return out
}

func compare(n *graph.Node, in []*tensor.Array) *tensor.Array {
	l, r := load(in[0]), load(in[1])
	dir := n.Attr.(graph.CompareAttr).Direction
	out := make([]int64, n.Shape.Size())
	walk(n.Shape, func(k int, at []int) {
		var less, equal, greater bool // none of them for NaN
		if l.f != nil {
			a, b := l.f[at[0]], r.f[at[1]]
			less, equal, greater = a < b, a == b, a > b
		} else {
			a, b := l.i[at[0]], r.i[at[1]]
			less, equal, greater = a < b, a == b, a > b
		}
		var is bool
		switch dir {
		case graph.EQ:
			is = equal
		case graph.NE:
			is = !equal
		case graph.LT:
			is = less
		case graph.LE:
			is = less || equal
		case graph.GT:
			is = greater
		case graph.GE:
			is = greater || equal
		}
		if is {
			out[k] = 1
		}
	}, spread(in[0].Shape, n.Shape), spread(in[1].Shape, n.Shape))
	return values{i: out}.store(tensor.Bool, n.Shape)
}

func selectValues(n *graph.Node, in []*tensor.Array) *tensor.Array {
	p := load(in[0]).i
	out := tensor.New(n.DType, n.Shape...)
	size := n.DType.Size()
	walk(n.Shape, func(k int, at []int) {
		from, i := in[1].Data, at[1]
		if p[at[0]] == 0 {
			from, i = in[2].Data, at[2]
		}
		copy(out.Data[k*size:(k+1)*size], from[i*size:])
	}, spread(in[0].Shape, n.Shape), spread(in[1].Shape, n.Shape), spread(in[2].Shape, n.Shape))
	return out
}
