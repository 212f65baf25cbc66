package graph

import (
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// quantizedLinear: see QuantizedLinearAttr.
func (b *Builder) quantizedLinear(n *Node) *Node {
	a := n.Attr.(QuantizedLinearAttr)
	f := tensor.F32
	x := b.Convert(n.In[0], f)
	last := len(x.Shape) - 1
	c := func(v float64) *Node { return b.Scalar(f, v) }

	most := b.reduceKeep(ReduceMax, b.Make(Abs, nil, x), last) // (…, 1)
	none := b.Make(Compare, CompareAttr{LT}, most, c(QuantizedLeast))
	scale := b.Make(Select, nil, b.Make(IsFinite, nil, most), b.Make(Div, nil, most, c(127)), c(math.NaN()))
	scale = b.Make(Select, nil, none, c(0), scale)
	inverse := b.Make(Select, nil, none, c(0), b.Make(Div, nil, c(127), most))

	q := b.Make(Convert, ConvertAttr{tensor.I8}, b.nearestEven(b.Make(Mul, nil, x, inverse)))
	sum := b.Make(DotGeneral, DotGeneralAttr{LhsContract: []int{last}, RhsContract: []int{1}, Out: tensor.I32}, q, n.In[1])
	y := b.Make(Mul, nil, b.Make(Mul, nil, b.Convert(sum, f), scale), n.In[2])
	var bias *Node
	if a.Bias {
		bias = n.In[3]
	}
	return b.finish(y, bias, n.DType, a.Act)
}

// nearestEven rounds f32 numbers of magnitude below 2²² to integers: at 1.5·2²³ a unit in the last place is 1. The barrier
// keeps a compiler from taking the two constants together.
func (b *Builder) nearestEven(x *Node) *Node {
	c := b.Scalar(tensor.F32, 3<<22)
	return b.Make(Sub, nil, b.Make(OptimizeBarrier, nil, b.Make(Add, nil, x, c)), c)
}

// QuantizeRows rounds w (N, K), in f32 or a half type, to the weight and the scale of a QuantizedLinear, a scale a row:
// q·scale ≈ w, by the rules of QuantizedLinearAttr.
func QuantizeRows(w *tensor.Array) (q, scale *tensor.Array) {
	rows, k := w.Shape[0], w.Shape[1]
	q, scale = tensor.New(tensor.I8, rows, k), tensor.New(tensor.F32, rows)
	out, s := tensor.View[int8](q.Data), scale.Float32s()
	size := k * w.DType.Size()
	for i := range rows {
		row := (&tensor.Array{DType: w.DType, Shape: tensor.Shape{k}, Data: w.Data[i*size:][:size]}).Float64s()
		most := float32(0)
		for _, v := range row {
			if m := float32(math.Abs(v)); !(m <= most) {
				most = m
			}
			if math.IsNaN(v) {
				break
			}
		}
		switch {
		case !(most <= math.MaxFloat32):
			s[i] = float32(math.NaN())
		case most >= QuantizedLeast:
			s[i] = most / 127
			inverse := 127 / most
			for j, v := range row {
				out[i*k+j] = int8(math.RoundToEven(float64(float32(v) * inverse)))
			}
		}
	}
	return q, scale
}
