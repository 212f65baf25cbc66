package graph

import (
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// Builder makes nodes and keeps the first error, so that a sequence of operations is checked once at its end. After an
// error it returns that node's operand or an empty constant, and the result must not be used.
type Builder struct{ Err error }

// Make is graph.Make with the error kept.
func (b *Builder) Make(op Op, attr Attr, in ...*Node) *Node {
	if b.Err == nil {
		n, err := Make(op, attr, in...)
		if err == nil {
			return n
		}
		b.Err = err
	}
	if len(in) > 0 {
		return in[0]
	}
	return NewConstant(tensor.New(tensor.F32))
}

// Scalar returns a constant of dtype d.
func (b *Builder) Scalar(d tensor.DType, v float64) *Node {
	a, err := tensor.FromFloat64([]float64{v}).Convert(d)
	if err != nil && b.Err == nil {
		b.Err = err
	}
	return NewConstant(a)
}

// Convert returns x as dtype d, or x itself when it has it.
func (b *Builder) Convert(x *Node, d tensor.DType) *Node {
	if x.DType == d {
		return x
	}
	return b.Make(Convert, ConvertAttr{d}, x)
}

// Reshape returns x with another shape.
func (b *Builder) Reshape(x *Node, shape ...int) *Node {
	if x.Shape.Equal(shape) {
		return x
	}
	return b.Make(Reshape, ReshapeAttr{shape}, x)
}

// reduceKeep reduces the given axes and keeps them with extent 1.
func (b *Builder) reduceKeep(kind Reduction, x *Node, axes ...int) *Node {
	s := x.Shape.Clone()
	for _, a := range axes {
		s[a] = 1
	}
	return b.Reshape(b.Make(Reduce, ReduceAttr{kind, axes}, x), s...)
}

// mean averages over the given axes and keeps them with extent 1; x is f32.
func (b *Builder) mean(x *Node, axes ...int) *Node {
	n := 1
	for _, a := range axes {
		n *= x.Shape[a]
	}
	return b.Make(Div, nil, b.reduceKeep(ReduceSum, x, axes...), b.Scalar(x.DType, float64(n)))
}

// internal is the type in which a composite computes: f32, or f64 for f64 operands.
func internal(d tensor.DType) tensor.DType {
	if d == tensor.F64 {
		return d
	}
	return tensor.F32
}

// negInf is the logit of a key that may not be seen.
var negInf = math.Inf(-1)
