package fidelity

import (
	"context"
	"testing"

	"github.com/gesso-go/gesso/demo"
)

// Pictures of the trained model stay at least 30 dB close when products are quantised, and they do change.
func TestQuantizedPicturesStayClose(t *testing.T) {
	dir, err := demo.Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Options{Dir: dir, Prompts: []string{"red apple", "cat face"}})
	if err != nil {
		t.Fatal(err)
	}
	if !(r.Worst >= 30) || !(r.Picture >= r.Worst) {
		t.Errorf("pictures: %.1f dB on average, %.1f at worst, want at least 30", r.Picture, r.Worst)
	}
	if r.Picture > 90 {
		t.Errorf("%.1f dB: nothing was quantised", r.Picture)
	}
	seen := map[string]bool{}
	for _, s := range r.Stages {
		seen[s.Name] = true
		if !(s.Cosine > 0.99) || s.Cosine > 1.0000001 || !(s.PSNR > 25) {
			t.Errorf("%+v", s)
		}
	}
	for _, name := range []string{"prompt_embeds", "transformer.call0.out", "latents.final", "vae.decode0.out"} {
		if !seen[name] {
			t.Errorf("no stage %s", name)
		}
	}
}
