package rng

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gesso-go/gesso/tensor"
)

func draw(t *testing.T, g *Generator, n int) []byte {
	t.Helper()
	a, err := g.Randn(tensor.F32, n)
	if err != nil {
		t.Fatal(err)
	}
	return a.Data
}

// TestMT19937 compares with the reference implementation's output for seed 5489 (C++ std::mt19937: the 10000th draw).
func TestMT19937(t *testing.T) {
	var m mt19937
	m.seed(5489)
	var v uint32
	for range 10000 {
		v = m.uint32()
	}
	if v != 4123659995 {
		t.Errorf("draw 10000 is %d, want 4123659995", v)
	}
}

func TestRestoreRepeatsDraws(t *testing.T) {
	g := New(9)
	draw(t, g, 3) // leaves a spare value and a half-spent block
	s, c := g.State(), g.Clone()
	want := append(draw(t, g, 5), draw(t, g, 700)...)
	if got := append(draw(t, c, 5), draw(t, c, 700)...); !bytes.Equal(got, want) {
		t.Error("a clone draws other values")
	}
	for range 2 {
		g.Restore(s)
		if got := append(draw(t, g, 5), draw(t, g, 700)...); !bytes.Equal(got, want) {
			t.Error("a restored generator draws other values")
		}
	}
}

func TestOnlyLow32BitsOfSeedCount(t *testing.T) {
	if !bytes.Equal(draw(t, New(5), 40), draw(t, New(1<<32+5), 40)) {
		t.Error("seed 2^32+5 differs from seed 5")
	}
	if g := New(1<<32 + 5); g.Seed() != 1<<32+5 {
		t.Errorf("seed is reported as %d", g.Seed())
	}
}

func TestParseSeed(t *testing.T) {
	for s, want := range map[string]uint64{
		"0": 0, "42": 42, "-1": math.MaxUint64, "18446744073709551615": math.MaxUint64,
		"-9223372036854775808": 1 << 63, "007": 7, "-0": 0,
	} {
		if got, err := ParseSeed(s); err != nil || got != want {
			t.Errorf("ParseSeed(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-", "1.5", "0x10", "1_000", " 1", "18446744073709551616", "-9223372036854775809", "--1", "-+1"} {
		if _, err := ParseSeed(s); err == nil || !strings.Contains(err.Error(), "whole number") {
			t.Errorf("ParseSeed(%q) gives error %v", s, err)
		}
	}
}

func FuzzParseSeed(f *testing.F) {
	f.Add("-9223372036854775808")
	f.Add("18446744073709551616")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseSeed(s)
		if err != nil {
			return
		}
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			t.Fatalf("%q was accepted", s)
		}
		mask := new(big.Int).SetUint64(math.MaxUint64)
		if n.And(n, mask).Uint64() != got {
			t.Errorf("ParseSeed(%q) = %d", s, got)
		}
	})
}

func TestRandomSeed(t *testing.T) {
	if s, err := RandomSeed(strings.NewReader("\x01\x02\x03\x04")); err != nil || s != 0x04030201 {
		t.Errorf("got %#x, %v", s, err)
	}
	broken := errors.New("no entropy")
	if _, err := RandomSeed(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	seen := map[uint64]bool{}
	for range 8 {
		s, err := RandomSeed(nil)
		if err != nil || s > math.MaxUint32 {
			t.Fatalf("got %d, %v", s, err)
		}
		seen[s] = true
	}
	if len(seen) < 2 {
		t.Error("every random seed is the same")
	}
}

func TestRandnBatch(t *testing.T) {
	one, err := RandnBatch([]*Generator{New(0)}, tensor.F32, 2, 4, 4)
	if err != nil || !bytes.Equal(one.Data, draw(t, New(0), 32)) {
		t.Errorf("one generator draws %v, %v", one, err)
	}
	each, err := RandnBatch([]*Generator{New(0), New(1)}, tensor.F32, 2, 4, 4)
	if err != nil || !bytes.Equal(each.Data, append(draw(t, New(0), 16), draw(t, New(1), 16)...)) {
		t.Errorf("two generators draw %v, %v", each, err)
	}
	if err := each.Check(); err != nil {
		t.Error(err)
	}
	for _, n := range []int{0, 3} {
		if _, err := RandnBatch(make([]*Generator, n), tensor.F32, 2, 4); err == nil {
			t.Errorf("%d generators for a batch of 2 were accepted", n)
		}
	}
}

// exactFMA computes x*y+z without rounding, then rounds.
func exactFMA(x, y, z float32) float32 {
	b := func(v float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(v)) }
	r := new(big.Float).SetPrec(2000).Mul(b(x), b(y))
	f, _ := r.Add(r, b(z)).Float32()
	return f
}

func TestFMARoundsOnce(t *testing.T) {
	// 1 + 2^-24 is half-way; the product adds or takes a little, which a sum rounded to double first would lose.
	tie := float32(1.0/(1<<24)) * (1 + 1.0/(1<<23))
	for _, c := range [][3]float32{
		{1 + 1.0/(1<<23), 1.0 / (1 << 24), 1},
		{1 - 1.0/(1<<24), 1.0 / (1 << 24), 1},
		{tie, 1, 1}, {-tie, 1, -1},
		{1 + 1.0/(1<<12), 1 + 1.0/(1<<12), 1.0 / (1 << 60)},
		{1 + 1.0/(1<<12), 1 + 1.0/(1<<12), -1.0 / (1 << 60)},
		{-(1 + 1.0/(1<<12)), 1 + 1.0/(1<<12), 1.0 / (1 << 60)},
		{3, 5, -15},
	} {
		if got, want := fma(c[0], c[1], c[2]), exactFMA(c[0], c[1], c[2]); got != want {
			t.Errorf("fma%v = %v, want %v", c, got, want)
		}
	}
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for range 20000 {
		// few significant bits make half-way sums common
		v := func() float32 {
			return float32(r.IntN(1<<13)-1<<12) * float32(math.Ldexp(1, r.IntN(60)-40))
		}
		x, y, z := v(), v(), v()
		if got, want := fma(x, y, z), exactFMA(x, y, z); got != want {
			t.Fatalf("fma(%v, %v, %v) = %v, want %v", x, y, z, got, want)
		}
	}
}

// A uniform of zero makes the radius -0; PyTorch's addition of the mean turns it into 0.
func TestZeroRadiusGivesPositiveZero(t *testing.T) {
	d32, d64 := [block]float32{}, [block]float64{}
	d32[8], d64[8] = .5, .5 // θ = π
	boxMuller32(&d32)
	boxMuller64(&d64)
	for i := range block {
		if math.Float32bits(d32[i]) != 0 || math.Float64bits(d64[i]) != 0 {
			t.Errorf("value %d is %v, %v", i, d32[i], d64[i])
		}
	}
}

func TestDoubleFunctionsAreCloseToMath(t *testing.T) {
	r := mathrand.New(mathrand.NewPCG(3, 4))
	near := func(a, b float64) bool { return math.Abs(a-b) <= 2.3e-16*math.Abs(b)+1e-18 }
	for range 2000 {
		u := 1 - r.Float64()
		if got := ln(u); !near(got, math.Log(u)) {
			t.Fatalf("ln(%v) = %v, want %v", u, got, math.Log(u))
		}
		x := 2 * math.Pi * u
		sin, cos := sincos(x)
		if math.Abs(sin-math.Sin(x)) > 2.3e-16 || math.Abs(cos-math.Cos(x)) > 2.3e-16 {
			t.Fatalf("sincos(%v) = %v, %v", x, sin, cos)
		}
	}
	if ln(1) != 0 || !near(ln(0x1p-53), -53*math.Ln2) {
		t.Error("ln is wrong at an end of its range")
	}
}
