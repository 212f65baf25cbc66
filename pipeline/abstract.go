package pipeline

import (
	"fmt"
	"slices"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/auto"
)

// Abstract gives the buffer that stands for a parameter of a component, in a pipeline whose configurations are read but
// whose weights and vocabularies are not. Such a pipeline computes nothing: it shows which programs a generation runs.
type Abstract func(component, name string, t graph.Type) (backend.Buffer, error)

// bindAbstract binds a model to parameters of the shapes that it expects.
func bindAbstract(e *engine.Engine, o Options, component string, model any, p placement.Options) (*Weights, error) {
	p.DType = o.DType
	if p.DType == tensor.Invalid {
		p.DType = tensor.BF16 // what the families that Gesso knows are published in
	}
	a := &abstractParams{eng: e, fn: o.Abstract, component: component, shapes: nn.Shapes(model), p: p}
	if err := nn.Bind(model, a, component); err != nil {
		return nil, err
	}
	return &Weights{Resident: &placement.Resident{}, DType: p.DType}, nil
}

// abstractParams is nn.Params of shapes alone.
type abstractParams struct {
	eng       *engine.Engine
	fn        Abstract
	component string
	shapes    map[string]tensor.Shape
	p         placement.Options
}

func (a *abstractParams) Names() []string {
	names := make([]string, 0, len(a.shapes))
	for n := range a.shapes {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (a *abstractParams) Shape(name string) (tensor.Shape, bool) {
	s, ok := a.shapes[name]
	return s, ok
}

func (a *abstractParams) Value(name string) (engine.Value, error) {
	t := graph.Type{DType: a.p.DType, Shape: a.shapes[name]}
	if a.p.Keep != nil && a.p.Keep(name, a.p.DType) {
		t.DType = tensor.F32
	}
	return a.eng.Param(t, abstractParam{a, name, t}), nil
}

type abstractParam struct {
	a    *abstractParams
	name string
	t    graph.Type
}

func (p abstractParam) Buffer() (backend.Buffer, error) { return p.a.fn(p.a.component, p.name, p.t) }

// LoadTokenizer opens the tokenizer in a component's folder. An abstract pipeline has one that knows no words.
func (f *Folder) LoadTokenizer(o Options, component string) (tokenizer.Tokenizer, error) {
	if o.Abstract != nil {
		return wordless{}, nil
	}
	return auto.Load(f.Path(component), tokenizer.Options{})
}

// wordless is a tokenizer that gives padding only.
type wordless struct{}

func (wordless) Encode(_ string, maxLength int) (tokenizer.Encoding, error) {
	if maxLength < 1 {
		return tokenizer.Encoding{}, fmt.Errorf("a length of %d tokens", maxLength)
	}
	return tokenizer.Encoding{IDs: make([]int64, maxLength), Mask: make([]int64, maxLength)}, nil
}

func (wordless) Decode([]int64) string { return "" }
func (wordless) MaxLength() int        { return 0 }
func (wordless) VocabSize() int        { return 1 }
