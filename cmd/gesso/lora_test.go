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
