package nn

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// fakeParams has shapes only.
type fakeParams map[string]tensor.Shape

func (p fakeParams) Names() []string {
	var names []string
	for n := range p {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
func (p fakeParams) Shape(name string) (tensor.Shape, bool) { s, ok := p[name]; return s, ok }
func (p fakeParams) Value(string) (engine.Value, error)     { return engine.Value{}, nil }

type testModel struct {
	Module
	Norm   LayerNorm     `weight:"norm"`
	Layers []*testLayer  `weight:"layers"`
	Extra  *MLPEmbedding `weight:"extra"` // absent
}

type testLayer struct {
	Block
	Proj Linear `weight:"proj.0"`
}

func newTestModel() *testModel {
	return &testModel{
		Norm:   NewLayerNorm(4, 1e-6, true),
		Layers: []*testLayer{{Proj: NewLinear(4, 8, true)}, {Proj: NewLinear(4, 8, false)}},
	}
}

func fitting() fakeParams {
	return fakeParams{
		"norm.weight": {4}, "norm.bias": {4}, "layers.0.proj.0.weight": {8, 4}, "layers.0.proj.0.bias": {8}, "layers.1.proj.0.weight": {8, 4},
	}
}

func TestBind(t *testing.T) {
	m := newTestModel()
	if err := Bind(m, fitting(), "model"); err != nil {
		t.Fatal(err)
	}
	if p := m.Layers[1].Proj.Path(); p != "model.layers.1.proj.0" {
		t.Errorf("path %q", p)
	}
}

// Everything that does not fit is listed together, in one line.
func TestBindListsAll(t *testing.T) {
	p := fitting()
	delete(p, "norm.bias")
	delete(p, "layers.0.proj.0.weight")
	p["layers.1.proj.0.bias"] = tensor.Shape{8}
	p["stray"] = tensor.Shape{1}
	p["layers.1.proj.0.weight"] = tensor.Shape{4, 8}
	err := Bind(newTestModel(), p, "model")
	var b *BindError
	if !errors.As(err, &b) {
		t.Fatalf("got %v", err)
	}
	if len(b.Missing) != 2 || len(b.Unexpected) != 2 || len(b.Misshapen) != 1 {
		t.Errorf("%+v", b)
	}
	for _, want := range []string{"model", "norm.bias", "stray", "layers.1.proj.0.weight", "[4 8]", "[8 4]"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Error("more than one line")
	}
	p = fitting()
	p["buffers.position_ids"], p["logit_scale"] = tensor.Shape{1}, tensor.Shape{}
	if err := Bind(newTestModel(), p, "model", "buffers.*", "logit_scale"); err != nil {
		t.Errorf("ignored keys: %v", err)
	}
}

func TestBindErrorStaysShort(t *testing.T) {
	p := fakeParams{}
	for range 300 {
		p["stray"+strings.Repeat("x", len(p))] = tensor.Shape{1}
	}
	if err := Bind(newTestModel(), p, "model"); err == nil || len(err.Error()) > 3000 || !strings.Contains(err.Error(), "and 295 more") {
		t.Errorf("%v", err)
	}
}
