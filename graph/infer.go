package graph

import (
	"fmt"

	"github.com/gesso-go/gesso/tensor"
)

// Infer returns the type of an operation's result, or an error that names the operation and the operand types.
func Infer(op Op, attr Attr, in []Type) (Type, error) {
	t, err := infer(op, attr, in)
	if err != nil {
		return Type{}, fmt.Errorf("%s%v: %w", op, in, err)
	}
	if err := t.Shape.Check(); err != nil {
		return Type{}, fmt.Errorf("%s%v: result %w", op, in, err)
	}
	return t, nil
}

// operands is the number of operands of each operation with a fixed number.
var operands = map[Op]int{
	Input: 0, Constant: 0, Iota: 0, Select: 3, Reshape: 1, Transpose: 1, BroadcastInDim: 1, Slice: 1, Pad: 2, Gather: 2,
	Reduce: 1, DotGeneral: 2, OptimizeBarrier: 1, Softmax: 1, Rope: 3, Gelu: 1, Silu: 1, Modulate: 3, UpsampleNearest: 1,
}

func infer(op Op, attr Attr, in []Type) (Type, error) {
	want, fixed := operands[op]
	switch {
	case op.IsUnary():
		want, fixed = 1, true
	case op.IsBinary():
		want, fixed = 2, true
	}
	if fixed && len(in) != want {
		return Type{}, fmt.Errorf("takes %d operands, got %d", want, len(in))
	}
	switch {
	case op == Convert:
		a, ok := attr.(ConvertAttr)
		if !ok || a.DType == tensor.Invalid {
			return Type{}, errAttr(op)
		}
		return Type{a.DType, in[0].Shape}, nil
	case op.IsUnary():
		return inferUnary(op, in[0])
	case op.IsBinary():
		return inferBinary(op, attr, in)
	case op >= Linear:
		return inferComposite(op, attr, in)
	}
	return inferPrimitive(op, attr, in)
}

func errAttr(op Op) error { return fmt.Errorf("missing or wrong attribute for %s", op) }

func inferUnary(op Op, x Type) (Type, error) {
	switch op {
	case Not:
		if x.DType != tensor.Bool {
			return Type{}, fmt.Errorf("needs bool")
		}
	case IsFinite:
		if !x.DType.IsFloat() {
			return Type{}, fmt.Errorf("needs a floating-point dtype")
		}
		return Type{tensor.Bool, x.Shape}, nil
	case Neg, Abs, Sign:
		if x.DType == tensor.Bool {
			return Type{}, fmt.Errorf("needs a number, got bool")
		}
	default:
		if !x.DType.IsFloat() {
			return Type{}, fmt.Errorf("needs a floating-point dtype")
		}
	}
	return x, nil
}

func inferBinary(op Op, attr Attr, in []Type) (Type, error) {
	if in[0].DType != in[1].DType {
		return Type{}, fmt.Errorf("dtypes %s and %s differ", in[0].DType, in[1].DType)
	}
	shape, err := Broadcast(in[0].Shape, in[1].Shape)
	if err != nil {
		return Type{}, err
	}
	switch op {
	case Compare:
		if _, ok := attr.(CompareAttr); !ok {
			return Type{}, errAttr(op)
		}
		return Type{tensor.Bool, shape}, nil
	case And, Or:
		if in[0].DType != tensor.Bool {
			return Type{}, fmt.Errorf("needs bool")
		}
	default:
		if in[0].DType == tensor.Bool {
			return Type{}, fmt.Errorf("needs numbers, got bool")
		}
	}
	return Type{in[0].DType, shape}, nil
}

// Broadcast returns the common shape of a and b by NumPy's rule: aligned at the last axis, equal or 1.
func Broadcast(a, b tensor.Shape) (tensor.Shape, error) {
	if a.Equal(b) {
		return a, nil
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	out := a.Clone()
	off := len(a) - len(b)
	for i, d := range b {
		switch e := a[off+i]; {
		case e == d || d == 1:
		case e == 1:
			out[off+i] = d
		default:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast", a, b)
		}
	}
	return out, nil
}

func inferPrimitive(op Op, attr Attr, in []Type) (Type, error) {
	switch op {
	case Constant:
		a, ok := attr.(ConstantAttr)
		if !ok || a.Value == nil {
			return Type{}, errAttr(op)
		}
		return Type{a.Value.DType, a.Value.Shape}, a.Value.Check()
	case Iota:
		a, ok := attr.(IotaAttr)
		if !ok || a.Axis < 0 || a.Axis >= len(a.Type.Shape) || a.Type.DType == tensor.Bool {
			return Type{}, errAttr(op)
		}
		return a.Type, nil
	case Select:
		if in[0].DType != tensor.Bool {
			return Type{}, fmt.Errorf("predicate must be bool")
		}
		if in[1].DType != in[2].DType {
			return Type{}, fmt.Errorf("dtypes %s and %s differ", in[1].DType, in[2].DType)
		}
		s, err := Broadcast(in[1].Shape, in[2].Shape)
		if err == nil {
			s, err = Broadcast(in[0].Shape, s)
		}
		return Type{in[1].DType, s}, err
	case Reshape:
		a, ok := attr.(ReshapeAttr)
		if !ok {
			return Type{}, errAttr(op)
		}
		if err := a.Shape.Check(); err != nil {
			return Type{}, err
		}
		if a.Shape.Size() != in[0].Shape.Size() {
			return Type{}, fmt.Errorf("cannot become %v: %d elements are not %d", a.Shape, in[0].Shape.Size(), a.Shape.Size())
		}
		return Type{in[0].DType, a.Shape}, nil
	case Transpose:
		a, ok := attr.(TransposeAttr)
		if !ok || !isPermutation(a.Perm, len(in[0].Shape)) {
			return Type{}, fmt.Errorf("permutation %v does not fit", a.Perm)
		}
		s := make(tensor.Shape, len(a.Perm))
		for i, p := range a.Perm {
			s[i] = in[0].Shape[p]
		}
		return Type{in[0].DType, s}, nil
	case BroadcastInDim:
		a, ok := attr.(BroadcastInDimAttr)
		if !ok || len(a.Axes) != len(in[0].Shape) {
			return Type{}, errAttr(op)
		}
		last := -1
		for i, ax := range a.Axes {
			if ax <= last || ax >= len(a.Shape) {
				return Type{}, fmt.Errorf("axes %v do not fit %v", a.Axes, a.Shape)
			}
			last = ax
			if d := in[0].Shape[i]; d != 1 && d != a.Shape[ax] {
				return Type{}, fmt.Errorf("extent %d cannot become %d", d, a.Shape[ax])
			}
		}
		return Type{in[0].DType, a.Shape}, nil
	case Slice:
		return inferSlice(attr, in[0])
	case Pad:
		return inferPad(attr, in)
	case Concatenate:
		return inferConcatenate(attr, in)
	case Gather:
		if len(in[0].Shape) < 1 || in[0].Shape[0] < 1 || !in[1].DType.IsInt() {
			return Type{}, fmt.Errorf("needs a table (V, …) with at least one row and integer rows")
		}
		s := append(in[1].Shape.Clone(), in[0].Shape[1:]...)
		return Type{in[0].DType, s}, nil
	case DynamicSlice, DynamicUpdate:
		return inferDynamic(op, attr, in)
	case Reduce:
		return inferReduce(attr, in[0])
	case DotGeneral:
		return inferDot(attr, in)
	case Convolution:
		return inferConvolution(attr, in)
	case OptimizeBarrier:
		return in[0], nil
	}
	return Type{}, fmt.Errorf("cannot be made")
}

func isPermutation(p []int, n int) bool {
	if len(p) != n {
		return false
	}
	seen := make([]bool, n)
	for _, v := range p {
		if v < 0 || v >= n || seen[v] {
			return false
		}
		seen[v] = true
	}
	return true
}

func inferSlice(attr Attr, x Type) (Type, error) {
	a, ok := attr.(SliceAttr)
	n := len(x.Shape)
	if !ok || len(a.Start) != n || len(a.Limit) != n || len(a.Stride) != n {
		return Type{}, errAttr(Slice)
	}
	s := make(tensor.Shape, n)
	for i, d := range x.Shape {
		if a.Start[i] < 0 || a.Limit[i] > d || a.Start[i] > a.Limit[i] || a.Stride[i] < 1 {
			return Type{}, fmt.Errorf("[%d, %d) by %d is outside axis %d", a.Start[i], a.Limit[i], a.Stride[i], i)
		}
		s[i] = (a.Limit[i] - a.Start[i] + a.Stride[i] - 1) / a.Stride[i]
	}
	return Type{x.DType, s}, nil
}

func inferPad(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(PadAttr)
	x, n := in[0], len(in[0].Shape)
	if !ok || len(a.Low) != n || len(a.High) != n || len(a.Interior) != n {
		return Type{}, errAttr(Pad)
	}
	if len(in[1].Shape) != 0 || in[1].DType != x.DType {
		return Type{}, fmt.Errorf("filler must be a %s scalar", x.DType)
	}
	s := make(tensor.Shape, n)
	for i, d := range x.Shape {
		if a.Interior[i] < 0 {
			return Type{}, fmt.Errorf("interior padding %d is negative", a.Interior[i])
		}
		s[i] = a.Low[i] + d + max(d-1, 0)*a.Interior[i] + a.High[i]
	}
	return Type{x.DType, s}, nil
}

func inferConcatenate(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(ConcatenateAttr)
	if !ok || len(in) == 0 || a.Axis < 0 || a.Axis >= len(in[0].Shape) {
		return Type{}, errAttr(Concatenate)
	}
	s := in[0].Shape.Clone()
	for _, t := range in[1:] {
		if t.DType != in[0].DType || len(t.Shape) != len(s) {
			return Type{}, fmt.Errorf("%s and %s do not join", in[0], t)
		}
		for i, d := range t.Shape {
			if i == a.Axis {
				s[i] += d
			} else if d != s[i] {
				return Type{}, fmt.Errorf("%s and %s do not join along axis %d", in[0], t, a.Axis)
			}
		}
	}
	return Type{in[0].DType, s}, nil
}

func inferDynamic(op Op, attr Attr, in []Type) (Type, error) {
	fixed := 1
	if op == DynamicUpdate {
		fixed = 2
	}
	if len(in) == 0 || len(in) != fixed+len(in[0].Shape) {
		return Type{}, fmt.Errorf("needs one start index per axis")
	}
	x := in[0]
	for _, t := range in[fixed:] {
		if len(t.Shape) != 0 || (t.DType != tensor.I32 && t.DType != tensor.I64) {
			return Type{}, fmt.Errorf("start indices must be integer scalars, got %s", t)
		}
	}
	sizes := tensor.Shape(nil)
	if op == DynamicUpdate {
		if in[1].DType != x.DType {
			return Type{}, fmt.Errorf("update is %s", in[1].DType)
		}
		sizes = in[1].Shape
	} else if a, ok := attr.(DynamicSliceAttr); ok {
		sizes = a.Sizes
	} else {
		return Type{}, errAttr(op)
	}
	if len(sizes) != len(x.Shape) {
		return Type{}, fmt.Errorf("sizes %v do not fit", sizes)
	}
	for i, d := range sizes {
		if d < 0 || d > x.Shape[i] {
			return Type{}, fmt.Errorf("sizes %v do not fit", sizes)
		}
	}
	if op == DynamicUpdate {
		return x, nil
	}
	return Type{x.DType, sizes}, nil
}

func inferReduce(attr Attr, x Type) (Type, error) {
	a, ok := attr.(ReduceAttr)
	if !ok {
		return Type{}, errAttr(Reduce)
	}
	if x.DType == tensor.Bool {
		return Type{}, fmt.Errorf("needs numbers, got bool")
	}
	drop := make([]bool, len(x.Shape))
	for _, ax := range a.Axes {
		if ax < 0 || ax >= len(x.Shape) || drop[ax] {
			return Type{}, fmt.Errorf("axes %v do not fit", a.Axes)
		}
		drop[ax] = true
	}
	s := tensor.Shape{}
	for i, d := range x.Shape {
		if !drop[i] {
			s = append(s, d)
		} else if d == 0 && (a.Kind == ReduceMax || a.Kind == ReduceMin) {
			return Type{}, fmt.Errorf("%s of nothing along axis %d", a.Kind, i)
		}
	}
	return Type{x.DType, s}, nil
}

func inferDot(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(DotGeneralAttr)
	if !ok || len(a.LhsBatch) != len(a.RhsBatch) || len(a.LhsContract) != len(a.RhsContract) {
		return Type{}, errAttr(DotGeneral)
	}
	l, r := in[0], in[1]
	if l.DType != r.DType {
		return Type{}, fmt.Errorf("dtypes %s and %s differ", l.DType, r.DType)
	}
	if l.DType == tensor.Bool {
		return Type{}, fmt.Errorf("needs numbers, got bool")
	}
	usedL, usedR := make([]bool, len(l.Shape)), make([]bool, len(r.Shape))
	s := tensor.Shape{}
	pair := func(la, ra []int) error {
		for i := range la {
			if la[i] < 0 || la[i] >= len(usedL) || ra[i] < 0 || ra[i] >= len(usedR) || usedL[la[i]] || usedR[ra[i]] {
				return fmt.Errorf("axes %v and %v do not fit", la, ra)
			}
			if l.Shape[la[i]] != r.Shape[ra[i]] {
				return fmt.Errorf("axis %d of the left and axis %d of the right differ: %d and %d", la[i], ra[i], l.Shape[la[i]], r.Shape[ra[i]])
			}
			usedL[la[i]], usedR[ra[i]] = true, true
		}
		return nil
	}
	if err := pair(a.LhsBatch, a.RhsBatch); err != nil {
		return Type{}, err
	}
	for _, ax := range a.LhsBatch {
		s = append(s, l.Shape[ax])
	}
	if err := pair(a.LhsContract, a.RhsContract); err != nil {
		return Type{}, err
	}
	for i, d := range l.Shape {
		if !usedL[i] {
			s = append(s, d)
		}
	}
	for i, d := range r.Shape {
		if !usedR[i] {
			s = append(s, d)
		}
	}
	out := a.Out
	if out == tensor.Invalid {
		out = l.DType
	}
	return Type{out, s}, nil
}

func inferConvolution(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(ConvolutionAttr)
	want := 2
	if a.Bias {
		want = 3
	}
	if !ok || len(in) != want {
		return Type{}, errAttr(Convolution)
	}
	x, w := in[0], in[1]
	if x.DType != w.DType || !x.DType.IsFloat() {
		return Type{}, fmt.Errorf("dtypes %s and %s", x.DType, w.DType)
	}
	if len(x.Shape) != 4 || len(w.Shape) != 4 || x.Shape[3] != w.Shape[1] {
		return Type{}, fmt.Errorf("needs x (B, H, W, C) and weight (O, C, KH, KW)")
	}
	if a.Bias && (in[2].DType != w.DType || !in[2].Shape.Equal(tensor.Shape{w.Shape[0]})) {
		return Type{}, fmt.Errorf("bias must be %s[%d]", w.DType, w.Shape[0])
	}
	s := tensor.Shape{x.Shape[0], 0, 0, w.Shape[0]}
	for i := range 2 {
		padded := x.Shape[1+i] + a.Low[i] + a.High[i]
		if a.Stride[i] < 1 || a.Low[i] < 0 || a.High[i] < 0 || padded < w.Shape[2+i] {
			return Type{}, fmt.Errorf("stride %v, padding %v %v do not fit", a.Stride, a.Low, a.High)
		}
		s[1+i] = (padded-w.Shape[2+i])/a.Stride[i] + 1
	}
	out := a.Out
	if out == tensor.Invalid {
		out = x.DType
	}
	return Type{out, s}, nil
}
