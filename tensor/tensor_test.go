package tensor

import (
	"math"
	"testing"
)

// Widening is exact and rounding is to nearest even, for every half number and its neighbourhood.
func TestHalfConversions(t *testing.T) {
	for _, c := range []struct {
		name   string
		widen  func(uint16) float32
		narrow func(float32) uint16
	}{{"bf16", BF16ToFloat32, Float32ToBF16}, {"f16", F16ToFloat32, Float32ToF16}} {
		for h := range 1 << 16 {
			f := c.widen(uint16(h))
			back := c.narrow(f)
			if math.IsNaN(float64(f)) {
				if !math.IsNaN(float64(c.widen(back))) {
					t.Fatalf("%s: NaN %#x became %#x", c.name, h, back)
				}
				continue
			}
			if back != uint16(h) {
				t.Fatalf("%s: %#x came back as %#x", c.name, h, back)
			}
			next := c.widen(uint16(h) + 1)
			if uint16(h)&0x7fff == 0x7fff || math.IsInf(float64(f), 0) || math.IsInf(float64(next), 0) || math.IsNaN(float64(next)) || next*f < 0 {
				continue
			}
			mid := float32((float64(f) + float64(next)) / 2)
			want := uint16(h)
			if h%2 == 1 { // a tie goes to the even one
				want++
			}
			if got := c.narrow(mid); got != want {
				t.Fatalf("%s: between %#x and the next: %#x, want %#x", c.name, h, got, want)
			}
		}
	}
	for f, want := range map[float32]uint16{65519.996: 0x7bff, 65520: 0x7c00, -65520: 0xfc00, 1e-8: 0, 3e-8: 1, float32(math.Inf(1)): 0x7c00} {
		if got := Float32ToF16(f); got != want {
			t.Errorf("f16 of %g is %#x, want %#x", f, got, want)
		}
	}
}

func TestFloat8(t *testing.T) {
	for b, want := range map[uint8]float32{0x00: 0, 0x01: 1.0 / 512, 0x07: 7.0 / 512, 0x08: 1.0 / 64, 0x38: 1, 0x7e: 448, 0xb8: -1} {
		if got := F8E4M3ToFloat32(b); got != want {
			t.Errorf("e4m3 %#x is %g, want %g", b, got, want)
		}
	}
	if v := F8E4M3ToFloat32(0x7f); !math.IsNaN(float64(v)) {
		t.Errorf("e4m3 0x7f is %g", v)
	}
	for b, want := range map[uint8]float32{0x3c: 1, 0x01: 1.0 / 65536, 0x7b: 57344, 0xbc: -1} {
		if got := F8E5M2ToFloat32(b); got != want {
			t.Errorf("e5m2 %#x is %g, want %g", b, got, want)
		}
	}
}

// A large array, which several goroutines convert, equals its elements converted one by one.
func TestConvertLarge(t *testing.T) {
	n := 3*piece + 17
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i)*0.37 - 1000
	}
	a := FromFloat32(v, n)
	for _, d := range []DType{BF16, F16} {
		h, err := a.Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.Convert(F32)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range f.Float32s() {
			if want := RoundTo(d, v[i]); x != want && !(math.IsInf(float64(x), 0) && math.IsInf(float64(want), 0)) {
				t.Fatalf("%s element %d: %g, want %g", d, i, x, want)
			}
		}
	}
}

func TestConvert(t *testing.T) {
	a := FromFloat64([]float64{-1.7, 0, 2.5, 300}, 4)
	for d, want := range map[DType][]float64{I64: {-1, 0, 2, 300}, I32: {-1, 0, 2, 300}, Bool: {1, 0, 1, 1}, U8: {255, 0, 2, 44}, F32: {float64(float32(-1.7)), 0, 2.5, 300}} {
		b, err := a.Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range b.Float64s() {
			if v != want[i] {
				t.Errorf("%s element %d: %g, want %g", d, i, v, want[i])
			}
		}
	}
	if _, err := a.Convert(F8E4M3); err == nil {
		t.Error("conversion to an 8-bit float was accepted")
	}
	if d, err := ParseDType("torch.bfloat16"); err != nil || d != BF16 {
		t.Errorf("torch.bfloat16: %v, %v", d, err)
	}
	if _, err := ParseDType("f12"); err == nil {
		t.Error("f12 was accepted")
	}
	if err := (Shape{1 << 40, 1 << 40}).Check(); err == nil {
		t.Error("an overflowing shape was accepted")
	}
}
