package conv

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// TestNotFinitePixels: a pixel that is NaN reaches the results whose patches have it, and no others.
func TestNotFinitePixels(t *testing.T) {
	const y, x = 3, 7 // the pixel
	for _, level := range isa.Available() {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
			for _, c := range []int{1, 3, 5, 16, 24} {
				for _, o := range []int{1, 3, 4, 17} {
					for _, k := range []int{1, 3} {
						p := Problem{N: 1, H: 7, W: 21, C: c, O: o, KH: k, KW: k, Pad: Same(k / 2)}
						rnd := rand.New(rand.NewPCG(4, uint64(c*o)))
						p.X, _ = random(rnd, d, p.H*p.W*c)
						p.Weight, _ = random(rnd, d, o*c*k*k)
						size := d.Size()
						for i := range c * size {
							p.X.Data[(y*p.W+x)*c*size+i] = 0xff
						}
						got := make([]float32, p.H*p.W*o)
						if err := Run(nil, level, &p, func(_, row, col int, acc []float32) { copy(got[row*o+col:], acc) }); err != nil {
							t.Fatal(err)
						}
						for i, v := range got {
							px := i / o
							sees := max(px/p.W-y, y-px/p.W) <= k/2 && max(px%p.W-x, x-px%p.W) <= k/2
							if math.IsNaN(float64(v)) != sees {
								t.Fatalf("%v %v, %d to %d channels, kernel %d: pixel (%d, %d) is %v", level, d, c, o, k, px/p.W, px%p.W, v)
							}
						}
						if p.KH == 3 {
							testUpsampledNotFinite(t, level, &p, y, x)
						}
					}
				}
			}
		}
	}
}

func testUpsampledNotFinite(t *testing.T, level isa.Level, p *Problem, y, x int) {
	got := make([]float32, 4*p.H*p.W*p.O)
	var emit gemm.Emit = func(_, row, col int, acc []float32) { copy(got[row*p.O+col:], acc) }
	if err := RunUpsampled(nil, level, p, emit); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		oy, ox := i/p.O/(2*p.W), i/p.O%(2*p.W)
		sees := oy >= 2*y-1 && oy <= 2*y+2 && ox >= 2*x-1 && ox <= 2*x+2
		if math.IsNaN(float64(v)) != sees {
			t.Fatalf("%v, %d to %d channels, upsampled: pixel (%d, %d) is %v", level, p.C, p.O, oy, ox, v)
		}
	}
}
