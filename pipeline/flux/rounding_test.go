package flux

import (
	"slices"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// Timesteps are rounded to the latents' type before they are divided: 750 is 752 in bf16, as in Diffusers.
func TestTimestepsAreRounded(t *testing.T) {
	d := &denoiser{r: &run{batch: 2}, times: []float32{1000, 982.1429, 750, 500}}
	for dtype, want := range map[tensor.DType][]float32{
		tensor.F32:  {0.98214287, 0.98214287, 0.75, 0.75, 0.5, 0.5, 0.5, 0.5},
		tensor.BF16: {0.984, 0.984, 0.752, 0.752, 0.5, 0.5, 0.5, 0.5},
	} {
		got, err := d.timesteps(dtype, 1, 4)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] = tensor.RoundTo(dtype, want[i])
		}
		if !slices.Equal(got.Float32s(), want) {
			t.Errorf("%s: %v, want %v", dtype, got.Float32s(), want)
		}
	}
}

// Positions have the latents' type too: above 256 bf16 has no odd ones.
func TestPositionsAreRounded(t *testing.T) {
	for dtype, want := range map[tensor.DType]float64{tensor.F32: 257, tensor.BF16: 256, tensor.F16: 257} {
		ids := imageIDs(dtype, 2, 600)
		if got := ids[257]; got[0] != 0 || got[1] != 0 || got[2] != want {
			t.Errorf("%s: %v, want %g", dtype, got, want)
		}
	}
}
