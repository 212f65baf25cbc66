package stablehlo

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// node writes one operation of a graph.
func (w *Writer) node(n *graph.Node, in []Value) (Value, error) {
	switch {
	case n.Op.IsComposite():
		return w.options.Kernel(n)(w, n, in)
	case n.Op == graph.Convert:
		return w.convert(in[0], n.DType), nil
	case n.Op.IsUnary():
		return w.unary(n, in[0])
	case n.Op == graph.Compare:
		return w.Compare(n.Attr.(graph.CompareAttr).Direction.String(), w.Broadcast(in[0], n.Shape), w.Broadcast(in[1], n.Shape)), nil
	case n.Op.IsBinary():
		return w.binary(n, in)
	}
	switch n.Op {
	case graph.Constant:
		return w.Constant(n.Attr.(graph.ConstantAttr).Value), nil
	case graph.Select:
		return w.Select(w.Broadcast(in[0], n.Shape), w.Broadcast(in[1], n.Shape), w.Broadcast(in[2], n.Shape)), nil
	case graph.Reduce:
		return w.reduce(n, in[0]), nil
	case graph.DotGeneral:
		return w.dotGeneral(n, in[0], in[1]), nil
	case graph.Convolution:
		return w.convolution(n, in), nil
	}
	return w.layout(n, in)
}

// unaryOps are the elementwise operations with one operand. wide ones compute in f32 for a half type: a device may round
// inside its own half-precision form of them. The others are exact, so their half form rounds nothing.
var unaryOps = map[graph.Op]struct {
	name string
	wide bool
}{
	graph.Neg: {"stablehlo.negate", false}, graph.Abs: {"stablehlo.abs", false}, graph.Sign: {"stablehlo.sign", false},
	graph.Floor: {"stablehlo.floor", false}, graph.Ceil: {"stablehlo.ceil", false},
	graph.Not: {"stablehlo.not", false},
	graph.Exp: {"stablehlo.exponential", true}, graph.Log: {"stablehlo.log", true}, graph.Sqrt: {"stablehlo.sqrt", true},
	graph.Rsqrt: {"stablehlo.rsqrt", true}, graph.Tanh: {"stablehlo.tanh", true}, graph.Erf: {"chlo.erf", true},
	graph.Logistic: {"stablehlo.logistic", true}, graph.Sin: {"stablehlo.sine", true}, graph.Cos: {"stablehlo.cosine", true},
}

func (w *Writer) unary(n *graph.Node, x Value) (Value, error) {
	if n.Op == graph.IsFinite {
		return w.to(n.Type, "stablehlo.is_finite", x, ""), nil
	}
	if n.DType == tensor.U8 { // StableHLO has these for signed types only
		switch n.Op {
		case graph.Abs:
			return x, nil
		case graph.Sign:
			return w.same("stablehlo.minimum", x, w.Broadcast(w.Scalar(x.DType, 1), x.Shape)), nil
		}
	}
	op, ok := unaryOps[n.Op]
	switch {
	case !ok:
		return Value{}, fmt.Errorf("cannot be written")
	case op.wide && n.DType.IsHalf():
		return w.Convert(w.applyUnary(n.Op, op.name, w.Convert(x, tensor.F32)), n.DType), nil
	}
	return w.applyUnary(n.Op, op.name, x), nil
}

func (w *Writer) applyUnary(op graph.Op, name string, x Value) Value {
	if op != graph.Erf {
		return w.same(name, x)
	}
	if w.options.ErfInPrimitives && x.DType == tensor.F32 {
		return w.erf(x)
	}
	return w.Op(x.Type, "%s %s : %s -> %[3]s", name, x.Name, x.TypeText()) // CHLO puts no parentheses
}

// binaryOps are the elementwise operations with two operands. Sum, difference and product of half types are exact in f32
// or rounded there so finely that a second rounding changes nothing, so the half form says the same.
var binaryOps = map[graph.Op]struct {
	name string
	wide bool
}{
	graph.Add: {"stablehlo.add", false}, graph.Sub: {"stablehlo.subtract", false}, graph.Mul: {"stablehlo.multiply", false},
	graph.Max: {"stablehlo.maximum", false}, graph.Min: {"stablehlo.minimum", false},
	graph.And: {"stablehlo.and", false}, graph.Or: {"stablehlo.or", false},
	graph.Div: {"stablehlo.divide", true}, graph.Pow: {"stablehlo.power", true}, graph.Rem: {"stablehlo.remainder", true},
}

func (w *Writer) binary(n *graph.Node, in []Value) (Value, error) {
	op, ok := binaryOps[n.Op]
	if !ok {
		return Value{}, fmt.Errorf("cannot be written")
	}
	x, y := in[0], in[1]
	wide := op.wide && n.DType.IsHalf()
	if wide {
		x, y = w.Convert(x, tensor.F32), w.Convert(y, tensor.F32)
	}
	v := w.same(op.name, w.Broadcast(x, n.Shape), w.Broadcast(y, n.Shape))
	return w.Convert(v, n.DType), nil
}

// convert goes from f64 to a half type through f32, as the graph defines it.
func (w *Writer) convert(x Value, d tensor.DType) Value {
	if x.DType == tensor.F64 && d.IsHalf() {
		x = w.Convert(x, tensor.F32)
	}
	return w.Convert(x, d)
}

// join writes names and types of values, each separated by commas.
func join(vs ...Value) (names, types string) {
	n, t := make([]string, len(vs)), make([]string, len(vs))
	for i, v := range vs {
		n[i], t[i] = v.Name, v.TypeText()
	}
	return strings.Join(n, ", "), strings.Join(t, ", ")
}
