package nn

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
)

// modulationEps is the epsilon of the norms below in every model that uses them.
const modulationEps = 1e-6

// AdaLayerNorm is a layer norm without affine parameters, modulated by parts of Linear(SiLU(temb)): Diffusers'
// AdaLayerNormZero (6 parts: shift, scale, gate of attention, then of the MLP) and AdaLayerNormZeroSingle (3 parts).
//
// The parts depend on temb alone: a model whose loop knows all timesteps takes them Ahead, and applies them step by step.
type AdaLayerNorm struct {
	Block
	Linear Linear `weight:"linear"`
	parts  int
	width  int
}

// NewAdaLayerNorm returns an unbound layer with so many parts.
func NewAdaLayerNorm(width, parts int) AdaLayerNorm {
	return AdaLayerNorm{Linear: NewLinear(width, parts*width, true), parts: parts, width: width}
}

// Ahead returns all parts side by side, (R, parts·D), for SiLU(temb) of any number of rows (R, D).
func (a *AdaLayerNorm) Ahead(silu engine.Value) engine.Value { return ahead(&a.Block, &a.Linear, silu) }

// ahead is a product by itself, so that all layers of a shape are the same program.
func ahead(b *Block, l *Linear, silu engine.Value) engine.Value {
	return b.Run(func(in []engine.Value) []engine.Value { return []engine.Value{l.Forward(in[0])} }, silu)[0]
}

// Apply returns the modulated norm of x (B, N, D), made with the first two parts, and the remaining parts (B, 1, D); parts
// is what Ahead returns, of x's rows: (B, parts·D).
func (a *AdaLayerNorm) Apply(x, parts engine.Value) (engine.Value, []engine.Value) {
	p := parts.Reshape(parts.Dim(0), 1, a.parts*a.width).Chunk(2, a.parts)
	y := engine.LayerNorm(x, engine.Value{}, engine.Value{}, modulationEps).Modulate(p[1], p[0])
	if eng := x.Engine(); eng != nil && eng.Tapping() {
		outs := []engine.Value{y}
		for _, v := range p[2:] {
			outs = append(outs, v.Reshape(v.Dim(0), v.Dim(2)))
		}
		a.TapAll(outs...)
	}
	return y, p[2:]
}

// ApplyDual is Apply for a layer of 9 parts, Diffusers' SD35AdaLayerNormZeroX: the norm modulated once for joint attention
// and once, with the seventh and eighth part, for the second attention. The remaining parts are all from the third on.
func (a *AdaLayerNorm) ApplyDual(x, parts engine.Value) (joint, second engine.Value, rest []engine.Value) {
	p := parts.Reshape(parts.Dim(0), 1, a.parts*a.width).Chunk(2, a.parts)
	n := engine.LayerNorm(x, engine.Value{}, engine.Value{}, modulationEps)
	joint, second = n.Modulate(p[1], p[0]), n.Modulate(p[7], p[6])
	if eng := x.Engine(); eng != nil && eng.Tapping() {
		flat := func(v engine.Value) engine.Value { return v.Reshape(v.Dim(0), v.Dim(2)) }
		a.TapAll(joint, flat(p[2]), flat(p[3]), flat(p[4]), flat(p[5]), second, flat(p[8]))
	}
	return joint, second, p[2:]
}

// AdaLayerNormContinuous is the last norm of a transformer: scale comes before shift here.
type AdaLayerNormContinuous struct {
	Block
	Linear Linear `weight:"linear"`
	Eps    float64
	width  int
}

// NewAdaLayerNormContinuous returns an unbound layer.
func NewAdaLayerNormContinuous(width, cond int) AdaLayerNormContinuous {
	return AdaLayerNormContinuous{Linear: NewLinear(cond, 2*width, true), Eps: modulationEps, width: width}
}

// Forward takes x (B, N, D) and temb (B, D) to (B, N, D).
func (a *AdaLayerNormContinuous) Forward(x, temb engine.Value) engine.Value {
	return a.Apply(x, a.Linear.Forward(temb.Silu()))
}

// Ahead is as AdaLayerNorm's.
func (a *AdaLayerNormContinuous) Ahead(silu engine.Value) engine.Value {
	return ahead(&a.Block, &a.Linear, silu)
}

// Apply is Forward with what Ahead returns, of x's rows: (B, 2·D).
func (a *AdaLayerNormContinuous) Apply(x, parts engine.Value) engine.Value {
	p := parts.Reshape(parts.Dim(0), 1, 2*a.width).Chunk(2, 2)
	return a.Tap(engine.LayerNorm(x, engine.Value{}, engine.Value{}, a.Eps).Modulate(p[0], p[1]))
}

// FeedForward is Diffusers' FeedForward with gelu-approximate: net.0.proj, tanh GELU, net.2.
type FeedForward struct {
	Module
	Proj Linear `weight:"net.0.proj"`
	Out  Linear `weight:"net.2"`
}

// NewFeedForward returns an unbound layer.
func NewFeedForward(width, hidden int) FeedForward {
	return FeedForward{Proj: NewLinear(width, hidden, true), Out: NewLinear(hidden, width, true)}
}

// Forward keeps the shape of x (B, N, D).
func (f *FeedForward) Forward(x engine.Value) engine.Value {
	return f.Tap(f.Out.Forward(f.Proj.Act(x, graph.ActGeluTanh)))
}
