package graph

import (
	"fmt"

	"github.com/gesso-go/gesso/tensor"
)

// vector checks that t is a vector of n elements of dtype d.
func vector(what string, t Type, d tensor.DType, n int) error {
	if t.DType != d || !t.Shape.Equal(tensor.Shape{n}) {
		return fmt.Errorf("%s must be %s[%d], got %s", what, d, n, t)
	}
	return nil
}

func count(in []Type, n int) error {
	if len(in) != n {
		return fmt.Errorf("takes %d operands, got %d", n, len(in))
	}
	return nil
}

func inferComposite(op Op, attr Attr, in []Type) (Type, error) {
	if len(in) == 0 || !in[0].DType.IsFloat() {
		return Type{}, fmt.Errorf("needs a floating-point operand")
	}
	x := in[0]
	rank := len(x.Shape)
	switch op {
	case Softmax, Silu:
		if op == Softmax && rank == 0 {
			return Type{}, fmt.Errorf("needs an axis")
		}
		return x, nil
	case Gelu:
		a, ok := attr.(GeluAttr)
		if !ok || (a.Form != ActGelu && a.Form != ActGeluTanh && a.Form != ActGeluNew && a.Form != ActQuickGelu) {
			return Type{}, errAttr(op)
		}
		return x, nil
	case Modulate:
		if in[1].DType != x.DType || in[2].DType != x.DType {
			return Type{}, fmt.Errorf("dtypes differ")
		}
		s, err := Broadcast(in[1].Shape, in[2].Shape)
		if err == nil {
			s, err = Broadcast(x.Shape, s)
		}
		return Type{x.DType, s}, err
	case Linear:
		return inferLinear(attr, in)
	case QuantizedLinear:
		return inferQuantizedLinear(attr, in)
	case RMSNorm, LayerNorm, GroupNorm:
		return inferNorm(op, attr, in)
	case Rope:
		if _, ok := attr.(RopeAttr); !ok {
			return Type{}, errAttr(op)
		}
		if rank != 4 || x.Shape[3]%2 != 0 {
			return Type{}, fmt.Errorf("needs x (B, N, H, D) with an even D")
		}
		table := Type{tensor.F32, tensor.Shape{x.Shape[1], x.Shape[3]}}
		if !in[1].Equal(table) || !in[2].Equal(table) {
			return Type{}, fmt.Errorf("cos and sin must be %s", table)
		}
		return x, nil
	case Attention:
		return inferAttention(attr, in)
	case UpsampleNearest:
		a, ok := attr.(UpsampleAttr)
		if !ok || a.Factor < 1 || rank != 4 {
			return Type{}, fmt.Errorf("needs x (B, H, W, C) and a factor of at least 1")
		}
		return Type{x.DType, tensor.Shape{x.Shape[0], x.Shape[1] * a.Factor, x.Shape[2] * a.Factor, x.Shape[3]}}, nil
	case UpsampleConv:
		a, ok := attr.(UpsampleConvAttr)
		if !ok || rank != 4 || len(in) < 2 || len(in[1].Shape) != 4 || in[1].Shape[2] != 3 || in[1].Shape[3] != 3 {
			return Type{}, fmt.Errorf("needs x (B, H, W, C) and weight (O, C, 3, 3)")
		}
		up := Type{x.DType, tensor.Shape{x.Shape[0], 2 * x.Shape[1], 2 * x.Shape[2], x.Shape[3]}}
		return inferConvolution(a.Convolution(), append([]Type{up}, in[1:]...))
	}
	return Type{}, fmt.Errorf("cannot be made")
}

func inferLinear(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(LinearAttr)
	want := 2
	if a.Bias {
		want = 3
	}
	if !ok || a.Act > ActSilu {
		return Type{}, errAttr(Linear)
	}
	if err := count(in, want); err != nil {
		return Type{}, err
	}
	x, w := in[0], in[1]
	if len(x.Shape) == 0 || len(w.Shape) != 2 || x.Shape[len(x.Shape)-1] != w.Shape[1] {
		return Type{}, fmt.Errorf("needs x (…, K) and weight (N, K)")
	}
	if x.DType != w.DType {
		return Type{}, fmt.Errorf("dtypes %s and %s differ", x.DType, w.DType)
	}
	if a.Bias {
		if err := vector("bias", in[2], w.DType, w.Shape[0]); err != nil {
			return Type{}, err
		}
	}
	s := x.Shape.Clone()
	s[len(s)-1] = w.Shape[0]
	return Type{x.DType, s}, nil
}

func inferQuantizedLinear(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(QuantizedLinearAttr)
	want := 3
	if a.Bias {
		want = 4
	}
	if !ok || a.Act > ActSilu {
		return Type{}, errAttr(QuantizedLinear)
	}
	if err := count(in, want); err != nil {
		return Type{}, err
	}
	x, w := in[0], in[1]
	if x.DType == tensor.F64 || w.DType != tensor.I8 {
		return Type{}, fmt.Errorf("needs x in f32 or a half type and the weight in i8")
	}
	if len(x.Shape) == 0 || len(w.Shape) != 2 || x.Shape[len(x.Shape)-1] != w.Shape[1] || w.Shape[1] < 1 || w.Shape[1] > MaxQuantizedK {
		return Type{}, fmt.Errorf("needs x (…, K) and weight (N, K) with K of 1 to %d", MaxQuantizedK)
	}
	if err := vector("scale", in[2], tensor.F32, w.Shape[0]); err != nil {
		return Type{}, err
	}
	if a.Bias {
		if err := vector("bias", in[3], x.DType, w.Shape[0]); err != nil {
			return Type{}, err
		}
	}
	s := x.Shape.Clone()
	s[len(s)-1] = w.Shape[0]
	return Type{x.DType, s}, nil
}

func inferNorm(op Op, attr Attr, in []Type) (Type, error) {
	x := in[0]
	if len(x.Shape) == 0 {
		return Type{}, fmt.Errorf("needs an axis")
	}
	c := x.Shape[len(x.Shape)-1]
	affine, want := false, 1
	switch a := attr.(type) {
	case RMSNormAttr:
		if op != RMSNorm {
			return Type{}, errAttr(op)
		}
		if !a.Weight {
			return x, count(in, 1)
		}
		if err := count(in, 2); err != nil {
			return Type{}, err
		}
		return x, vector("weight", in[1], x.DType, c)
	case LayerNormAttr:
		if op != LayerNorm {
			return Type{}, errAttr(op)
		}
		affine = a.Affine
	case GroupNormAttr:
		if op != GroupNorm || len(x.Shape) < 2 || a.Groups < 1 || c%a.Groups != 0 {
			return Type{}, fmt.Errorf("%d groups do not divide %d channels", a.Groups, c)
		}
		affine = true
	default:
		return Type{}, errAttr(op)
	}
	if affine {
		want = 3
	}
	if err := count(in, want); err != nil {
		return Type{}, err
	}
	if affine {
		if err := vector("weight", in[1], x.DType, c); err != nil {
			return Type{}, err
		}
		return x, vector("bias", in[2], x.DType, c)
	}
	return x, nil
}

func inferAttention(attr Attr, in []Type) (Type, error) {
	a, ok := attr.(AttentionAttr)
	want := 3
	if a.Bias {
		want++
	}
	if a.Mask {
		want++
	}
	if !ok {
		return Type{}, errAttr(Attention)
	}
	if err := count(in, want); err != nil {
		return Type{}, err
	}
	q, k, v := in[0], in[1], in[2]
	if q.DType != k.DType || q.DType != v.DType {
		return Type{}, fmt.Errorf("dtypes %s, %s and %s differ", q.DType, k.DType, v.DType)
	}
	if len(q.Shape) != 4 || len(k.Shape) != 4 || !k.Shape.Equal(v.Shape) {
		return Type{}, fmt.Errorf("needs q (B, N, H, D), k and v (B, M, G, D)")
	}
	b, n, h, d := q.Shape[0], q.Shape[1], q.Shape[2], q.Shape[3]
	m, g := k.Shape[1], k.Shape[2]
	if k.Shape[0] != b || k.Shape[3] != d || g == 0 || h%g != 0 {
		return Type{}, fmt.Errorf("k %v does not fit q %v", k.Shape, q.Shape)
	}
	if a.Causal && n != m {
		return Type{}, fmt.Errorf("causal attention needs as many queries as keys, got %d and %d", n, m)
	}
	fits := func(t Type, dims ...int) bool {
		if len(t.Shape) != 4 {
			return false
		}
		for i, e := range t.Shape {
			if e != dims[i] && (e != 1 || i == 3) {
				return false
			}
		}
		return true
	}
	next := 3
	if a.Bias {
		t := in[next]
		next++
		if (t.DType != tensor.F32 && t.DType != q.DType) || !fits(t, b, h, n, m) || t.Shape[2] != n {
			return Type{}, fmt.Errorf("bias %s does not fit (%d, %d, %d, %d)", t, b, h, n, m)
		}
	}
	if a.Mask {
		if t := in[next]; t.DType != tensor.Bool || !fits(t, b, h, n, m) {
			return Type{}, fmt.Errorf("mask %s does not fit (%d, %d, %d, %d)", t, b, h, n, m)
		}
	}
	return q, nil
}
