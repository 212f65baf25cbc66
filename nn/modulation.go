package nn

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
)

// modulationEps is the epsilon of the norms below in every model that uses them.
const modulationEps = 1e-6

// AdaLayerNorm is a layer norm without affine parameters, modulated by parts of Linear(SiLU(temb)): Diffusers'
// AdaLayerNormZero (6 parts: shift, scale, gate of attention, then of the MLP) and AdaLayerNormZeroSingle (3 parts).
type AdaLayerNorm struct {
	Module
	Linear Linear `weight:"linear"`
	parts  int
	width  int
}

// NewAdaLayerNorm returns an unbound layer with so many parts.
func NewAdaLayerNorm(width, parts int) AdaLayerNorm {
	return AdaLayerNorm{Linear: NewLinear(width, parts*width, true), parts: parts, width: width}
}

// Forward returns the modulated norm of x (B, N, D), made with the first two parts, and the remaining parts (B, 1, D);
// temb is (B, D).
func (a *AdaLayerNorm) Forward(x, temb engine.Value) (engine.Value, []engine.Value) {
	e := a.Linear.Forward(temb.Silu()).Reshape(temb.Dim(0), 1, a.parts*a.width)
	p := e.Chunk(2, a.parts)
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

// AdaLayerNormContinuous is the last norm of a transformer: scale comes before shift here.
type AdaLayerNormContinuous struct {
	Module
	Linear Linear `weight:"linear"`
	width  int
}

// NewAdaLayerNormContinuous returns an unbound layer.
func NewAdaLayerNormContinuous(width, cond int) AdaLayerNormContinuous {
	return AdaLayerNormContinuous{Linear: NewLinear(cond, 2*width, true), width: width}
}

// Forward takes x (B, N, D) and temb (B, D) to (B, N, D).
func (a *AdaLayerNormContinuous) Forward(x, temb engine.Value) engine.Value {
	p := a.Linear.Forward(temb.Silu()).Reshape(temb.Dim(0), 1, 2*a.width).Chunk(2, 2)
	return a.Tap(engine.LayerNorm(x, engine.Value{}, engine.Value{}, modulationEps).Modulate(p[0], p[1]))
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
