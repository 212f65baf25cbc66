package cpu

import (
	"math"

	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/graph"
)

type (
	unaryFunc  = func(f *vec.Funcs, dst, x []float32)
	binaryFunc = func(f *vec.Funcs, dst, x, y []float32)
	scalarFunc = func(f *vec.Funcs, dst, x []float32, s float32)
)

var unaryFuncs = map[graph.Op]unaryFunc{
	graph.Neg: (*vec.Funcs).Neg, graph.Abs: (*vec.Funcs).Abs, graph.Exp: (*vec.Funcs).Exp, graph.Log: (*vec.Funcs).Log,
	graph.Sqrt: (*vec.Funcs).Sqrt, graph.Rsqrt: (*vec.Funcs).Rsqrt, graph.Tanh: (*vec.Funcs).Tanh, graph.Erf: (*vec.Funcs).Erf,
	graph.Logistic: (*vec.Funcs).Sigmoid, graph.Sin: (*vec.Funcs).Sin, graph.Cos: (*vec.Funcs).Cos, graph.Floor: (*vec.Funcs).Floor,
	graph.Ceil: (*vec.Funcs).Ceil, graph.Silu: (*vec.Funcs).Silu, graph.Sign: sign, graph.IsFinite: isFinite, graph.Not: not,
}

var binaryFuncs = map[graph.Op]binaryFunc{
	graph.Add: (*vec.Funcs).Add, graph.Sub: (*vec.Funcs).Sub, graph.Mul: (*vec.Funcs).Mul, graph.Div: (*vec.Funcs).Div,
	graph.Max: (*vec.Funcs).Max, graph.Min: (*vec.Funcs).Min, graph.Pow: (*vec.Funcs).Pow, graph.Rem: remainder,
	graph.And: (*vec.Funcs).Mul, graph.Or: (*vec.Funcs).Max, // bool is 0 and 1
}

// scalarFuncs are the operations whose right operand stands still, scalarLeftFuncs those whose left one does.
var (
	scalarFuncs = map[graph.Op]scalarFunc{
		graph.Add: (*vec.Funcs).AddScalar, graph.Sub: (*vec.Funcs).SubScalar, graph.Mul: (*vec.Funcs).MulScalar,
		graph.Div: (*vec.Funcs).DivScalar, graph.Max: (*vec.Funcs).MaxScalar, graph.Min: (*vec.Funcs).MinScalar, graph.Pow: (*vec.Funcs).PowScalar,
	}
	scalarLeftFuncs = map[graph.Op]scalarFunc{
		graph.Add: (*vec.Funcs).AddScalar, graph.Sub: (*vec.Funcs).ScalarSub, graph.Mul: (*vec.Funcs).MulScalar,
		graph.Div: (*vec.Funcs).ScalarDiv, graph.Max: (*vec.Funcs).MaxScalar, graph.Min: (*vec.Funcs).MinScalar, graph.Pow: (*vec.Funcs).ScalarPow,
	}
)

// exact lists the operations whose result on half values is a half value already.
var exact = map[graph.Op]bool{
	graph.Neg: true, graph.Abs: true, graph.Sign: true, graph.Floor: true, graph.Ceil: true, graph.Max: true, graph.Min: true,
}

func truth(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

func sign(_ *vec.Funcs, dst, x []float32) {
	for i, v := range x[:len(dst)] {
		switch {
		case v > 0:
			v = 1
		case v < 0:
			v = -1
		}
		dst[i] = v // zero keeps its sign, NaN stays
	}
}

func isFinite(_ *vec.Funcs, dst, x []float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = truth(math.Float32bits(v)&0x7f800000 != 0x7f800000)
	}
}

func not(_ *vec.Funcs, dst, x []float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = truth(v == 0)
	}
}

func isTrue(_ *vec.Funcs, dst, x []float32) {
	for i, v := range x[:len(dst)] {
		dst[i] = truth(v != 0)
	}
}

func spreadFirst(_ *vec.Funcs, dst, x []float32) { fill(dst, x[0]) }

func remainder(_ *vec.Funcs, dst, x, y []float32) {
	y = y[:len(dst)]
	for i, v := range x[:len(dst)] {
		dst[i] = float32(math.Mod(float64(v), float64(y[i])))
	}
}

// compares are the six comparisons, by direction.
var compares = [...]binaryFunc{
	graph.EQ: (*vec.Funcs).Equal, graph.NE: (*vec.Funcs).NotEqual, graph.LT: (*vec.Funcs).Less, graph.LE: (*vec.Funcs).LessEqual,
	graph.GT: (*vec.Funcs).Greater, graph.GE: (*vec.Funcs).GreaterEqual,
}

func fill(dst []float32, v float32) {
	for i := range dst {
		dst[i] = v
	}
}
