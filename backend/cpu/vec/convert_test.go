package vec

import (
	"math"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

func TestHalfConversionsAllWords(t *testing.T) {
	words := make([]uint16, 1<<16)
	for i := range words {
		words[i] = uint16(i)
	}
	wide := make([]float32, len(words))
	back := make([]uint16, len(words))
	for _, l := range isa.Available() {
		f := For(l)
		f.FromBF16(wide, words)
		for i, w := range words {
			if bits(wide[i]) != uint32(w)<<16 {
				t.Fatalf("%v: bfloat16 %#x became %#x", l, w, bits(wide[i]))
			}
		}
		f.ToBF16(back, wide)
		for i, w := range words {
			if back[i] != w && back[i] != w|0x40 { // a signalling NaN becomes quiet
				t.Fatalf("%v: bfloat16 %#x came back as %#x", l, w, back[i])
			}
		}
		f.FromF16(wide, words)
		for i, w := range words {
			if want := tensor.F16ToFloat32(w); bits(wide[i]) != bits(want) {
				t.Fatalf("%v: binary16 %#x became %g, want %g", l, w, wide[i], want)
			}
		}
		f.ToF16(back, wide)
		for i, w := range words {
			if back[i] != w && back[i] != w|0x200 {
				t.Fatalf("%v: binary16 %#x came back as %#x", l, w, back[i])
			}
		}
	}
}

// halfPoints holds values at, and one float32 below and above, the middle of neighbouring half values.
func halfPoints() []float32 {
	xs := sweep()
	for w := uint32(0); w < 1<<16; w += 3 {
		u := w<<16 | 0x8000
		xs = append(xs, float(u-1), float(u), float(u+1))
		h := bits(tensor.F16ToFloat32(uint16(w))) | 0x1000
		xs = append(xs, float(h-1), float(h), float(h+1))
	}
	return append(xs, 65504, 65519, 65520, 65536, 0x1p-24, 0x1p-25, 0x1.8p-25, -0x1p-25, -0x1.000002p-25)
}

func TestRounding(t *testing.T) {
	xs := halfPoints()
	got, words := make([]float32, len(xs)), make([]uint16, len(xs))
	for _, l := range isa.Available() {
		f := For(l)
		for _, c := range []struct {
			d     tensor.DType
			round func(dst, x []float32)
			to    func(dst []uint16, x []float32)
			word  func(float32) uint16
		}{
			{tensor.BF16, f.RoundBF16, f.ToBF16, tensor.Float32ToBF16},
			{tensor.F16, f.RoundF16, f.ToF16, tensor.Float32ToF16},
		} {
			c.round(got, xs)
			c.to(words, xs)
			for i, x := range xs {
				if want := tensor.RoundTo(c.d, x); bits(got[i]) != bits(want) && x == x {
					t.Fatalf("%v: %g rounds to %v %g, want %g", l, x, c.d, got[i], want)
				}
				if want := c.word(x); words[i] != want && x == x {
					t.Fatalf("%v: %g becomes %v %#x, want %#x", l, x, c.d, words[i], want)
				}
				if x != x && got[i] == got[i] {
					t.Fatalf("%v: NaN rounds to %v %g", l, c.d, got[i])
				}
			}
		}
	}
}

func TestHalfEdges(t *testing.T) {
	for _, l := range isa.Available() {
		f := For(l)
		for _, n := range lengths {
			x := mixed(n+1, 9)[1:]
			want := make([]uint16, n)
			goFuncs.ToBF16(want, x)
			buf := make([]uint16, n+16)
			for i := range buf {
				buf[i] = 0xabcd
			}
			f.ToBF16(buf[1:1+n], x)
			wide := make([]float32, n+16)
			f.FromBF16(wide[1:1+n], buf[1:1+n])
			for i := range want {
				if buf[1+i] != want[i] && x[i] == x[i] {
					t.Fatalf("%v length %d: element %d is %#x, want %#x", l, n, i, buf[1+i], want[i])
				}
				if bits(wide[1+i]) != uint32(buf[1+i])<<16 {
					t.Fatalf("%v length %d: element %d widens to %g", l, n, i, wide[1+i])
				}
			}
			if buf[0] != 0xabcd || buf[1+n] != 0xabcd || wide[0] != 0 || wide[1+n] != 0 {
				t.Fatalf("%v length %d: wrote outside the destination", l, n)
			}
			f.ToF16(buf[1:1+n], x)
			f.FromF16(wide[1:1+n], buf[1:1+n])
			for i := range want {
				if w := tensor.RoundTo(tensor.F16, x[i]); wide[1+i] != w && w == w {
					t.Fatalf("%v length %d: element %d is %g, want %g", l, n, i, wide[1+i], w)
				}
			}
			if buf[0] != 0xabcd || buf[1+n] != 0xabcd || wide[0] != 0 || wide[1+n] != 0 {
				t.Fatalf("%v length %d: wrote outside the destination", l, n)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	dst := make([]float32, 4)
	FromNumbers(dst, []int64{1, -1, 1 << 40, 16777217})
	if dst[0] != 1 || dst[1] != -1 || dst[2] != 1<<40 || dst[3] != 16777216 {
		t.Errorf("int64: %v", dst)
	}
	FromNumbers(dst, []float64{0.1, 1e300, -1e-300, math.Pi})
	if dst[0] != 0.1 || !math.IsInf(float64(dst[1]), 1) || dst[2] != 0 || dst[3] != math.Pi {
		t.Errorf("float64: %v", dst)
	}
	FromBools(dst, []byte{0, 1, 2, 0})
	if dst[0] != 0 || dst[1] != 1 || dst[2] != 1 || dst[3] != 0 {
		t.Errorf("bool: %v", dst)
	}
	nan := float32(math.NaN())
	b := make([]byte, 4)
	ToBools(b, []float32{0, -0.5, nan, 3})
	if b[0] != 0 || b[1] != 1 || b[2] != 1 || b[3] != 1 {
		t.Errorf("to bool: %v", b)
	}
	i32 := make([]int32, 6)
	ToIntegers(i32, []float32{1.9, -1.9, 0, 2147483520, -2147483648, nan})
	if want := [6]int32{1, -1, 0, 2147483520, -2147483648, 0}; [6]int32(i32) != want {
		t.Errorf("to int32: %v, want %v", i32, want)
	}
	u8 := make([]uint8, 3)
	ToIntegers(u8, []float32{255.9, 257, -1})
	if want := [3]uint8{255, 1, 255}; [3]uint8(u8) != want {
		t.Errorf("to uint8: %v, want %v", u8, want)
	}
	i64 := make([]int64, 2)
	ToIntegers(i64, []float32{float32(math.Inf(1)), -1e10})
	if i64[0] != math.MinInt64 || i64[1] != -1e10 {
		t.Errorf("to int64: %v", i64)
	}
	f64 := make([]float64, 1)
	ToFloat64(f64, []float32{0.1})
	if f64[0] != float64(float32(0.1)) {
		t.Errorf("to float64: %v", f64)
	}
}
