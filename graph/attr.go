package graph

import (
	"encoding/binary"
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// Attr is what an operation needs beside its operands. AppendKey appends an encoding that tells any two different
// attributes of one operation apart; fingerprints and cache keys are made of it.
type Attr interface {
	AppendKey(b []byte) []byte
}

func appendInt(b []byte, v int) []byte { return binary.AppendVarint(b, int64(v)) }

func appendInts(b []byte, vs []int) []byte {
	b = appendInt(b, len(vs))
	for _, v := range vs {
		b = appendInt(b, v)
	}
	return b
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// InputAttr numbers the inputs of a graph.
type InputAttr struct{ Index int }

// ConstantAttr holds a value known when the graph is made. Numbers that change from call to call must be inputs.
type ConstantAttr struct{ Value *tensor.Array }

// ConvertAttr is the result's dtype. Float to integer truncates, to bool compares with zero.
type ConvertAttr struct{ DType tensor.DType }

// Direction is a comparison.
type Direction uint8

// The comparisons.
const (
	EQ Direction = iota
	NE
	LT
	LE
	GT
	GE
)

// String returns StableHLO's spelling.
func (d Direction) String() string { return [...]string{"EQ", "NE", "LT", "LE", "GT", "GE"}[d] }

// CompareAttr is the direction of a comparison.
type CompareAttr struct{ Direction Direction }

// IotaAttr makes a value of the given type whose elements count along Axis.
type IotaAttr struct {
	Type Type
	Axis int
}

// ReshapeAttr is the new shape.
type ReshapeAttr struct{ Shape tensor.Shape }

// TransposeAttr: axis i of the result is axis Perm[i] of the operand.
type TransposeAttr struct{ Perm []int }

// BroadcastInDimAttr: axis i of the operand becomes axis Axes[i] of the result; extents are equal or 1.
type BroadcastInDimAttr struct {
	Shape tensor.Shape
	Axes  []int
}

// SliceAttr cuts [Start, Limit) with a stride, per axis.
type SliceAttr struct{ Start, Limit, Stride []int }

// PadAttr is the padding before, after and between elements, per axis; Low and High may be negative.
type PadAttr struct{ Low, High, Interior []int }

// ConcatenateAttr is the axis along which the operands follow each other.
type ConcatenateAttr struct{ Axis int }

// DynamicSliceAttr is the shape of the slice; starts are clamped so that it fits.
type DynamicSliceAttr struct{ Sizes []int }

// Reduction is how elements are combined.
type Reduction uint8

// The reductions. ReduceMax and ReduceMin propagate NaN.
const (
	ReduceSum Reduction = iota
	ReduceMax
	ReduceMin
	ReduceProd
)

// String returns the name of the combining operation.
func (r Reduction) String() string { return [...]string{"sum", "max", "min", "prod"}[r] }

// ReduceAttr names the combination and the axes that disappear.
type ReduceAttr struct {
	Kind Reduction
	Axes []int
}

// DotGeneralAttr names the batch and the contracted axes of both operands. The result has the batch axes, then the free
// axes of the left, then those of the right operand. Out is the result's dtype; Invalid means the operands'.
type DotGeneralAttr struct {
	LhsBatch, RhsBatch       []int
	LhsContract, RhsContract []int
	Out                      tensor.DType
}

// ConvolutionAttr holds stride and zero padding for height and width. Out is the result's dtype; Invalid means the
// operands'. The weight may have a bias operand (O) added before the single rounding.
type ConvolutionAttr struct {
	Stride, Low, High [2]int
	Bias              bool
	Out               tensor.DType
}

// Activation is applied at the end of a Linear.
type Activation uint8

// The activations.
const (
	NoActivation Activation = iota
	ActGelu                 // exact, with erf
	ActGeluTanh             // tanh approximation (gelu_pytorch_tanh)
	ActGeluNew              // the same, every operation of it rounded (gelu_new)
	ActQuickGelu            // x·σ(1.702x)
	ActSilu                 // x·σ(x)
)

// String returns the name that configurations use.
func (a Activation) String() string {
	return [...]string{"none", "gelu", "gelu_tanh", "gelu_new", "quick_gelu", "silu"}[a]
}

// LinearAttr: the product accumulates in f32, the bias is added to the sum, the result is rounded once; then the
// activation is computed from the rounded value and rounded.
type LinearAttr struct {
	Bias bool
	Act  Activation
}

// QuantizedLinearAttr: a Linear in 8 bits. Each row of x is rounded to integers, x·(127/m) to nearest even with m its
// largest magnitude; they multiply those of the weight with exact sums. A sum, in f32, times the row's scale m/127 and then
// the column's takes the place of Linear's. A row whose m is below [QuantizedLeast] counts as zero; one with a NaN or an
// infinity gives NaN.
type QuantizedLinearAttr struct {
	Bias bool
	Act  Activation
}

// QuantizedLeast is the smallest magnitude of a row that is quantised: below it 127/m may overflow.
const QuantizedLeast = 0x1p-120

// MaxQuantizedK bounds the inputs of a QuantizedLinear, so that sums of products of bytes fit an i32.
const MaxQuantizedK = 1 << 17

// RMSNormAttr: x·rsqrt(mean x² + Eps), in f32. With RoundFirst the normalised value is rounded to x's dtype before the
// weight multiplies it (Diffusers' own RMSNorm, T5, Mistral, Qwen); without, it is rounded once at the end (torch.nn.RMSNorm).
type RMSNormAttr struct {
	Eps        float64
	Weight     bool
	RoundFirst bool
}

// LayerNormAttr: (x-mean)/sqrt(var + Eps)·weight + bias in f32, rounded once. Affine says that weight and bias are given.
type LayerNormAttr struct {
	Eps    float64
	Affine bool
}

// GroupNormAttr: normalises each group of C/Groups neighbouring channels over all positions, in f32, rounded once. With
// Silu, x·σ(x) of the rounded result follows, rounded again.
type GroupNormAttr struct {
	Groups int
	Eps    float64
	Silu   bool
}

// AttentionAttr: softmax(Scale·q·kᵀ + bias)·v with everything in f32 and the result rounded once (a backend may round the
// probabilities to the operands' dtype before they multiply v, as PyTorch's CPU kernel does). H must be a multiple of
// the key heads G. Causal lets query i see keys 0…i. Bias is f32 or the operands' dtype, (1 or B, 1 or H, N, M). Mask is
// bool, (1 or B, 1 or H, 1 or N, M), true where a key may be seen; a query that sees no key gives zeros.
type AttentionAttr struct {
	Scale  float64
	Causal bool
	Bias   bool
	Mask   bool
}

// RopeAttr selects how pairs are formed: interleaved (x0, x1), (x2, x3) … or, with HalfSplit, (x0, x[D/2]) …
// The result is x·cos + rot(x)·sin in f32, rounded once.
type RopeAttr struct{ HalfSplit bool }

// GeluAttr selects the form: ActGelu, ActGeluTanh, ActGeluNew or ActQuickGelu.
type GeluAttr struct{ Form Activation }

// UpsampleAttr is the integer factor for height and width.
type UpsampleAttr struct{ Factor int }

// UpsampleConvAttr: nearest-neighbour upsampling to twice the height and width, then a convolution with stride 1 and one
// zero all around. Every output pixel sees four different input pixels only, so a kernel may add up the weights that meet
// the same pixel, in f32, rounded to the weight's dtype.
type UpsampleConvAttr struct{ Bias bool }

// Convolution is the convolution after the upsampling.
func (a UpsampleConvAttr) Convolution() ConvolutionAttr {
	one := [2]int{1, 1}
	return ConvolutionAttr{Stride: one, Low: one, High: one, Bias: a.Bias}
}

func (a InputAttr) AppendKey(b []byte) []byte     { return appendInt(b, a.Index) }
func (a ConvertAttr) AppendKey(b []byte) []byte   { return append(b, byte(a.DType)) }
func (a CompareAttr) AppendKey(b []byte) []byte   { return append(b, byte(a.Direction)) }
func (a ReshapeAttr) AppendKey(b []byte) []byte   { return appendInts(b, a.Shape) }
func (a TransposeAttr) AppendKey(b []byte) []byte { return appendInts(b, a.Perm) }
func (a ConstantAttr) AppendKey(b []byte) []byte {
	b = Type{a.Value.DType, a.Value.Shape}.AppendKey(b)
	return append(b, a.Value.Data...)
}
func (a IotaAttr) AppendKey(b []byte) []byte { return appendInt(a.Type.AppendKey(b), a.Axis) }
func (a BroadcastInDimAttr) AppendKey(b []byte) []byte {
	return appendInts(appendInts(b, a.Shape), a.Axes)
}
func (a SliceAttr) AppendKey(b []byte) []byte {
	return appendInts(appendInts(appendInts(b, a.Start), a.Limit), a.Stride)
}
func (a PadAttr) AppendKey(b []byte) []byte {
	return appendInts(appendInts(appendInts(b, a.Low), a.High), a.Interior)
}
func (a ConcatenateAttr) AppendKey(b []byte) []byte  { return appendInt(b, a.Axis) }
func (a DynamicSliceAttr) AppendKey(b []byte) []byte { return appendInts(b, a.Sizes) }
func (a ReduceAttr) AppendKey(b []byte) []byte       { return appendInts(append(b, byte(a.Kind)), a.Axes) }
func (a DotGeneralAttr) AppendKey(b []byte) []byte {
	b = appendInts(appendInts(b, a.LhsBatch), a.RhsBatch)
	return append(appendInts(appendInts(b, a.LhsContract), a.RhsContract), byte(a.Out))
}
func (a ConvolutionAttr) AppendKey(b []byte) []byte {
	b = appendInts(appendInts(appendInts(b, a.Stride[:]), a.Low[:]), a.High[:])
	return append(appendBool(b, a.Bias), byte(a.Out))
}
func (a LinearAttr) AppendKey(b []byte) []byte { return append(appendBool(b, a.Bias), byte(a.Act)) }
func (a QuantizedLinearAttr) AppendKey(b []byte) []byte {
	return append(appendBool(b, a.Bias), byte(a.Act))
}
func (a RMSNormAttr) AppendKey(b []byte) []byte {
	return appendBool(appendBool(appendFloat(b, a.Eps), a.Weight), a.RoundFirst)
}
func (a LayerNormAttr) AppendKey(b []byte) []byte { return appendBool(appendFloat(b, a.Eps), a.Affine) }
func (a GroupNormAttr) AppendKey(b []byte) []byte {
	return appendBool(appendFloat(appendInt(b, a.Groups), a.Eps), a.Silu)
}
func (a AttentionAttr) AppendKey(b []byte) []byte {
	return appendBool(appendBool(appendBool(appendFloat(b, a.Scale), a.Causal), a.Bias), a.Mask)
}
func (a RopeAttr) AppendKey(b []byte) []byte         { return appendBool(b, a.HalfSplit) }
func (a GeluAttr) AppendKey(b []byte) []byte         { return append(b, byte(a.Form)) }
func (a UpsampleAttr) AppendKey(b []byte) []byte     { return appendInt(b, a.Factor) }
func (a UpsampleConvAttr) AppendKey(b []byte) []byte { return appendBool(b, a.Bias) }
