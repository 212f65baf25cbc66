package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// --lora changes the picture by its weight, and the picture says which adapters it was made with.
func TestLoRA(t *testing.T) {
	inputs, err := filepath.Abs("../../testdata/golden/inputs")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	draw := func(name string, loras ...string) []byte {
		t.Helper()
		args := small("--model", checkpoint, "--seed", "1", "-o", filepath.Join(dir, name), "a cat")
		for _, l := range loras {
			args = append(args, "--lora", l)
		}
		if code, _, stderr := command(t, nil, args...); code != exitOK {
			t.Fatalf("%v: exit %d: %s", loras, code, stderr)
		}
		_, shown, _ := command(t, nil, "show", filepath.Join(dir, name))
		for _, l := range loras {
			if !strings.Contains(shown, filepath.Base(l)) {
				t.Errorf("show does not name %s:\n%s", l, shown)
			}
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b[bytes.Index(b, []byte("IDAT")):] // without the parameters
	}
	alpha, kohya := filepath.Join(inputs, "lora_alpha.safetensors"), filepath.Join(inputs, "kohya_run.safetensors")
	plain, one, half, two := draw("a.png"), draw("b.png", alpha), draw("c.png", alpha+":0.5"), draw("d.png", alpha+":0.5", kohya)
	if bytes.Equal(plain, one) || bytes.Equal(one, half) || bytes.Equal(half, two) {
		t.Error("a LoRA, its weight or a second one has no effect")
	}
	if !bytes.Equal(one, draw("e.png", alpha+":1")) || !bytes.Equal(plain, draw("f.png", alpha+":0")) {
		t.Error("weight 1 is not the default, or weight 0 is not nothing")
	}
	colon := filepath.Join(dir, "a:2.safetensors:3")
	if b, err := os.ReadFile(alpha); err != nil || os.WriteFile(colon, b, 0o666) != nil {
		t.Skip("no file names with colons here")
	}
	if !bytes.Equal(one, draw("g.png", colon)) {
		t.Error("a file's own colon was taken for a weight")
	}
}

// --lora takes a file from the Hub: the only one of a repository, or a named one.
func TestLoRAFromTheHub(t *testing.T) {
	h, _, env := fakeHub(t)
	const file = "../../testdata/golden/inputs/lora_alpha.safetensors"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	one := h.AddModel("acme/style")
	one.Add("pytorch_lora_weights.safetensors", data)
	one.Add("README.md", []byte("a style"))
	two := h.AddModel("acme/styles")
	two.Add("a.safetensors", data)
	two.Add("b/c.safetensors", []byte("no adapter"))
	out := filepath.Join(t.TempDir(), "a.png")
	draw := func(lora string) (int, []byte, string) {
		code, _, stderr := command(t, env, small("--model", checkpoint, "--seed", "1", "-o", out, "--lora", lora, "a cat")...)
		if code != exitOK {
			return code, nil, stderr
		}
		return code, pixels(t, out), stderr
	}
	_, want, stderr := draw(file + ":0.5")
	if want == nil {
		t.Fatal(stderr)
	}
	for _, lora := range []string{"acme/style:0.5", "acme/style@main:0.5", "hf://acme/styles/a.safetensors:0.5", h.URL() + "/acme/styles/blob/main/a.safetensors:0.5"} {
		if code, got, stderr := draw(lora); !bytes.Equal(got, want) {
			t.Errorf("%s: exit %d: %s", lora, code, stderr)
		}
	}
	for lora, say := range map[string]string{
		"acme/styles":                      "2 safetensors files (a.safetensors, b/c.safetensors): name one, as hf://acme/styles/FILE",
		"acme/nothing":                     "acme/nothing",
		"hf://acme/styles/b/c.safetensors": "b/c.safetensors",
		"acme/style.safetensors":           "no such file",
	} {
		if code, _, stderr := draw(lora); code != exitFailed || !strings.Contains(stderr, say) {
			t.Errorf("%s: exit %d: %s", lora, code, stderr)
		}
	}
}
