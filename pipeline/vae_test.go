package pipeline

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/model/vae"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

func testVAE(t *testing.T, dir string, d tensor.DType, mode engine.Mode) *VAE {
	t.Helper()
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(c, engine.Options{Mode: mode})
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := LoadVAE(f, Options{Engine: e, DType: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Sync()
		v.Close()
		c.Close()
	})
	return v
}

// The autoencoder encodes and decodes as Diffusers' does: whole, sliced, tiled, and sampled with its generator.
func TestVAEMatchesDiffusers(t *testing.T) {
	t.Run("testdata", func(t *testing.T) { testVAEGolden(t, "../testdata/golden", "flux_schnell") })
	for _, name := range []string{"flux_schnell", "sd35"} {
		t.Run(name, func(t *testing.T) { testVAEGolden(t, shareddata.Dir(t, "golden"), name) })
	}
}

func testVAEGolden(t *testing.T, dir, name string) {
	ref, err := weights.OpenFile(filepath.Join(dir, "components", "vae.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	get := func(key string) *tensor.Array {
		x, err := ref.Tensor(name + "." + key)
		if err != nil {
			return nil // not in the trimmed set
		}
		return x.Array()
	}
	compared := 0
	// In bf16 legal runs of the reference differ by 0.078; on average none may be further from f32 than it is.
	for _, c := range []struct {
		d   tensor.DType
		tag string
		tol float64
	}{{tensor.F32, "float32", 1e-4}, {tensor.BF16, "bfloat16", 0.1}} {
		for _, mode := range []engine.Mode{engine.Strict, engine.Compiled} {
			v := testVAE(t, filepath.Join(dir, "checkpoints", name), c.d, mode)
			check := func(key string, got *tensor.Array, err error) {
				t.Helper()
				want := get(c.tag + "." + key)
				switch {
				case err != nil:
					t.Errorf("%s %s: %v", c.tag, key, err)
				case want == nil:
				case !got.Shape.Equal(want.Shape):
					t.Errorf("%s %s: %v, want %v", c.tag, key, got.Shape, want.Shape)
				default:
					compared++
					if exact := get("float32." + key); exact != nil && c.d == tensor.BF16 {
						if ours, theirs := rms(got, exact), rms(want, exact); !(ours <= 1.1*theirs) {
							t.Errorf("%s %s %s: %.5f from f32, the reference %.5f", mode, c.tag, key, ours, theirs)
						}
					}
					if d := largestDifference(got, want); !(d <= c.tol*max(1, largest(want)/4)) {
						t.Errorf("%s %s %s: off by %g", mode, c.tag, key, d)
					}
				}
			}
			mean, logvar, err := v.Encode(t.Context(), get("image"), false, false)
			check("encode.mean", mean, err)
			check("encode.logvar", logvar, err)
			noise, err := rng.New(3).Randn(c.d, mean.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			sample, err := Sample(mean, logvar, noise)
			check("encode.sample_seed3", sample, err)
			tiled, _, err := v.Encode(t.Context(), get("image"), true, true)
			check("encode_tiled.mean", tiled, err)
			for key, o := range map[string][2]bool{"decode": {}, "decode_tiled": {true, false}, "decode_sliced": {false, true}} {
				x, err := v.Decode(t.Context(), get("latent"), o[0], o[1])
				check(key, x, err)
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d comparisons", compared)
	}
}

func largestDifference(a, b *tensor.Array) float64 {
	x, y := a.Float64s(), b.Float64s()
	d := 0.0
	for i := range x {
		d = max(d, math.Abs(x[i]-y[i]))
	}
	return d
}

// rms is the root of the mean squared difference.
func rms(a, b *tensor.Array) float64 {
	x, y := a.Float64s(), b.Float64s()
	sum := 0.0
	for i := range x {
		sum += (x[i] - y[i]) * (x[i] - y[i])
	}
	return math.Sqrt(sum / float64(len(x)))
}

func largest(a *tensor.Array) float64 {
	m := 0.0
	for _, v := range a.Float64s() {
		m = max(m, math.Abs(v))
	}
	return m
}

// The shift is rounded to the latents' type and the scale isn't; values of PyTorch 2.15.
func TestShiftIsRounded(t *testing.T) {
	shift := 0.1159
	v := &VAE{Config: vae.Config{ScalingFactor: 0.3611, ShiftFactor: &shift}}
	x := []float32{0.0391, -0.0781, 0.0156, -0.1172, 0.25, 1.5, -3.25}
	for d, want := range map[tensor.DType][2][]float32{
		tensor.BF16: {
			{0.224609375, -0.10107421875, 0.1591796875, -0.208984375, 0.80859375, 4.28125, -8.875},
			{-0.0277099609375, -0.06982421875, -0.0361328125, -0.083984375, 0.048583984375, 0.5, -1.2109375},
		},
		tensor.F16: {
			{0.22412109375, -0.10040283203125, 0.1591796875, -0.20849609375, 0.80810546875, 4.26953125, -8.8828125},
			{-0.0277252197265625, -0.070068359375, -0.036224365234375, -0.08416748046875, 0.04840087890625, 0.499755859375, -1.21484375},
		},
	} {
		a, err := tensor.FromFloat32(x, len(x)).Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range []func(*tensor.Array) (*tensor.Array, error){v.Unscale, v.Rescale} {
			got, err := f(a)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Float32s(), want[i]) {
				t.Errorf("%s: %v, want %v", d, got.Float32s(), want[i])
			}
		}
	}
}
