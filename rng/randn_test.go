package rng

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

// goldenDirs runs fn over the trimmed goldens and, where it exists, over the full set.
func goldenDirs(t *testing.T, fn func(t *testing.T, dir string)) {
	t.Run("trimmed", func(t *testing.T) { fn(t, "testdata") })
	t.Run("full", func(t *testing.T) { fn(t, shareddata.Dir(t, "golden", "components")) })
}

// sameBits fails unless got and want agree: in every bit, or for F64 in all but a few values, off by two units in the
// last place, since PyTorch's doubles come from a C library that does not round all results correctly.
func sameBits(t *testing.T, name string, got, want *tensor.Array) {
	t.Helper()
	if got.DType != want.DType || !got.Shape.Equal(want.Shape) {
		t.Fatalf("%s: got %s, want %s", name, got, want)
	}
	if bytes.Equal(got.Data, want.Data) {
		return
	}
	g, w := got.Float64s(), want.Float64s()
	off := 0
	for i := range g {
		if g[i] == w[i] {
			continue
		}
		off++
		ulp := math.Nextafter(math.Abs(w[i]), math.Inf(1)) - math.Abs(w[i])
		if want.DType != tensor.F64 || math.Abs(g[i]-w[i]) > 2*ulp {
			t.Fatalf("%s: value %d is %v, want %v", name, i, g[i], w[i])
		}
	}
	if off > 2+len(g)/300 {
		t.Errorf("%s: %d of %d doubles are a unit or two off", name, off, len(g))
	}
}

func TestRandnIsPyTorch(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		all := reference.Tensors(t, filepath.Join(dir, "randn.safetensors"))
		if len(all) < 5*7*4 {
			t.Fatalf("only %d goldens", len(all))
		}
		for name, want := range all {
			var seed uint64
			var n int
			var dtype string
			if _, err := fmt.Sscanf(name, "seed%d.n%d.%s", &seed, &n, &dtype); err != nil {
				t.Fatalf("golden name %q: %v", name, err)
			}
			got, err := New(seed).Randn(want.DType, n)
			if err != nil {
				t.Fatal(err)
			}
			sameBits(t, name, got, want)
		}
	})
}

// randnIndex is the layout of randn.json.
type randnIndex struct {
	Sequences []struct {
		Name  string
		Seed  uint64
		Calls [][2]any // element count, dtype
	}
	ShapeHashes map[string]string `json:"shape_hashes"`
}

func readIndex(t *testing.T, dir string) randnIndex {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "randn.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index randnIndex
	if err := json.Unmarshal(b, &index); err != nil {
		t.Fatal(err)
	}
	return index
}

func TestSecondNormalIsKeptAcrossCalls(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		all := reference.Tensors(t, filepath.Join(dir, "randn_sequences.safetensors"))
		sequences := readIndex(t, dir).Sequences
		if len(sequences) == 0 {
			t.Fatal("no sequences")
		}
		for _, s := range sequences {
			g := New(s.Seed)
			for i, call := range s.Calls {
				d, err := tensor.ParseDType(call[1].(string))
				if err != nil {
					t.Fatal(err)
				}
				got, err := g.Randn(d, int(call[0].(float64)))
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%s.call%d", s.Name, i)
				sameBits(t, name, got, all[name])
			}
		}
	})
}

func TestLatentShapesHashAsPyTorch(t *testing.T) {
	goldenDirs(t, func(t *testing.T, dir string) {
		hashes := readIndex(t, dir).ShapeHashes
		if len(hashes) == 0 {
			t.Fatal("no hashes")
		}
		for name, want := range hashes {
			part := strings.Split(name, ".") // (1, 16, 8, 8).float32.seed0
			var shape []int
			if err := json.Unmarshal([]byte("["+strings.Trim(part[0], "()")+"]"), &shape); err != nil {
				t.Fatal(err)
			}
			d, err := tensor.ParseDType(part[1])
			if err != nil {
				t.Fatal(err)
			}
			seed, err := ParseSeed(strings.TrimPrefix(part[2], "seed"))
			if err != nil {
				t.Fatal(err)
			}
			a, err := New(seed).Randn(d, shape...)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(a.Data)
			if got := hex.EncodeToString(sum[:]); got != want {
				t.Errorf("%s hashes to %s, want %s", name, got, want)
			}
		}
	})
}

// The values are those of torch 1.13.1, torch.randn(20, dtype=torch.bfloat16) with seed 0, printed to four decimals.
func TestLegacyHalfIsOldPyTorch(t *testing.T) {
	want := []float64{1.4609, .2910, .9609, 1.5703, -.6719, -.1108, .8945, -1.3359, -.8750, .3242, 1.3672, .0593, 2.0312,
		.5625, .2002, -.6992, .2832, -.8086, -.4434, -.4492}
	g := New(0)
	g.LegacyHalf = true
	a, err := g.Randn(tensor.BF16, 20)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range a.Float64s() {
		if math.Abs(v-want[i]) > 5.1e-5 {
			t.Errorf("value %d is %v, want %v", i, v, want[i])
		}
	}
}

func TestLegacyHalfNeverPasses333(t *testing.T) {
	for _, d := range []tensor.DType{tensor.BF16, tensor.F16} {
		g := New(1)
		g.LegacyHalf = true
		a, err := g.Randn(d, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		limit := map[tensor.DType]float64{tensor.BF16: 3.34, tensor.F16: 3.91}[d]
		v := a.Float64s()
		if most := max(slices.Max(v), -slices.Min(v)); most > limit || most < limit-.3 {
			t.Errorf("%s: largest magnitude %v, want just below %v", d, most, limit)
		}
	}
}

func TestRandnRefuses(t *testing.T) {
	for _, c := range []struct {
		d     tensor.DType
		shape []int
		want  string
	}{
		{tensor.I32, []int{4}, "dtype i32"},
		{tensor.F32, []int{2, -1}, "negative extent"},
		{tensor.F32, []int{1 << 40, 1 << 40}, "too large"},
	} {
		_, err := New(0).Randn(c.d, c.shape...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Randn(%s, %v) gives error %v, want one with %q", c.d, c.shape, err, c.want)
		}
	}
}

func TestEmptyArrayDrawsNothing(t *testing.T) {
	g := New(3)
	if a, err := g.Randn(tensor.F32, 0, 4); err != nil || len(a.Data) != 0 {
		t.Fatalf("got %v, %v", a, err)
	}
	if *g != *New(3) {
		t.Error("the generator moved")
	}
}

func TestOneScalar(t *testing.T) {
	a, err := New(42).Randn(tensor.F32) // torch.randn((), generator=…)
	if err != nil || a.Float32s()[0] != 0.33669036626815796 {
		t.Errorf("got %v, %v", a.Float32s(), err)
	}
}

func BenchmarkRandn(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F64} {
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(1 * 16 * 128 * 128 * int64(d.Size()))
			for b.Loop() {
				if _, err := New(0).Randn(d, 1, 16, 128, 128); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
