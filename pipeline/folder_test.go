package pipeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// What is wrong in a file is said in its own words, not in Go's.
func TestReadJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	for text, want := range map[string]string{
		`[]`: "is an array, expected an object", `"x"`: "is a string, expected an object", `{"n": "x"}`: `key "n" holds a string, expected a whole number`,
		"{\n\"n\":}": "line 2 is not JSON",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var v struct {
			N int `json:"n"`
		}
		if err := ReadJSON(path, &v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The type that a component computes in is the one with the most bytes, and one that devices compute in.
func TestStoredType(t *testing.T) {
	for stored, want := range map[tensor.DType]tensor.DType{
		tensor.F8E4M3: tensor.BF16, tensor.F8E5M2: tensor.BF16, tensor.F64: tensor.F32,
		tensor.F32: tensor.F32, tensor.BF16: tensor.BF16, tensor.F16: tensor.F16, tensor.I64: tensor.F16,
	} {
		dir := t.TempDir()
		err := weights.Save(filepath.Join(dir, "model.safetensors"), map[string]*tensor.Array{
			"most": tensor.New(stored, 100), "some": tensor.New(tensor.F16, 8),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := weights.Open(dir, weights.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := storedType(c); got != want {
			t.Errorf("%v: %v, want %v", stored, got, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A variant's files are taken in place of the plain ones, which may then be no good.
func TestVariant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS("../testdata/golden/checkpoints/flux_schnell")); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "vae", "diffusion_pytorch_model.safetensors")
	b, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vae", "diffusion_pytorch_model.fp16.safetensors"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, []byte("not these"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	o := Options{Engine: engine.New(c, engine.Options{}), Variant: "fp16", Warn: func(s string) { warnings = append(warnings, s) }}
	v, err := LoadVAE(f, o)
	if err != nil {
		t.Fatalf("with a variant: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	o.Variant = ""
	if _, err := LoadVAE(f, o); err == nil {
		t.Error("without the variant the plain files must be read")
	}
}
