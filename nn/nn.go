// Package nn has the layers that models share, and binds their parameters to a checkpoint.
//
// A layer is a struct whose fields carry their checkpoint names in `weight` tags; a constructor gives every [Param] its
// shape, and [Bind] fills the whole tree, reporting every missing, unexpected and misshapen key in one error:
//
//	type Head struct {
//		nn.Module
//		Norm nn.LayerNorm `weight:"norm"`
//		Proj nn.Linear    `weight:"proj"`
//	}
//
//	h := &Head{Norm: nn.NewLayerNorm(64, 1e-6, true), Proj: nn.NewLinear(64, 10, true)}
//	err := nn.Bind(h, params, "head") // reads norm.weight, norm.bias, proj.weight, proj.bias
package nn

import (
	"strconv"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// Param is one parameter: its expected shape, and its value once bound. The zero Param is not expected in a checkpoint,
// and its value is the zero Value (a layer without bias has such a bias).
type Param struct {
	engine.Value
	Expect tensor.Shape
}

// P returns a parameter of the given shape.
func P(shape ...int) Param { return Param{Expect: shape} }

// Module gives a layer or block its name in the model. Embed it to report results under that name.
type Module struct{ path string }

func (m *Module) setPath(p string) { m.path = p }

// Path returns the name that Bind gave, such as "transformer.transformer_blocks.3.norm1".
func (m *Module) Path() string { return m.path }

// Tap reports v, the module's result, to whoever listens to the engine, and returns it.
func (m *Module) Tap(v engine.Value) engine.Value {
	if e := v.Engine(); e != nil && m.path != "" && e.Tapping() {
		e.Tap(m.path, v)
	}
	return v
}

// TapChild reports v under the name of a part of m that is no module here.
func (m *Module) TapChild(name string, v engine.Value) engine.Value {
	if e := v.Engine(); e != nil && m.path != "" && e.Tapping() {
		e.Tap(m.path+"."+name, v)
	}
	return v
}

// TapAll reports several results as out0, out1 ….
func (m *Module) TapAll(vs ...engine.Value) {
	if len(vs) == 0 || m.path == "" {
		return
	}
	e := vs[0].Engine()
	if e == nil || !e.Tapping() {
		return
	}
	for i, v := range vs {
		e.Tap(m.path+".out"+strconv.Itoa(i), v)
	}
}

// Block is embedded by the repeated blocks of a model. A block is where a fused recording is cut, and the unit in which
// parameters of a model larger than its device will move.
type Block struct{ Module }

// Run calls forward on the inputs, at a cut: fused programs end at the block's inputs and outputs, so every block of a
// class is the same program. What is donated it may take over.
func (b *Block) Run(forward func(in []engine.Value) []engine.Value, in ...engine.Value) []engine.Value {
	return engine.Block(forward, in...)
}
