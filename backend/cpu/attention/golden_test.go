package attention

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

// readGolden reads the tensors of a safetensors file as bytes.
func readGolden(t *testing.T, path string) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out := map[string][]byte{}
	for name, h := range header {
		if name != "__metadata__" {
			out[name] = append([]byte(nil), b[8+int(n)+h.Offsets[0]:8+int(n)+h.Offsets[1]]...)
		}
	}
	return out
}

// headMajor is the view of a (B, H, N, D) value.
func headMajor(data []byte, h, n, d int) View {
	return View{Data: data, Batch: h * n * d, Token: d, Head: n * d}
}

func testGoldens(t *testing.T, path string) {
	g := readGolden(t, path)
	const b, h, nq, nk, size = 2, 3, 19, 23, 16
	for d, name := range map[tensor.DType]string{tensor.F32: "float32", tensor.BF16: "bfloat16", tensor.F16: "float16"} {
		in := func(name string) []byte { return encode(d, floats(g["in."+name])).data }
		q, k, v := in("q"), in("k"), in("v")
		base := Problem{B: b, Nq: nq, Nk: nk, H: h, Hkv: h, D: size, DType: d,
			Q: headMajor(q, h, nq, size), K: headMajor(k, h, nk, size), V: headMajor(v, h, nk, size)}
		for _, c := range []struct {
			op  string
			set func(p *Problem)
		}{
			{"sdpa", func(p *Problem) {}},
			{"sdpa_bool_mask", func(p *Problem) { p.Mask = Mask{g["in.sdpa_mask"], nq * nk, 0, nk} }},
			{"sdpa_causal", func(p *Problem) { p.Nq, p.Q, p.Causal = nk, p.K, true }},
		} {
			p := base
			c.set(&p)
			p.Out = headMajor(make([]byte, b*h*p.Nq*size*d.Size()), h, p.Nq, size)
			want := floats(g["out."+name+"."+c.op])
			if len(want) == 0 {
				t.Fatalf("%s has no %s for %v", path, c.op, d)
			}
			for _, l := range levels(d, 0) {
				if err := Run(nil, l, &p); err != nil {
					t.Fatal(err)
				}
				differ := 0
				for i, x := range decode(d, p.Out.Data) {
					if x != want[i] {
						differ++
					}
					w := float64(want[i])
					tol := map[tensor.DType]float64{tensor.F32: 1e-6, tensor.BF16: 1e-2, tensor.F16: 1e-3}[d] * max(0.5, math.Abs(w))
					if !(math.Abs(float64(x)-w) <= tol) {
						t.Errorf("%v %v %s: element %d is %g, PyTorch has %g", l, d, c.op, i, x, w)
						break
					}
				}
				// Probabilities are rounded where PyTorch rounds them: results are the same but for the order of sums.
				if d == tensor.BF16 && differ > len(want)/20 {
					t.Errorf("%v %v %s: %d of %d elements differ from PyTorch's", l, d, c.op, differ, len(want))
				}
			}
		}
	}
}

func TestGoldens(t *testing.T) { testGoldens(t, filepath.Join("testdata", "sdpa.safetensors")) }

func TestGoldensShared(t *testing.T) {
	testGoldens(t, filepath.Join(shareddata.Dir(t, "golden", "components"), "ops.safetensors"))
}
