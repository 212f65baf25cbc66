package nn

import (
	"fmt"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Linear is y = x·wᵀ + b (torch.nn.Linear).
type Linear struct {
	Module
	Weight Param `weight:"weight"` // (out, in)
	Bias   Param `weight:"bias"`   // (out)

	scale   engine.Value // (out) in f32, where Weight is in 8 bits; see Quantizer
	plain   tensor.DType // of the weight that was quantised
	lowRank []LowRank    // see Adapt
}

// DType is the dtype that the bound layer computes in.
func (l *Linear) DType() tensor.DType {
	if l.scale.Valid() {
		return l.plain
	}
	return l.Weight.DType()
}

// NewLinear returns an unbound layer.
func NewLinear(in, out int, bias bool) Linear {
	l := Linear{Weight: P(out, in)}
	if bias {
		l.Bias = P(out)
	}
	return l
}

// Forward takes x (…, in) to (…, out).
func (l *Linear) Forward(x engine.Value) engine.Value { return l.Act(x, graph.NoActivation) }

// Act is Forward followed by an activation, in one operation. When values are tapped the two are kept apart, so that the
// layer reports what Diffusers' module returns; the results are the same.
func (l *Linear) Act(x engine.Value, act graph.Activation) engine.Value {
	if len(l.lowRank) > 0 {
		return Activate(l.Tap(l.adapted(x)), act)
	}
	if e := x.Engine(); act != graph.NoActivation && e != nil && e.Tapping() {
		return Activate(l.Tap(l.product(x, graph.NoActivation)), act)
	}
	return l.Tap(l.product(x, act))
}

// product is the layer as its checkpoint has it.
func (l *Linear) product(x engine.Value, act graph.Activation) engine.Value {
	if l.scale.Valid() {
		return engine.QuantizedLinear(x, l.Weight.Value, l.scale, l.Bias.Value, act)
	}
	return engine.Linear(x, l.Weight.Value, l.Bias.Value, act)
}

// RoundFirst is Forward with the product rounded before the bias is added: what PyTorch does where the input's rows don't
// follow each other in memory. In f32 the two are the same.
func (l *Linear) RoundFirst(x engine.Value) engine.Value {
	return l.Tap(engine.Linear(x, l.Weight.Value, engine.Value{}, graph.NoActivation).Add(l.Bias.Value))
}

// Activate applies an activation as an operation of its own.
func Activate(x engine.Value, act graph.Activation) engine.Value {
	switch act {
	case graph.NoActivation:
		return x
	case graph.ActSilu:
		return x.Silu()
	}
	return x.Gelu(act)
}

// ActivationByName returns the activation that configurations call by name (hidden_act, act_fn, dense_act_fn).
func ActivationByName(name string) (graph.Activation, error) {
	switch name {
	case "gelu":
		return graph.ActGelu, nil
	case "gelu_new":
		return graph.ActGeluNew, nil
	case "gelu_pytorch_tanh", "gelu-approximate", "gelu_tanh":
		return graph.ActGeluTanh, nil
	case "quick_gelu":
		return graph.ActQuickGelu, nil
	case "silu", "swish":
		return graph.ActSilu, nil
	}
	return 0, fmt.Errorf("activation %q is not supported (known: gelu, gelu_new, quick_gelu, silu)", name)
}

// Embedding looks rows up by integer id.
type Embedding struct {
	Module
	Weight Param `weight:"weight"` // (rows, width)
}

// NewEmbedding returns an unbound layer.
func NewEmbedding(rows, width int) Embedding { return Embedding{Weight: P(rows, width)} }

// Forward takes ids (…) to (…, width).
func (l *Embedding) Forward(ids engine.Value) engine.Value {
	return l.Tap(l.Weight.Gather(ids))
}

// LayerNorm normalises the last axis (torch.nn.LayerNorm).
type LayerNorm struct {
	Module
	Weight Param `weight:"weight"`
	Bias   Param `weight:"bias"`
	Eps    float64
}

// NewLayerNorm returns an unbound layer, with weight and bias if affine.
func NewLayerNorm(width int, eps float64, affine bool) LayerNorm {
	l := LayerNorm{Eps: eps}
	if affine {
		l.Weight, l.Bias = P(width), P(width)
	}
	return l
}

// Forward keeps the shape of x (…, width).
func (l *LayerNorm) Forward(x engine.Value) engine.Value {
	return l.Tap(engine.LayerNorm(x, l.Weight.Value, l.Bias.Value, l.Eps))
}

// RMSNorm normalises the last axis by its root mean square. RoundFirst selects the rounding of Diffusers' own class and
// of the language models, see graph.RMSNormAttr.
type RMSNorm struct {
	Module
	Weight     Param `weight:"weight"`
	Eps        float64
	RoundFirst bool
}

// NewRMSNorm returns an unbound layer with a weight.
func NewRMSNorm(width int, eps float64, roundFirst bool) RMSNorm {
	return RMSNorm{Weight: P(width), Eps: eps, RoundFirst: roundFirst}
}

// Forward keeps the shape of x (…, width).
func (l *RMSNorm) Forward(x engine.Value) engine.Value {
	return l.Tap(engine.RMSNorm(x, l.Weight.Value, l.Eps, l.RoundFirst))
}

// GroupNorm normalises groups of channels of x (B, …, C), channels last.
type GroupNorm struct {
	Module
	Weight Param `weight:"weight"`
	Bias   Param `weight:"bias"`
	Groups int
	Eps    float64
}

// NewGroupNorm returns an unbound layer.
func NewGroupNorm(groups, channels int, eps float64) GroupNorm {
	return GroupNorm{Weight: P(channels), Bias: P(channels), Groups: groups, Eps: eps}
}

// Forward keeps the shape of x; with silu the activation follows.
func (l *GroupNorm) Forward(x engine.Value, silu bool) engine.Value {
	return engine.GroupNorm(x, l.Weight.Value, l.Bias.Value, l.Groups, l.Eps, silu)
}

// Conv2D convolves x (B, H, W, in), channels last, with a checkpoint's weight (out, in, KH, KW).
type Conv2D struct {
	Module
	Weight    Param `weight:"weight"`
	Bias      Param `weight:"bias"`
	Stride    int
	Low, High [2]int // zero padding before and after height and width
}

// NewConv2D returns an unbound layer with a square kernel, a bias and pad zeros all around.
func NewConv2D(in, out, kernel, stride, pad int) Conv2D {
	return Conv2D{
		Weight: P(out, in, kernel, kernel), Bias: P(out), Stride: stride,
		Low: [2]int{pad, pad}, High: [2]int{pad, pad},
	}
}

// Forward takes (B, H, W, in) to (B, H', W', out).
func (l *Conv2D) Forward(x engine.Value) engine.Value {
	return l.tapNCHW(engine.Conv2D(x, l.Weight.Value, l.Bias.Value, l.Stride, l.Low, l.High))
}

// ForwardUpsampled takes (B, H, W, in) to (B, 2H, 2W, out): the result of Forward for an input of which every pixel is
// repeated twice along height and width. The layer must have a kernel of 3, stride 1 and padding 1.
func (l *Conv2D) ForwardUpsampled(x engine.Value) engine.Value {
	one := [2]int{1, 1}
	if s := l.Weight.Shape(); len(s) == 4 && s[2] == 3 && s[3] == 3 && l.Stride == 1 && l.Low == one && l.High == one {
		return l.tapNCHW(engine.UpsampleConv(x, l.Weight.Value, l.Bias.Value))
	}
	return l.Forward(x.UpsampleNearest(2))
}

// tapNCHW reports a channels-last result in the layout of Diffusers.
func (m *Module) tapNCHW(x engine.Value) engine.Value {
	if e := x.Engine(); e != nil && e.Tapping() {
		m.Tap(ToNCHW(x))
	}
	return x
}

// TapNCHW is Tap for x (B, H, W, C): it is reported as (B, C, H, W), as Diffusers has it.
func (m *Module) TapNCHW(x engine.Value) engine.Value { return m.tapNCHW(x) }

// ToNCHW takes (B, H, W, C) to (B, C, H, W).
func ToNCHW(x engine.Value) engine.Value { return x.Transpose(0, 3, 1, 2) }

// ToNHWC takes (B, C, H, W) to (B, H, W, C).
func ToNHWC(x engine.Value) engine.Value { return x.Transpose(0, 2, 3, 1) }

// Heads takes (B, N, H·D) to (B, N, H, D).
func Heads(x engine.Value, heads int) engine.Value {
	s := x.Shape()
	if len(s) != 3 || heads < 1 || s[2]%heads != 0 {
		return x.Reshape(-1, heads) // fails with the operation's own message where it does not fit
	}
	return x.Reshape(s[0], s[1], heads, s[2]/heads)
}

// Merge takes (B, N, H, D) to (B, N, H·D).
func Merge(x engine.Value) engine.Value {
	return x.Reshape(x.Dim(0), x.Dim(1), x.Dim(2)*x.Dim(3))
}

// upload makes float32 numbers a value, for tables that are computed on the host.
func upload(e *engine.Engine, v []float32, shape ...int) engine.Value {
	return e.Const(tensor.FromFloat32(v, shape...))
}
