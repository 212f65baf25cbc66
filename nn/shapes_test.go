package nn

import (
	"maps"
	"slices"
	"testing"
)

func TestShapesNamesWhatBindReads(t *testing.T) {
	type block struct {
		Proj Linear   `weight:"proj"`
		Norm *RMSNorm `weight:"norm"`
		Off  *Linear  `weight:"off"` // the configuration has no such part
	}
	type net struct {
		Module
		Blocks []*block  `weight:"blocks"`
		Last   LayerNorm `weight:"last"`
		Plain  LayerNorm `weight:"plain"` // without parameters
	}
	norm := NewRMSNorm(3, 1e-6, false)
	n := &net{
		Blocks: []*block{{Proj: NewLinear(2, 3, true), Norm: &norm}, {Proj: NewLinear(3, 4, false)}},
		Last:   NewLayerNorm(4, 1e-6, true), Plain: NewLayerNorm(4, 1e-6, false),
	}
	got := Shapes(n)
	want := []string{"blocks.0.norm.weight", "blocks.0.proj.bias", "blocks.0.proj.weight", "blocks.1.proj.weight", "last.bias", "last.weight"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Fatalf("names %v, want %v", names, want)
	}
	if s := got["blocks.1.proj.weight"]; len(s) != 2 || s[0] != 4 || s[1] != 3 {
		t.Errorf("blocks.1.proj.weight has shape %v, want [4 3]", s)
	}
}
