package gesso_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

const (
	alphaLoRA = "testdata/golden/inputs/lora_alpha.safetensors"
	kohyaLoRA = "testdata/golden/inputs/kohya_run.safetensors"
)

func loras(paths ...string) []gesso.LoRA {
	var l []gesso.LoRA
	for _, p := range paths {
		l = append(l, gesso.LoRA{Path: p})
	}
	return l
}

// A request sets the strengths of the loaded adapters, and that compiles nothing.
func TestLoRAWeights(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
		plain := load(t, schnell, gesso.Options{Mode: mode})
		both := load(t, schnell, gesso.Options{Mode: mode, LoRAs: loras(alphaLoRA, kohyaLoRA)})
		picture := func(p *gesso.Pipeline, w ...float64) string {
			r := request()
			r.LoRAWeights = w
			return pixels(generate(t, p, r).Images[0])
		}
		want := picture(plain)
		full := picture(both)
		before := both.Stats()
		switch off, first, second := picture(both, 0, 0), picture(both, 0.5, 0), picture(both, 0, -1); {
		case full == want:
			t.Errorf("%s: the adapters change nothing", mode)
		case off != want:
			t.Errorf("%s: adapters of strength 0 change the picture", mode)
		case first == want || second == want || first == second || first == full:
			t.Errorf("%s: a strength has no effect", mode)
		case picture(both) != full:
			t.Errorf("%s: a request's weights outlive it", mode)
		}
		if d := both.Stats().Sub(before.Snapshot); d.Compiles != 0 {
			t.Errorf("%s: other weights compiled %v", mode, d.CompilesOf)
		}
	}
}

// One adapter at a loaded strength makes the picture that the same strength of a request makes, in every mode and dtype.
func TestLoRAModesAgree(t *testing.T) {
	half := 0.5
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		want := ""
		for _, m := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
			p := load(t, schnell, gesso.Options{Mode: m, DType: d, LoRAs: []gesso.LoRA{{Path: kohyaLoRA, Weight: &half}}})
			q := load(t, schnell, gesso.Options{Mode: m, DType: d, LoRAs: loras(kohyaLoRA)})
			r := request()
			r.Output = gesso.OutputArray
			got := string(generate(t, p, r).Array.Data)
			r.LoRAWeights = []float64{half}
			if string(generate(t, q, r).Array.Data) != got {
				t.Errorf("%s %s: the weight of a request is not that of the load", d, m)
			}
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: %s mode makes another picture", d, m)
			}
		}
	}
}

// What cannot be applied whole is refused in one line that says which key is at fault.
func TestRefusedLoRAs(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, tensors map[string]*tensor.Array, metadata map[string]string) string {
		path := filepath.Join(dir, name)
		if err := weights.Save(path, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		return path
	}
	m := func(rows, cols int) *tensor.Array { return tensor.New(tensor.F32, rows, cols) }
	const k = "transformer.x_embedder."
	fits := map[string]*tensor.Array{k + "lora_A.weight": m(2, 16), k + "lora_B.weight": m(32, 2)}
	with := func(name string, a *tensor.Array) map[string]*tensor.Array {
		out := map[string]*tensor.Array{name: a}
		for n, x := range fits {
			if n != name {
				out[n] = x
			}
		}
		return out
	}
	pickle := filepath.Join(dir, "pickle.safetensors")
	if err := os.WriteFile(pickle, []byte("PK\x03\x04 and more bytes than a header has"), 0o666); err != nil {
		t.Fatal(err)
	}
	load(t, schnell, gesso.Options{LoRAs: loras(file("fits.safetensors", fits, nil))})
	nan := 0.0
	nan /= nan
	for name, c := range map[string]struct {
		lora gesso.LoRA
		want string
	}{
		"missing":      {gesso.LoRA{Path: filepath.Join(dir, "none.safetensors")}, "none.safetensors: file does not exist"},
		"pickle":       {gesso.LoRA{Path: pickle}, "looks like a PyTorch archive"},
		"a checkpoint": {gesso.LoRA{Path: schnell + "/vae/diffusion_pytorch_model.safetensors"}, "keys are no layer of this model"},
		"trailing _": {gesso.LoRA{Path: file("b", map[string]*tensor.Array{
			k + "lora_A.weight_": m(2, 16), k + "lora_B.weight_": m(32, 2)}, nil)}, "2 of 2 keys are no layer of this model (" + k + "lora_A.weight_"},
		"one unknown":  {gesso.LoRA{Path: file("c", with("transformer.blocks.9.lora_A.weight", m(2, 2)), nil)}, "1 of 3 keys are no layer of this model (transformer.blocks.9"},
		"half a pair":  {gesso.LoRA{Path: file("d", map[string]*tensor.Array{k + "lora_A.weight": m(2, 16)}, nil)}, "is missing"},
		"ranks":        {gesso.LoRA{Path: file("e", with(k+"lora_A.weight", m(3, 16)), nil)}, "ranks 3 ([3 16]) and 2 ([32 2])"},
		"inputs":       {gesso.LoRA{Path: file("f", with(k+"lora_A.weight", m(2, 64)), nil)}, "expected [2 16] for the layer transformer.x_embedder"},
		"outputs":      {gesso.LoRA{Path: file("g", with(k+"lora_B.weight", m(64, 2)), nil)}, "expected [32 2]"},
		"alpha":        {gesso.LoRA{Path: file("h", with(k+"alpha", tensor.New(tensor.F32, 2)), nil)}, "expected one floating-point number"},
		"alpha is NaN": {gesso.LoRA{Path: file("i", with(k+"alpha", tensor.FromFloat32([]float32{float32(nan)})), nil)}, "expected a finite number"},
		"integers":     {gesso.LoRA{Path: file("j", with(k+"lora_A.weight", tensor.New(tensor.I64, 2, 16)), nil)}, "floating-point"},
		"no factors":   {gesso.LoRA{Path: file("k", nil, nil)}, "no factors"},
		"DoRA":         {gesso.LoRA{Path: file("l", with(k+"dora_scale", m(32, 1)), nil)}, "DoRA"},
		"bad metadata": {gesso.LoRA{Path: file("m", fits, map[string]string{"lora_adapter_metadata": "{"})}, "lora_adapter_metadata"},
		"bad weight":   {gesso.LoRA{Path: file("n", fits, nil), Weight: &nan}, "must be finite"},
		"alphas and metadata": {gesso.LoRA{Path: file("o", with(k+"alpha", tensor.FromFloat32([]float32{1})),
			map[string]string{"lora_adapter_metadata": `{"transformer.lora_alpha": 2}`})}, "expected one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := gesso.Load(t.Context(), schnell, gesso.Options{LoRAs: []gesso.LoRA{c.lora}})
			if err == nil {
				p.Close()
				t.Fatal("loaded")
			}
			if msg := err.Error(); !strings.Contains(msg, c.want) || strings.Contains(msg, "\n") || !strings.HasPrefix(msg, "lora: ") {
				t.Errorf("%q, expected one line with %q", msg, c.want)
			}
		})
	}
	p := load(t, schnell, gesso.Options{LoRAs: loras(alphaLoRA)})
	r := request()
	r.LoRAWeights = []float64{1, 2}
	if _, err := p.Generate(t.Context(), r); err == nil || !strings.Contains(err.Error(), "2 LoRA weights for 1") {
		t.Errorf("%v", err)
	}
	r.LoRAWeights = []float64{nan}
	if _, err := p.Generate(t.Context(), r); err == nil || !strings.Contains(err.Error(), "finite") {
		t.Errorf("%v", err)
	}
}

// An adapter works on layers in 8 bits: it changes their result as it changes that of the plain layers, in every mode.
func TestLoRAOnQuantizedLayers(t *testing.T) {
	array := func(mode engine.Mode, quantize string, weight float64) []float32 {
		p := load(t, schnell, gesso.Options{Mode: mode, Quantize: quantize, LoRAs: loras(alphaLoRA)})
		r := request()
		r.Output, r.LoRAWeights = gesso.OutputArray, []float64{weight}
		return generate(t, p, r).Array.Float32s()
	}
	apart := func(a, b []float32) float64 { // root of the mean square
		sum := 0.0
		for i := range a {
			d := float64(a[i] - b[i])
			sum += d * d
		}
		return math.Sqrt(sum / float64(len(a)))
	}
	plain, without := array(engine.Strict, "", 1), array(engine.Strict, "int8", 0)
	quantized := array(engine.Strict, "int8", 1)
	if d, effect := apart(quantized, plain), apart(quantized, without); d == 0 || d > effect/3 {
		t.Errorf("in 8 bits the picture is %.4f from the plain one, and the adapter changes it by %.4f", d, effect)
	}
	for _, mode := range []engine.Mode{engine.Fused, engine.Compiled} {
		if apart(array(mode, "int8", 1), quantized) != 0 {
			t.Errorf("%s mode makes another picture", mode)
		}
	}
}
