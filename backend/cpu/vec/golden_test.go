package vec

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

type goldenTensor struct {
	shape []int
	data  []float32
}

// readGolden reads the float32 tensors of a safetensors file.
func readGolden(t *testing.T, path string) map[string]goldenTensor {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	var header map[string]struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out := map[string]goldenTensor{}
	for name, h := range header {
		if h.DType != "F32" {
			continue
		}
		raw := b[8+int(n)+h.Offsets[0] : 8+int(n)+h.Offsets[1]]
		g := goldenTensor{h.Shape, make([]float32, len(raw)/4)}
		for i := range g.data {
			g.data[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		out[name] = g
	}
	return out
}

// compare fails when a result is further from PyTorch's than an absolute error in f32, or units in the last place in half types.
func compare(t *testing.T, what string, d tensor.DType, got, want []float32, ulpsAllowed int) {
	t.Helper()
	for i, w := range want {
		diff := math.Abs(float64(got[i]) - float64(w))
		tol := 2e-6
		if d != tensor.F32 {
			unit := map[tensor.DType]float64{tensor.BF16: 0x1p-7, tensor.F16: 0x1p-10}[d]
			_, e := math.Frexp(float64(w))
			tol = float64(ulpsAllowed) * unit * math.Ldexp(1, e-1)
		}
		if !(diff <= tol) {
			t.Errorf("%s: element %d is %g, PyTorch has %g", what, i, got[i], w)
			return
		}
	}
}

var halfNames = map[tensor.DType]string{tensor.F32: "float32", tensor.BF16: "bfloat16", tensor.F16: "float16"}

func (f *Funcs) round(d tensor.DType, x []float32) {
	switch d {
	case tensor.BF16:
		f.RoundBF16(x, x)
	case tensor.F16:
		f.RoundF16(x, x)
	}
}

func testGoldens(t *testing.T, path string) {
	g := readGolden(t, path)
	for _, l := range isa.Available() {
		f := For(l)
		for d, dn := range halfNames {
			in := func(name string) []float32 {
				x := append([]float32(nil), g["in."+name].data...)
				f.round(d, x)
				return x
			}
			x, w, b := in("x"), in("norm_w"), in("norm_b")
			const cols = 48
			rows := func(do func(dst, x []float32)) []float32 {
				got := make([]float32, len(x))
				for i := 0; i < len(x); i += cols {
					do(got[i:i+cols], x[i:i+cols])
				}
				f.round(d, got)
				return got
			}
			norm := func(eps float32, mid tensor.DType) []float32 {
				return rows(func(dst, x []float32) { f.RMSNorm(dst, x, w, eps, mid) })
			}
			for _, c := range []struct {
				name string
				got  []float32
				ulps int // half types; where 0, every element must be PyTorch's
			}{
				{"gelu_erf", rows(f.Gelu), 1},
				{"gelu_tanh", rows(f.GeluTanh), 1},
				{"silu", rows(f.Silu), 0},
				{"softmax", rows(f.Softmax), 0},
				{"layer_norm_noaffine_1e-6", rows(func(dst, x []float32) { f.LayerNorm(dst, x, nil, nil, 1e-6) }), 1},
				{"layer_norm_affine_1e-5", rows(func(dst, x []float32) { f.LayerNorm(dst, x, w, b, 1e-5) }), 1},
				{"rms_torch_1e-6", norm(1e-6, tensor.F32), 0},
				{"rms_diffusers_1e-6", norm(1e-6, d), 0},
				{"rms_t5_1e-6", norm(1e-6, d), 0},
				{"rms_mistral_1e-5", norm(1e-5, d), 0},
				{"quick_gelu", rows(func(dst, x []float32) { // x·sigmoid(1.702·x), a rounding after each step
					f.MulScalar(dst, x, 1.702)
					f.round(d, dst)
					f.Sigmoid(dst, dst)
					f.round(d, dst)
					f.Mul(dst, x, dst)
				}), 0},
			} {
				want, ok := g["out."+dn+"."+c.name]
				if !ok {
					t.Fatalf("%s has no %s", path, c.name)
				}
				compare(t, l.String()+" "+dn+" "+c.name, d, c.got, want.data, c.ulps)
			}

			q, cos, sin := in("q"), g["in.rope_cos"].data, g["in.rope_sin"].data // (2, 3, 19, 16); (19, 16) in f32
			got := make([]float32, len(q))
			for i := 0; i < len(q); i += 16 {
				r := i % (19 * 16)
				f.Rope(got[i:i+16], q[i:i+16], cos[r:r+16], sin[r:r+16])
			}
			f.round(d, got)
			compare(t, l.String()+" "+dn+" rope", d, got, g["out."+dn+".rope_interleaved"].data, 0)

			image, gw, gb := in("image"), in("gn_w"), in("gn_b") // (2, 8, 11, 9), channels first
			const channels, pixels = 8, 11 * 9
			for n := range 2 {
				last := make([]float32, channels*pixels)
				for c := range channels {
					for p := range pixels {
						last[p*channels+c] = image[(n*channels+c)*pixels+p]
					}
				}
				m := make([]Moments, 4)
				f.GroupMoments(m, last, channels, make([]float32, 3*channels))
				mean, scale := make([]float32, channels), make([]float32, channels)
				GroupScale(mean, scale, m, gw, 1e-6)
				f.Centred(last, last, mean, scale, gb, false)
				f.round(d, last)
				got := make([]float32, channels*pixels)
				for c := range channels {
					for p := range pixels {
						got[c*pixels+p] = last[p*channels+c]
					}
				}
				compare(t, l.String()+" "+dn+" group_norm", d, got, g["out."+dn+".group_norm_4_1e-6"].data[n*channels*pixels:][:channels*pixels], 1)
			}
		}
	}
}

func TestGoldens(t *testing.T) { testGoldens(t, filepath.Join("testdata", "ops.safetensors")) }

func TestGoldensShared(t *testing.T) {
	testGoldens(t, filepath.Join(shareddata.Dir(t, "golden", "components"), "ops.safetensors"))
}
