package engine

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Elementwise operations. Operands have one dtype and broadcast as in NumPy.

func (v Value) Add(w Value) Value { return Record(graph.Add, nil, v, w) }
func (v Value) Sub(w Value) Value { return Record(graph.Sub, nil, v, w) }
func (v Value) Mul(w Value) Value { return Record(graph.Mul, nil, v, w) }
func (v Value) Div(w Value) Value { return Record(graph.Div, nil, v, w) }
func (v Value) Max(w Value) Value { return Record(graph.Max, nil, v, w) }
func (v Value) Min(w Value) Value { return Record(graph.Min, nil, v, w) }
func (v Value) Neg() Value        { return Record(graph.Neg, nil, v) }
func (v Value) Exp() Value        { return Record(graph.Exp, nil, v) }
func (v Value) Tanh() Value       { return Record(graph.Tanh, nil, v) }
func (v Value) Sqrt() Value       { return Record(graph.Sqrt, nil, v) }
func (v Value) Sin() Value        { return Record(graph.Sin, nil, v) }
func (v Value) Cos() Value        { return Record(graph.Cos, nil, v) }
func (v Value) Silu() Value       { return Record(graph.Silu, nil, v) }
func (v Value) Softmax() Value    { return Record(graph.Softmax, nil, v) }

// AddScalar returns v + s, with s rounded to v's dtype and fixed in the program.
func (v Value) AddScalar(s float64) Value { return v.scalar(graph.Add, s) }

// MulScalar returns v · s, with s rounded to v's dtype and fixed in the program.
func (v Value) MulScalar(s float64) Value { return v.scalar(graph.Mul, s) }

func (v Value) scalar(op graph.Op, s float64) Value {
	if v.Err() != nil {
		return Record(op, nil, v, v)
	}
	return Record(op, nil, v, v.v.eng.ConstScalar(v.DType(), s))
}

// Gelu returns the activation in one of its forms.
func (v Value) Gelu(form graph.Activation) Value {
	return Record(graph.Gelu, graph.GeluAttr{Form: form}, v)
}

// Clamp returns v limited to [lo, hi].
func (v Value) Clamp(lo, hi float64) Value {
	return v.scalar(graph.Max, lo).scalar(graph.Min, hi)
}

// Compare compares elementwise; the result is bool.
func (v Value) Compare(d graph.Direction, w Value) Value {
	return Record(graph.Compare, graph.CompareAttr{Direction: d}, v, w)
}

// Select returns a where v (bool) is true, else b.
func (v Value) Select(a, b Value) Value { return Record(graph.Select, nil, v, a, b) }

// Convert returns v as dtype d, or v itself when it has it.
func (v Value) Convert(d tensor.DType) Value {
	if v.DType() == d {
		return v
	}
	return Record(graph.Convert, graph.ConvertAttr{DType: d}, v)
}

// Reshape returns v with another shape of equal size; one extent may be -1, and is computed.
func (v Value) Reshape(shape ...int) Value {
	s := tensor.Shape(shape).Clone()
	for i, d := range s {
		if d != -1 {
			continue
		}
		rest := 1
		for j, e := range s {
			if j != i {
				rest *= e
			}
		}
		if rest > 0 {
			s[i] = v.Shape().Size() / rest
		}
	}
	if v.Err() == nil && s.Equal(v.Shape()) {
		return v
	}
	return Record(graph.Reshape, graph.ReshapeAttr{Shape: s}, v)
}

// Transpose returns v with its axes in another order: axis i of the result is axis perm[i] of v.
func (v Value) Transpose(perm ...int) Value {
	return Record(graph.Transpose, graph.TransposeAttr{Perm: append([]int(nil), perm...)}, v)
}

// BroadcastTo returns v repeated to shape by NumPy's rule.
func (v Value) BroadcastTo(shape ...int) Value {
	s := tensor.Shape(shape).Clone()
	axes := make([]int, len(v.Shape()))
	for i := range axes {
		axes[i] = len(s) - len(axes) + i
	}
	if v.Err() == nil && s.Equal(v.Shape()) {
		return v
	}
	return Record(graph.BroadcastInDim, graph.BroadcastInDimAttr{Shape: s, Axes: axes}, v)
}

// axis resolves a negative axis, counted from the end.
func (v Value) axis(a int) int {
	if a < 0 {
		a += len(v.Shape())
	}
	return a
}

// Slice returns the part [start, limit) of one axis.
func (v Value) Slice(axis, start, limit int) Value {
	axis = v.axis(axis)
	s := v.Shape()
	if v.Err() == nil && (axis < 0 || axis >= len(s)) {
		return v.v.eng.failed(fmt.Errorf("slice%s: no axis %d", v.Type(), axis))
	}
	n := len(s)
	a := graph.SliceAttr{Start: make([]int, n), Limit: s.Clone(), Stride: make([]int, n)}
	for i := range a.Stride {
		a.Stride[i] = 1
	}
	if n > 0 {
		a.Start[axis], a.Limit[axis] = start, limit
	}
	return Record(graph.Slice, a, v)
}

// Split cuts an axis into parts of the given sizes, which must add up to its extent.
func (v Value) Split(axis int, sizes ...int) []Value {
	sum := 0
	for _, n := range sizes {
		sum += n
	}
	out := make([]Value, len(sizes))
	if v.Err() == nil && sum != v.Dim(axis) {
		bad := v.v.eng.failed(fmt.Errorf("split%s: sizes %v do not add up to axis %d", v.Type(), sizes, axis))
		for i := range out {
			out[i] = bad
		}
		return out
	}
	at := 0
	for i, n := range sizes {
		out[i] = v.Slice(axis, at, at+n)
		at += n
	}
	return out
}

// Chunk cuts an axis into n equal parts.
func (v Value) Chunk(axis, n int) []Value {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = v.Dim(axis) / n
	}
	return v.Split(axis, sizes...)
}

// Concat joins values along an axis.
func Concat(axis int, vs ...Value) Value {
	if len(vs) > 0 {
		axis = vs[0].axis(axis)
	}
	return Record(graph.Concatenate, graph.ConcatenateAttr{Axis: axis}, vs...)
}

// Gather returns rows of v (V, …) by integer index; an index out of range is clamped.
func (v Value) Gather(rows Value) Value { return Record(graph.Gather, nil, v, rows) }

// Pad adds zeros before and after one axis.
func (v Value) Pad(axis, low, high int) Value {
	if v.Err() != nil {
		return Record(graph.Pad, nil, v, v)
	}
	n := len(v.Shape())
	a := graph.PadAttr{Low: make([]int, n), High: make([]int, n), Interior: make([]int, n)}
	if ax := v.axis(axis); ax >= 0 && ax < n {
		a.Low[ax], a.High[ax] = low, high
	} else {
		return v.v.eng.failed(fmt.Errorf("pad%s: no axis %d", v.Type(), axis))
	}
	return Record(graph.Pad, a, v, v.v.eng.ConstScalar(v.DType(), 0))
}

// Reduce combines elements along the given axes, which disappear.
func (v Value) Reduce(kind graph.Reduction, axes ...int) Value {
	resolved := make([]int, len(axes))
	for i, a := range axes {
		resolved[i] = v.axis(a)
	}
	return Record(graph.Reduce, graph.ReduceAttr{Kind: kind, Axes: resolved}, v)
}

// Dot multiplies two values with the given batch and contracted axes; see graph.DotGeneralAttr.
func (v Value) Dot(w Value, attr graph.DotGeneralAttr) Value {
	return Record(graph.DotGeneral, attr, v, w)
}
