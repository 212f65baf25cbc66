package gesso_test

import (
	"image"
	"math"
	"strings"
	"testing"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/imageio"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

func picture(t *testing.T) image.Image {
	t.Helper()
	m, err := imageio.ReadFile("testdata/golden/inputs/input_rgb_big.png", imageio.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Each picture of a batch that starts from an image can be made again alone, bit for bit, from its seed.
func TestImageBatchEqualsSingle(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Strict, engine.Compiled} {
		p := load(t, schnell, gesso.Options{Mode: mode})
		r := request()
		r.Image, r.Steps, r.Strength = picture(t), 4, 0.7
		r.Prompts, r.ImagesPerPrompt, r.Seeds = []string{"a cat", "a dog"}, 2, []uint64{4, 5, 6, 7}
		all := generate(t, p, r).Images
		r.Prompts, r.ImagesPerPrompt = []string{"a dog"}, 1
		for i, seed := range []uint64{6, 7} {
			r.Seeds = []uint64{seed}
			if pixels(generate(t, p, r).Images[0]) != pixels(all[2+i]) {
				t.Errorf("%s: seed %d alone makes another picture", mode, seed)
			}
		}
		if pixels(all[2]) == pixels(all[3]) {
			t.Errorf("%s: two seeds make one picture", mode)
		}
	}
}

// With one generator for a batch, the image is drawn once and the noise for each picture, as in Diffusers.
func TestImageOneGenerator(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	r := request()
	r.Image, r.Steps, r.ImagesPerPrompt, r.Seeds, r.Generator = picture(t), 2, 2, nil, rng.New(3)
	var initial *tensor.Array
	r.Dump = func(name string, a *tensor.Array) {
		if name == "latents.initial" {
			initial = a
		}
	}
	generate(t, p, r)
	if half := len(initial.Data) / 2; initial.Shape[0] != 2 || string(initial.Data[:half]) == string(initial.Data[half:]) {
		t.Error("both pictures begin with the same latents")
	}
}

// The strength is the share of steps that are run, rounded up; the schedule does not depend on it.
func TestStrength(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	for _, c := range []struct {
		strength float64
		steps    int
	}{{0, 3}, {1e-9, 1}, {0.2, 1}, {0.21, 2}, {0.6, 3}, {0.99, 5}, {1, 5}} {
		r := request()
		r.Image, r.Steps, r.Strength = picture(t), 5, c.strength
		if res := generate(t, p, r); res.Steps != c.steps || len(res.Timing.Steps) != c.steps {
			t.Errorf("strength %g of 5 steps ran %d, expected %d", c.strength, res.Steps, c.steps)
		}
	}
	r := request()
	r.Image, r.Sigmas, r.Strength = picture(t), []float64{1, 0.7, 0.3}, 0.5
	if res := generate(t, p, r); res.Steps != 2 {
		t.Errorf("strength 0.5 of 3 sigmas ran %d", res.Steps)
	}
}

// A mask that is dark everywhere gives back the picture as the autoencoder sees it, one that is light everywhere is none.
func TestMask(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	r := request()
	r.Image, r.Steps, r.Output = picture(t), 3, gesso.OutputLatent
	anew := generate(t, p, r).Array
	var image *tensor.Array
	r.Dump = func(name string, a *tensor.Array) {
		if name == "prepare_latents.out2" {
			image = a
		}
	}
	r.Mask = grey(255)
	if string(generate(t, p, r).Array.Data) != string(anew.Data) {
		t.Error("a light mask changes the result")
	}
	r.Mask = grey(127)
	if string(generate(t, p, r).Array.Data) != string(image.Data) {
		t.Error("a dark mask lets something through")
	}
	r.Dump = nil
	half := generate(t, p, r).Array
	if string(half.Data) != string(image.Data) {
		t.Error("comparing changes the result")
	}
}

func grey(v uint8) image.Image {
	m := image.NewGray(image.Rect(0, 0, 5, 3))
	for i := range m.Pix {
		m.Pix[i] = v
	}
	return m
}

// Requests that make no sense are refused in one line.
func TestRefusedImages(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	for want, change := range map[string]func(*gesso.Request){
		"strength must be above 0 and at most 1, got 1.01": func(r *gesso.Request) { r.Image, r.Strength = picture(t), 1.01 },
		"strength must be above 0 and at most 1, got -0.5": func(r *gesso.Request) { r.Image, r.Strength = picture(t), -0.5 },
		"strength must be above 0 and at most 1, got NaN":  func(r *gesso.Request) { r.Image, r.Strength = picture(t), math.NaN() },
		"strength needs an image":                          func(r *gesso.Request) { r.Strength = 0.5 },
		"a mask needs an image":                            func(r *gesso.Request) { r.Mask = picture(t) },
		"the image has no pixels":                          func(r *gesso.Request) { r.Image = image.NewGray(image.Rect(0, 0, 0, 4)) },
		"the mask has no pixels": func(r *gesso.Request) {
			r.Image, r.Mask = picture(t), image.NewGray(image.Rect(0, 0, 4, 0))
		},
	} {
		r := request()
		change(&r)
		if _, err := p.Generate(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// The default guidance is that of Diffusers' pipeline: 3.5 from a prompt, 7 from a picture, with and without a mask.
func TestDefaultGuidance(t *testing.T) {
	p := load(t, dev, gesso.Options{})
	r := request()
	r.Guidance = nil
	check := func(want float64) {
		t.Helper()
		if got := generate(t, p, r).Guidance; got != want {
			t.Errorf("guidance %g, want %g", got, want)
		}
	}
	check(3.5)
	r.Image = picture(t)
	check(7)
	r.Mask = picture(t)
	check(7)
}
