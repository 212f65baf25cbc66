package lora

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// layers is a model with two layers, the second of two joined parts in files that call it "qk".
var layers = Layers{"net": {"a.q": {4, 6}, "a.k": {2, 6}, "b": {4, 4}}}

func namings() []Naming {
	return []Naming{
		Same("net.", "net", layers),
		{Prefix: "flat_", Flat: true, Names: map[string]Target{
			"a.qk": {Component: "net", Layers: []string{"a.q", "a.k"}}, "b": {Component: "net", Layers: []string{"b"}, Swap: true},
		}},
	}
}

func counting(d tensor.DType, rows, cols int) *tensor.Array {
	v := make([]float32, rows*cols)
	for i := range v {
		v[i] = float32(i + 1)
	}
	a, err := tensor.FromFloat32(v, rows, cols).Convert(d)
	if err != nil {
		panic(err)
	}
	return a
}

func open(t *testing.T, tensors map[string]*tensor.Array, metadata map[string]string) (*Adapter, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := weights.Save(path, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path, layers, namings())
	if err == nil {
		t.Cleanup(func() { a.Close() })
	}
	return a, err
}

// A joined layer's first factor is shared and the rows of its second are divided; a small alpha is folded in by powers
// of two; halves that are the other way round are exchanged.
func TestJoinedAndSwapped(t *testing.T) {
	a, err := open(t, map[string]*tensor.Array{
		"flat_a_qk.lora_down.weight": counting(tensor.BF16, 2, 6), "flat_a_qk.lora_up.weight": counting(tensor.BF16, 6, 2),
		"flat_a_qk.alpha":         tensor.FromFloat32([]float32{0.125}),
		"flat_b.lora_down.weight": counting(tensor.F32, 1, 4), "flat_b.lora_up.weight": counting(tensor.F32, 4, 1),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, k, b := a.Factors["net"]["a.q"], a.Factors["net"]["a.k"], a.Factors["net"]["b"]
	// alpha/rank = 1/16 becomes 1/4 in the first factor and 1/4 in the second.
	for what, c := range map[string]struct {
		a     *tensor.Array
		first float64
		shape tensor.Shape
	}{
		"q.A": {q.A, 0.25, tensor.Shape{2, 6}}, "k.A": {k.A, 0.25, tensor.Shape{2, 6}},
		"q.B": {q.B, 0.25, tensor.Shape{4, 2}}, "k.B": {k.B, 9 * 0.25, tensor.Shape{2, 2}},
		"b.A": {b.A, 1, tensor.Shape{1, 4}}, "b.B": {b.B, 3, tensor.Shape{4, 1}},
	} {
		if got := c.a.Float64s()[0]; got != c.first || !c.a.Shape.Equal(c.shape) {
			t.Errorf("%s is %v and begins with %g, expected %v and %g", what, c.a.Shape, got, c.shape, c.first)
		}
	}
	if a.Len() != 3 || q.Scale != 1 || b.Scale != 1 {
		t.Errorf("%d layers, scales %g and %g", a.Len(), q.Scale, b.Scale)
	}
}

// The strength comes from alpha tensors, from peft's metadata with its patterns, or is 1.
func TestScale(t *testing.T) {
	factors := func(extra map[string]*tensor.Array) map[string]*tensor.Array {
		m := map[string]*tensor.Array{}
		for l, s := range layers["net"] {
			m["net."+l+".lora_A.weight"], m["net."+l+".lora_B.weight"] = counting(tensor.F32, 2, s[1]), counting(tensor.F16, s[0], 2)
		}
		for n, x := range extra {
			m[n] = x
		}
		return m
	}
	number := func(x float32) *tensor.Array { return tensor.FromFloat32([]float32{x}) }
	for name, c := range map[string]struct {
		extra   map[string]*tensor.Array
		meta    string
		q, k, b float64
	}{
		"nothing":        {nil, "", 1, 1, 1},
		"alphas":         {map[string]*tensor.Array{"net.a.q.alpha": number(3), "net.a.k.alpha": number(3), "net.b.alpha": number(8)}, "", 1.5, 1.5, 4},
		"one without":    {map[string]*tensor.Array{"net.a.q.alpha": number(3), "net.a.k.alpha": number(3)}, "", 1.5, 1.5, 1.5},
		"metadata":       {nil, `{"net.lora_alpha": 10, "net.r": 2, "other.lora_alpha": 1}`, 5, 5, 5},
		"pattern":        {nil, `{"net.lora_alpha": 2, "net.alpha_pattern": {"q": 6, "^b": 8}}`, 3, 1, 4},
		"rank-stable":    {nil, `{"net.lora_alpha": 2, "net.use_rslora": true}`, math.Sqrt2, math.Sqrt2, math.Sqrt2},
		"other's":        {nil, `{"other.lora_alpha": 10}`, 1, 1, 1},
		"null pattern":   {nil, `{"net.lora_alpha": null, "net.alpha_pattern": null}`, 1, 1, 1},
		"whole or start": {nil, `{"net.lora_alpha": 2, "net.alpha_pattern": {"^q": 6}}`, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var meta map[string]string
			if c.meta != "" {
				meta = map[string]string{metadataKey: c.meta}
			}
			a, err := open(t, factors(c.extra), meta)
			if err != nil {
				t.Fatal(err)
			}
			for l, want := range map[string]float64{"a.q": c.q, "a.k": c.k, "b": c.b} {
				if got := a.Factors["net"][l].Scale; math.Abs(got-want) > 1e-15 {
					t.Errorf("%s is scaled by %g, expected %g", l, got, want)
				}
			}
		})
	}
	for _, meta := range []string{`{`, `[]`, `{"net.lora_alpha": "much"}`, `{"net.use_dora": true}`, `{"net.alpha_pattern": {"(": 1}}`} {
		if _, err := open(t, factors(nil), map[string]string{metadataKey: meta}); err == nil {
			t.Errorf("metadata %s was accepted", meta)
		}
	}
}

// A layer that two names change is refused rather than changed by one of them.
func TestChangedTwice(t *testing.T) {
	_, err := open(t, map[string]*tensor.Array{
		"net.b.lora_A.weight": counting(tensor.F32, 1, 4), "net.b.lora_B.weight": counting(tensor.F32, 4, 1),
		"flat_b.lora_down.weight": counting(tensor.F32, 1, 4), "flat_b.lora_up.weight": counting(tensor.F32, 4, 1),
	}, nil)
	if err == nil {
		t.Error("accepted")
	}
}

// Changes of whole biases and norms are not supported, unless they change nothing.
func TestDiffs(t *testing.T) {
	with := func(diff float32) error {
		_, err := open(t, map[string]*tensor.Array{
			"net.b.lora_A.weight": counting(tensor.F32, 1, 4), "net.b.lora_B.weight": counting(tensor.F32, 4, 1),
			"net.b.diff_b": tensor.FromFloat32([]float32{0, diff, 0, 0}, 4), "net.norm.diff": tensor.FromFloat32([]float32{diff}),
		}, nil)
		return err
	}
	if err := with(0); err != nil {
		t.Error(err)
	}
	if err := with(1); err == nil || !strings.Contains(err.Error(), "2 of 4 keys are no layer of this model (net.b.diff_b, net.norm.diff)") {
		t.Error(err)
	}
}

// Nobody's metadata makes the reader panic.
func FuzzMetadata(f *testing.F) {
	f.Add(`{"net.lora_alpha": 10, "net.alpha_pattern": {"^a": 1}}`, "a.q")
	f.Add(`{"net": 1, "net.": {}}`, "b")
	f.Fuzz(func(t *testing.T, text, layer string) {
		s, err := newScales(map[string]string{metadataKey: text}, nil)
		if err != nil {
			return
		}
		for _, c := range s.configs {
			_, _ = c.scale(layer, 2)
		}
	})
}
