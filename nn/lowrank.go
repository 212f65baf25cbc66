package nn

import (
	"reflect"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// LowRank changes a linear layer's result: y += Scale · (x·Aᵀ)·Bᵀ, each step rounded to the layer's dtype, as peft's
// adapters do that are not fused into the weights.
type LowRank struct {
	A     engine.Value // (rank, in)
	B     engine.Value // (out, rank)
	Scale engine.Value // one f32, a parameter: another strength is no other program
}

// Adapt adds a change to those that the layer has. Functions that were traced before keep the old ones.
func (l *Linear) Adapt(r LowRank) { l.lowRank = append(l.lowRank, r) }

// adapted is Forward with the layer's changes.
func (l *Linear) adapted(x engine.Value) engine.Value {
	y := l.product(x, graph.NoActivation)
	for _, r := range l.lowRank {
		d := engine.Linear(x, r.A, engine.Value{}, graph.NoActivation) // (…, rank)
		d = engine.Linear(d, r.B, engine.Value{}, graph.NoActivation)  // (…, out)
		// The scale is no number of the dtype: the product is rounded once.
		y = y.Add(d.Convert(tensor.F32).Mul(r.Scale).Convert(y.DType()))
	}
	return y
}

var linearType = reflect.TypeFor[Linear]()

// Linears returns the linear layers of a model, a pointer to a struct, by their names in a checkpoint.
func Linears(model any) map[string]*Linear {
	found := map[string]*Linear{}
	walkTagged(reflect.ValueOf(model), "", func(name string, v reflect.Value) bool {
		if v.Type() != linearType {
			return true
		}
		if l := v.Addr().Interface().(*Linear); l.Weight.Expect != nil {
			found[name] = l
		}
		return false
	})
	return found
}
