package stablehlo

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// reduce accumulates sums and products of half types in f32; a maximum or minimum is exact in any type.
func (w *Writer) reduce(n *graph.Node, x Value) Value {
	a := n.Attr.(graph.ReduceAttr)
	if len(a.Axes) == 0 {
		return x
	}
	sum := a.Kind == graph.ReduceSum || a.Kind == graph.ReduceProd
	if sum && x.DType.IsHalf() {
		x = w.Convert(x, tensor.F32)
	}
	return w.Convert(w.Reduce(a.Kind, x, a.Axes...), n.DType)
}

// Reduce combines the elements of x along axes, which disappear, in x's own dtype.
func (w *Writer) Reduce(kind graph.Reduction, x Value, axes ...int) Value {
	drop := make(map[int]bool, len(axes))
	for _, a := range axes {
		drop[a] = true
	}
	t := graph.Type{DType: x.DType, Shape: tensor.Shape{}}
	for i, d := range x.Shape {
		if !drop[i] {
			t.Shape = append(t.Shape, d)
		}
	}
	op := [...]string{"stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply"}[kind]
	init := w.neutral(kind, x.DType)
	return w.Op(t, "stablehlo.reduce(%s init: %s) applies %s across dimensions = %s : (%s, %s) -> %s",
		x.Name, init.Name, op, ints(axes), x.TypeText(), init.TypeText(), typeText(t))
}

// neutral writes the value that changes nothing.
func (w *Writer) neutral(kind graph.Reduction, d tensor.DType) Value {
	if kind == graph.ReduceSum || kind == graph.ReduceProd || d.IsFloat() {
		return w.Scalar(d, [...]float64{0, math.Inf(-1), math.Inf(1), 1}[kind])
	}
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	switch d {
	case tensor.I32:
		lo, hi = math.MinInt32, math.MaxInt32
	case tensor.I16:
		lo, hi = math.MinInt16, math.MaxInt16
	case tensor.I8:
		lo, hi = math.MinInt8, math.MaxInt8
	case tensor.U8:
		lo, hi = 0, math.MaxUint8
	}
	v := lo
	if kind == graph.ReduceMin {
		v = hi
	}
	a, err := tensor.FromInt64([]int64{v}).Convert(d)
	if err != nil {
		panic("stablehlo: " + err.Error()) // d is one of the integers above
	}
	return w.Constant(a)
}

// accumulator is the dtype that products of operands of dtype d are summed in, for a result of dtype out.
func accumulator(d, out tensor.DType) tensor.DType {
	switch {
	case d.IsHalf():
		return tensor.F32
	case d.IsFloat():
		return d
	case out == tensor.I64:
		return out
	case d == tensor.I64:
		return d
	}
	return tensor.I32
}

// precision asks for full f32 products: a TPU's or a GPU's default would round the operands to fewer bits. Half operands
// are exact anyway.
func precision(d tensor.DType) string {
	if d.IsHalf() {
		return "DEFAULT"
	}
	return "HIGHEST"
}

func (w *Writer) dotGeneral(n *graph.Node, x, y Value) Value {
	a := n.Attr.(graph.DotGeneralAttr)
	acc := accumulator(x.DType, n.DType)
	if !x.DType.IsFloat() {
		x, y = w.Convert(x, acc), w.Convert(y, acc)
	}
	batch := ""
	if len(a.LhsBatch) > 0 {
		batch = fmt.Sprintf("batching_dims = %s x %s, ", ints(a.LhsBatch), ints(a.RhsBatch))
	}
	t := graph.Type{DType: acc, Shape: n.Shape}
	p := ""
	if x.DType.IsFloat() {
		p = fmt.Sprintf(", precision = [%s, %[1]s]", precision(x.DType))
	}
	v := w.Op(t, "stablehlo.dot_general %s, %s, %scontracting_dims = %s x %s%s : (%s, %s) -> %s",
		x.Name, y.Name, batch, ints(a.LhsContract), ints(a.RhsContract), p, x.TypeText(), y.TypeText(), typeText(t))
	return w.convert(v, n.DType)
}

// convolution: x (B, H, W, C), weight (O, C, KH, KW) → (B, H', W', O); the bias is added to the sum in f32.
func (w *Writer) convolution(n *graph.Node, in []Value) Value {
	a := n.Attr.(graph.ConvolutionAttr)
	x, k := in[0], in[1]
	t := graph.Type{DType: accumulator(x.DType, n.DType), Shape: n.Shape}
	v := w.Op(t, "stablehlo.convolution(%s, %s) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], "+
		"window = {stride = %s, pad = [[%d, %d], [%d, %d]]} "+
		"{batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision %s>, #stablehlo<precision %[8]s>]} : (%s, %s) -> %s",
		x.Name, k.Name, ints(a.Stride[:]), a.Low[0], a.High[0], a.Low[1], a.High[1], precision(x.DType), x.TypeText(), k.TypeText(), typeText(t))
	if a.Bias {
		v = w.same("stablehlo.add", v, w.Broadcast(w.Convert(in[2], t.DType), n.Shape))
	}
	return w.convert(v, n.DType)
}
