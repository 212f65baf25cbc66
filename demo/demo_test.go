package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/draw"
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
	Image     string  `json:"image"`
	Prompt    string  `json:"prompt"`
	Seed      uint64  `json:"seed"`
	Steps     int     `json:"steps"`
	Guidance  float64 `json:"guidance"`
	MaxLength int     `json:"max_sequence_length"`
	Height    int     `json:"height"`
	Width     int     `json:"width"`
	SHA256    string  `json:"sha256"` // of the RGB bytes
}

// The trained model makes the ten pictures that Diffusers makes, from prompt to pixels: in f32 at least 99.9 % of the
// values are equal and the rest differ by one level; in bf16, whose roundings Diffusers' f32 pictures don't have, they
// stay close.
func TestPicturesMatchDiffusers(t *testing.T) {
	b, err := os.ReadFile("golden/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []goldenCase }
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) != 10 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	dir, err := Folder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		gesso.Options
		equal float64 // at least this share of values
		level int     // largest difference
		mean  float64
	}{
		{gesso.Options{DType: tensor.F32}, 0.999, 1, 0.001},
		{gesso.Options{DType: tensor.F32, Mode: engine.Compiled}, 0.999, 1, 0.001},
		{gesso.Options{DType: tensor.BF16, Mode: engine.Fused}, 0.6, 8, 0.6},
	} {
		p, err := gesso.Load(t.Context(), dir, o.Options)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range golden.Cases {
			res, err := p.Generate(t.Context(), gesso.Request{
				Prompts: []string{c.Prompt}, Generator: rng.New(c.Seed), Steps: c.Steps, Guidance: &c.Guidance,
				MaxSequenceLength: c.MaxLength, Height: c.Height, Width: c.Width,
			})
			if err != nil {
				t.Fatal(err)
			}
			want := rgb(t, filepath.Join("golden", c.Image))
			if sum := sha256.Sum256(want); hex.EncodeToString(sum[:]) != c.SHA256 {
				t.Fatalf("%s is not the picture that golden.json describes", c.Image)
			}
			got := imageio.Pixels(res.Images[0]).Data
			equal, worst, sum := 0, 0, 0
			for i := range got {
				d := int(got[i]) - int(want[i])
				if d < 0 {
					d = -d
				}
				if d == 0 {
					equal++
				}
				worst, sum = max(worst, d), sum+d
			}
			share, mean := float64(equal)/float64(len(got)), float64(sum)/float64(len(got))
			if share < o.equal || worst > o.level || mean > o.mean {
				t.Errorf("%s %s %q: %.3f %% equal, largest difference %d, mean %.3f", o.DType, o.Mode, c.Prompt, 100*share, worst, mean)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
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
