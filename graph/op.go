// Package graph is the language in which models are recorded: operations with inferred types, and graphs of them.
//
// The main types are [Node], one operation with its static type, and [Graph], a closed program with inputs and outputs:
//
//	x := graph.NewInput(0, graph.Type{DType: tensor.F32, Shape: tensor.Shape{4, 8}})
//	y, err := graph.Make(graph.Tanh, nil, x)
//	g, err := graph.New("tanh", []*graph.Node{x}, []*graph.Node{y})
//
// Primitive operations have StableHLO's meaning and names. Composite operations are what diffusion spends its time on;
// each can be rewritten into primitives ([Decompose]), which is its definition: a backend with a kernel for it computes
// the same, with the same roundings.
//
// Rounding: an operation on a half type (bf16, f16) computes in f32 and rounds its result once, to nearest even. Sums
// (reduce, dot_general, convolution, and the composites built on them) accumulate in f32.
package graph

import "fmt"

// Op names an operation.
type Op uint8

// Primitive operations.
const (
	Invalid  Op = iota
	Input       // attr InputAttr
	Constant    // attr ConstantAttr

	// Elementwise, one operand.
	Neg
	Abs
	Sign
	Exp
	Log
	Sqrt
	Rsqrt
	Tanh
	Erf
	Logistic
	Sin
	Cos
	Floor
	Ceil
	Not
	IsFinite
	Convert // attr ConvertAttr

	// Elementwise, two operands of one dtype; shapes broadcast as in NumPy. Max and Min propagate NaN.
	Add
	Sub
	Mul
	Div
	Max
	Min
	Pow
	Rem
	And
	Or
	Compare // attr CompareAttr; the result is bool

	Select // bool predicate, two values; shapes broadcast as in NumPy

	// Shape and data movement.
	Iota            // attr IotaAttr
	Reshape         // attr ReshapeAttr
	Transpose       // attr TransposeAttr
	BroadcastInDim  // attr BroadcastInDimAttr
	Slice           // attr SliceAttr
	Pad             // value, scalar filler; attr PadAttr
	Concatenate     // attr ConcatenateAttr
	Gather          // table (V, …), integer rows (…): rows of the table; an index out of range is clamped
	DynamicSlice    // value, one i32 scalar per axis; attr DynamicSliceAttr
	DynamicUpdate   // value, update, one i32 scalar per axis (dynamic_update_slice)
	Reduce          // attr ReduceAttr
	DotGeneral      // attr DotGeneralAttr
	Convolution     // x (B, H, W, C), w (O, C, KH, KW) → (B, H', W', O); attr ConvolutionAttr
	OptimizeBarrier // identity that no rewrite crosses (optimization_barrier)

	// Composite operations.
	Linear          // x (…, K), w (N, K), bias (N) → (…, N); attr LinearAttr
	RMSNorm         // x (…, D), weight (D); attr RMSNormAttr
	LayerNorm       // x (…, D), weight (D), bias (D); attr LayerNormAttr
	GroupNorm       // x (B, …, C), weight (C), bias (C); attr GroupNormAttr
	Softmax         // over the last axis
	Attention       // q (B, N, H, D), k and v (B, M, G, D), bias?, mask? → (B, N, H, D); attr AttentionAttr
	Rope            // x (B, N, H, D), cos and sin (N, D) in f32; attr RopeAttr
	Gelu            // attr GeluAttr
	Silu            // x·σ(x)
	Modulate        // x·(1+scale)+shift: x, scale, shift, broadcast as in NumPy
	UpsampleNearest // x (B, H, W, C) → (B, fH, fW, C); attr UpsampleAttr
	UpsampleConv    // x (B, H, W, C), w (O, C, 3, 3), bias (O) → (B, 2H, 2W, O); attr UpsampleConvAttr
	QuantizedLinear // x (…, K), w (N, K) in i8, scale (N) in f32, bias (N) → (…, N); attr QuantizedLinearAttr
	numOps
)

var opNames = [numOps]string{
	Invalid: "invalid", Input: "input", Constant: "constant",
	Neg: "negate", Abs: "abs", Sign: "sign", Exp: "exponential", Log: "log", Sqrt: "sqrt", Rsqrt: "rsqrt", Tanh: "tanh", Erf: "erf",
	Logistic: "logistic", Sin: "sine", Cos: "cosine", Floor: "floor", Ceil: "ceil", Not: "not", IsFinite: "is_finite", Convert: "convert",
	Add: "add", Sub: "subtract", Mul: "multiply", Div: "divide", Max: "maximum", Min: "minimum", Pow: "power", Rem: "remainder",
	And: "and", Or: "or", Compare: "compare", Select: "select",
	Iota: "iota", Reshape: "reshape", Transpose: "transpose", BroadcastInDim: "broadcast_in_dim", Slice: "slice", Pad: "pad",
	Concatenate: "concatenate", Gather: "gather", DynamicSlice: "dynamic_slice", DynamicUpdate: "dynamic_update_slice", Reduce: "reduce",
	DotGeneral: "dot_general", Convolution: "convolution", OptimizeBarrier: "optimization_barrier",
	Linear: "linear", RMSNorm: "rms_norm", LayerNorm: "layer_norm", GroupNorm: "group_norm", Softmax: "softmax", Attention: "attention",
	Rope: "rope", Gelu: "gelu", Silu: "silu", Modulate: "modulate", UpsampleNearest: "upsample_nearest",
	UpsampleConv:    "upsample_conv",
	QuantizedLinear: "quantized_linear",
}

// String returns StableHLO's name of a primitive, or the composite's name.
func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// IsUnary reports whether o is elementwise with one operand; Convert is included.
func (o Op) IsUnary() bool { return o >= Neg && o <= Convert }

// IsBinary reports whether o is elementwise with two operands; Compare is included.
func (o Op) IsBinary() bool { return o >= Add && o <= Compare }

// IsElementwise reports whether every element of the result depends on one element of each operand only.
func (o Op) IsElementwise() bool {
	return o.IsUnary() || o.IsBinary() || o == Select || o == Gelu || o == Silu || o == Modulate
}

// IsComposite reports whether o can be decomposed into primitives.
func (o Op) IsComposite() bool { return o >= Linear && o < numOps }

// Ops calls fn for every operation, for tables that must cover them all.
func Ops(fn func(Op)) {
	for o := Input; o < numOps; o++ {
		fn(o)
	}
}
