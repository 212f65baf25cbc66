package flux

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/model/clip"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights/lora"
)

// tinyLayers are the layers of the small model in testdata/golden.
func tinyLayers(t *testing.T) lora.Layers {
	t.Helper()
	f, err := pipeline.OpenFolder("../../testdata/golden/checkpoints/flux_schnell")
	if err != nil {
		t.Fatal(err)
	}
	c, tc, fc := clip.Defaults(), t5.Defaults(), flux.Defaults()
	for name, v := range map[string]pipeline.Config{"text_encoder": &c, "text_encoder_2": &tc, "transformer": &fc} {
		if err := f.ReadConfig(name, v); err != nil {
			t.Fatal(err)
		}
	}
	layers := lora.Layers{}
	for name, m := range map[string]any{"text_encoder": clip.New(c), "text_encoder_2": t5.New(tc), "transformer": flux.New(fc)} {
		layers[name] = map[string]tensor.Shape{}
		for l, x := range nn.Linears(m) {
			layers[name][l] = x.Weight.Expect
		}
	}
	return layers
}

// Files of every trainer give the factors that Diffusers' converter gives, bit for bit.
func TestLoRALayouts(t *testing.T) {
	layers := tinyLayers(t)
	open := func(name string) *lora.Adapter {
		a, err := lora.Open(filepath.Join("../../weights/lora/testdata", name), layers, loraNamings(layers))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	for name, least := range map[string]int{"kohya": 29, "comfy": 26, "mixture": 4, "xlabs": 12} {
		t.Run(name, func(t *testing.T) {
			got, want := open(name+".safetensors"), open(name+".diffusers.safetensors")
			if got.Len() != want.Len() || got.Len() < least {
				t.Fatalf("%d layers, Diffusers has %d", got.Len(), want.Len())
			}
			for component, factors := range want.Factors {
				for _, layer := range slices.Sorted(maps.Keys(factors)) {
					w, g := factors[layer], got.Factors[component][layer]
					if g.A == nil {
						t.Errorf("%s.%s is missing", component, layer)
						continue
					}
					if g.Scale != 1 || w.Scale != 1 {
						t.Errorf("%s.%s: scales %g and %g, expected 1", component, layer, g.Scale, w.Scale)
					}
					for what, pair := range map[string][2]*tensor.Array{"A": {g.A, w.A}, "B": {g.B, w.B}} {
						if !pair[0].Shape.Equal(pair[1].Shape) || pair[0].DType != pair[1].DType || !bytes.Equal(pair[0].Data, pair[1].Data) {
							t.Errorf("%s.%s: %s is %v, Diffusers has %v", component, layer, what, pair[0], pair[1])
						}
					}
				}
			}
		})
	}
}
