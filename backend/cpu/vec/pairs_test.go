package vec

import (
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// TestPairs compares the operations on bfloat16 words with widening, computing and rounding, on every level and with
// lengths that leave a rest.
func TestPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 3, 31, 32, 33, 64, 100, 4097} {
		x, y, z := make([]uint16, n), make([]uint16, n), make([]uint16, n)
		for i := range x {
			x[i], y[i], z[i] = uint16(r.Uint32()), uint16(r.Uint32()), uint16(r.Uint32())
			if i%2 == 0 { // of one size, so that sums round
				y[i], z[i] = x[i]&0xff80|y[i]&0x807f, x[i]&0xff80|z[i]&0x807f
			}
		}
		for _, l := range isa.Available() {
			f := For(l)
			wide := func(w []uint16) []float32 {
				v := make([]float32, n)
				f.FromBF16(v, w)
				return v
			}
			check := func(name string, got []uint16, want []float32) {
				t.Helper()
				for i, w := range got {
					g, v := tensor.BF16ToFloat32(w), tensor.RoundTo(tensor.BF16, want[i])
					if bits(g) != bits(v) && !(g != g && v != v) {
						t.Fatalf("%v %s of %d: element %d is %g, want %g", l, name, n, i, g, v)
					}
				}
			}
			want, got := make([]float32, n), make([]uint16, n)
			f.Add(want, wide(x), wide(y))
			f.AddBF16(got, x, y)
			check("add", got, want)
			f.Sub(want, wide(x), wide(y))
			f.SubBF16(got, x, y)
			check("sub", got, want)
			f.Mul(want, wide(x), wide(y))
			f.MulBF16(got, x, y)
			check("mul", got, want)
			f.Modulate(want, wide(x), wide(y), wide(z), tensor.BF16)
			f.ModulateBF16(got, x, y, z)
			check("modulate", got, want)
			sums := make([]float32, n)
			f.MulScalar(sums, wide(z), 1.003)
			f.Add(want, sums, wide(y))
			f.AddToBF16(got, sums, y)
			check("add to bfloat16", got, want)
			f.RoundBF16(want, want)
			f.Add(want, want, wide(x))
			f.AddAddToBF16(got, sums, y, x)
			check("add two to bfloat16", got, want)
			gate := make([]float32, n)
			f.Add(gate, sums, wide(y))
			f.RoundBF16(gate, gate)
			f.GeluTanh(want, gate)
			f.AddGeluTanhToBF16(got, sums, y)
			check("add to bfloat16, gelu", got, want)
			f.MulScalar(want, gate, 1.702)
			f.RoundBF16(want, want)
			f.Sigmoid(want, want)
			f.RoundBF16(want, want)
			f.Mul(want, gate, want)
			f.AddQuickGeluToBF16(got, sums, y)
			check("add to bfloat16, quick gelu", got, want)
			f.Mul(gate, gate, wide(z))
			f.RoundBF16(gate, gate)
			f.Add(want, gate, wide(x))
			f.AddMulAddToBF16(got, sums, y, z, x)
			check("add to bfloat16, gated, added", got, want)
			copy(got, x)
			f.MulBF16(got, got, y)
			f.Mul(want, wide(x), wide(y))
			check("mul in place", got, want)
		}
	}
}
