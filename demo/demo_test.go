package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/draw"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/imageio"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

func TestFolder(t *testing.T) {
	cache := t.TempDir()
	dirs := make([]string, 8)
	var wg sync.WaitGroup
	for i := range dirs {
		wg.Go(func() {
			var err error
			if dirs[i], err = Folder(cache); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, d := range dirs {
		if d != dirs[0] {
			t.Errorf("%s and %s", d, dirs[0])
		}
	}
	left, err := os.ReadDir(cache)
	if err != nil || len(left) != 1 {
		t.Errorf("%d entries in the cache, %v", len(left), err)
	}
	blocked := filepath.Join(cache, "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(filepath.Join(blocked, "below")); err == nil {
		t.Error("a cache below a file was accepted")
	}
}

type goldenCase struct {
	stored
	Prompt    string   `json:"prompt"`
	Seed      uint64   `json:"seed"`
	Steps     int      `json:"steps"`
	Guidance  float64  `json:"guidance"`
	MaxLength int      `json:"max_sequence_length"`
	Height    int      `json:"height"`
	Width     int      `json:"width"`
	LoRA      string   `json:"lora"`
	Scale     *float64 `json:"scale"` // of the LoRA
	Start     string   `json:"start"` // picture to start from
	Strength  float64  `json:"strength"`
	BF16      struct {
		stored
		Orders [2]float64 `json:"orders"` // mean and largest difference between two legal runs of Diffusers
	} `json:"bf16"`
}

// stored is a picture in the folder of its golden.json.
type stored struct {
	Image  string `json:"image"`
	SHA256 string `json:"sha256"` // of the RGB bytes
}

func (s stored) pixels(t *testing.T, folder string) []byte {
	t.Helper()
	p := rgb(t, filepath.Join(folder, s.Image))
	if sum := sha256.Sum256(p); hex.EncodeToString(sum[:]) != s.SHA256 {
		t.Fatalf("%s is not the picture that golden.json describes", s.Image)
	}
	return p
}

type goldenFile struct {
	Cases     []goldenCase
	FromImage goldenCase `json:"from_image"`
}

func goldens(t *testing.T, folder string) goldenFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenFile
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// pixels makes the case's picture.
func (c *goldenCase) pixels(t *testing.T, p *gesso.Pipeline) []byte {
	t.Helper()
	r := gesso.Request{
		Prompts: []string{c.Prompt}, Generator: rng.New(c.Seed), Steps: c.Steps, Guidance: &c.Guidance,
		MaxSequenceLength: c.MaxLength, Height: c.Height, Width: c.Width, Strength: c.Strength,
	}
	if c.Start != "" {
		var err error
		if r.Image, err = imageio.ReadFile(c.Start, imageio.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := p.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return imageio.Pixels(res.Images[0]).Data
}

// difference is how two pictures differ: the share of equal values, and the mean and largest difference in levels.
type difference struct{ equal, mean, most float64 }

func compare(got, want []byte) (d difference) {
	for i := range got {
		x := math.Abs(float64(got[i]) - float64(want[i]))
		if x == 0 {
			d.equal++
		}
		d.mean, d.most = d.mean+x, max(d.most, x)
	}
	n := float64(len(got))
	return difference{d.equal / n, d.mean / n, d.most}
}

func load(t *testing.T, o gesso.Options) *gesso.Pipeline {
	t.Helper()
	dir, err := Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := gesso.Load(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// same is the criterion for f32: at least 99.9 % of the values are equal and the rest differ by one level.
func (d difference) same() bool { return d.equal >= 0.999 && d.most <= 1 }

// The trained model makes the ten pictures that Diffusers makes, from prompt to pixels. In bf16, where the order of a sum
// shows, the mean difference of each is at most twice what Diffusers' own pictures with two orders of summation differ by,
// and the largest at most twice the largest of these.
func TestPicturesMatchDiffusers(t *testing.T) {
	cases := goldens(t, "golden").Cases
	if len(cases) != 10 {
		t.Fatalf("%d cases", len(cases))
	}
	largest := 0.0
	for _, c := range cases {
		largest = max(largest, c.BF16.Orders[1])
	}
	for _, o := range []gesso.Options{
		{DType: tensor.F32}, {DType: tensor.F32, Mode: engine.Compiled}, {DType: tensor.BF16}, {DType: tensor.BF16, Mode: engine.Compiled},
	} {
		p := load(t, o)
		for _, c := range cases {
			got := c.pixels(t, p)
			if o.DType == tensor.F32 {
				if d := compare(got, c.stored.pixels(t, "golden")); !d.same() {
					t.Errorf("%s %s %q: %+v", o.DType, o.Mode, c.Prompt, d)
				}
				continue
			}
			d, orders := compare(got, c.BF16.stored.pixels(t, "golden")), c.BF16.Orders
			if d.mean > 2*orders[0] || d.most > 2*largest {
				t.Errorf("%s %s %q: %+v, two runs of Diffusers differ by %v", o.DType, o.Mode, c.Prompt, d, orders)
			}
		}
	}
}

// Starting from a sketch, the model makes the picture that Diffusers makes.
func TestImageToImageMatchesDiffusers(t *testing.T) {
	c := goldens(t, "golden").FromImage
	for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
		if d := compare(c.pixels(t, load(t, gesso.Options{DType: tensor.F32, Mode: mode})), c.stored.pixels(t, "golden")); !d.same() {
			t.Errorf("%s: %+v", mode, d)
		}
	}
}

// With its LoRA, loaded by Diffusers' own functions there, the model makes the picture that Diffusers makes; without it
// the picture is another, and at the LoRA's full strength every picture is blue.
func TestLoRAMatchesDiffusers(t *testing.T) {
	cases := goldens(t, "lora").Cases
	if len(cases) != 1 {
		t.Fatalf("%d cases", len(cases))
	}
	c := cases[0]
	want := c.stored.pixels(t, "lora")
	file := filepath.Join("lora", c.LoRA)
	for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
		p := load(t, gesso.Options{DType: tensor.F32, Mode: mode, LoRAs: []gesso.LoRA{{Path: file, Weight: c.Scale}}})
		if d := compare(c.pixels(t, p), want); !d.same() {
			t.Errorf("%s: %+v", mode, d)
		}
	}
	if d := compare(c.pixels(t, load(t, gesso.Options{DType: tensor.F32})), want); d.mean < 10 {
		t.Errorf("without the LoRA the picture is nearly the same: %+v", d)
	}
	p := load(t, gesso.Options{LoRAs: []gesso.LoRA{{Path: file}}})
	for _, c := range goldens(t, "golden").Cases {
		x := c.pixels(t, p)
		more := 0.0 // blue over red, in levels
		for i := 0; i < len(x); i += 3 {
			more += (float64(x[i+2]) - float64(x[i])) / float64(len(x)/3)
		}
		if more < 10 {
			t.Errorf("%q: blue is %.1f levels above red in the mean, expected 10", c.Prompt, more)
		}
	}
}

// rgb reads a picture as RGB bytes.
func rgb(t *testing.T, path string) []byte {
	t.Helper()
	m, err := imageio.ReadFile(path, imageio.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	n := image.NewNRGBA(m.Bounds())
	draw.Draw(n, n.Bounds(), m, m.Bounds().Min, draw.Src)
	var out []byte
	for i := 0; i < len(n.Pix); i += 4 {
		out = append(out, n.Pix[i:i+3]...)
	}
	return out
}
