package t5

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
)

// FeedForward is wo(act(wi x)), or with a gate wo(act(wi_0 x)·wi_1 x). The layers of the other form are not expected.
type FeedForward struct {
	WI  nn.Linear `weight:"wi"`
	WI0 nn.Linear `weight:"wi_0"`
	WI1 nn.Linear `weight:"wi_1"`
	WO  nn.Linear `weight:"wo"`
	act activation
}

// activation is one that a Linear applies itself, or a function of its result.
type activation struct {
	fused graph.Activation
	then  func(engine.Value) engine.Value // nil for a fused one
}

// feedForward reads feed_forward_proj: ACT or gated-ACT, by transformers' names.
// Source: T5Config.__post_init__, which reads gated-gelu as gelu_new.
func (c *Config) feedForward() (a activation, gated bool, err error) {
	name, gated := strings.CutPrefix(c.FeedForwardProj, "gated-")
	switch {
	case c.FeedForwardProj == "gated-gelu":
		a.fused = graph.ActGeluNew
	case name == "relu":
		a.then = func(x engine.Value) engine.Value { return x.Max(x.Engine().ConstScalar(x.DType(), 0)) }
	case name == "tanh":
		a.then = engine.Value.Tanh
	case name == "linear":
	default:
		if a.fused, err = nn.ActivationByName(name); err != nil {
			err = fmt.Errorf("feed_forward_proj %q is not supported (known: relu, gelu, gelu_new, silu, tanh, linear, each also as gated-…)", c.FeedForwardProj)
		}
	}
	return a, gated, err
}

func newFeedForward(c *Config) FeedForward {
	act, gated, _ := c.feedForward() // a valid configuration has no error
	f := FeedForward{WO: nn.NewLinear(c.DFF, c.DModel, false), act: act}
	if gated {
		f.WI0, f.WI1 = nn.NewLinear(c.DModel, c.DFF, false), nn.NewLinear(c.DModel, c.DFF, false)
	} else {
		f.WI = nn.NewLinear(c.DModel, c.DFF, false)
	}
	return f
}

// Forward keeps the shape of x (B, L, D).
func (f *FeedForward) Forward(x engine.Value) engine.Value {
	var h engine.Value // (B, L, d_ff)
	if f.WI.Weight.Expect != nil {
		h = f.activate(&f.WI, x)
	} else {
		h = f.activate(&f.WI0, x).Mul(f.WI1.Forward(x))
	}
	return f.WO.Forward(h.Convert(f.WO.DType())) // f32 in an f16 model, see KeepF32
}

func (f *FeedForward) activate(l *nn.Linear, x engine.Value) engine.Value {
	h := l.Act(x, f.act.fused)
	if f.act.then != nil {
		h = f.act.then(h)
	}
	return h
}
