package isa

import (
	"testing"

	"golang.org/x/sys/cpu"
)

// TestLevelsNeedTheirFeatures: a machine, or a virtual one that hides something, has the levels below the first one of which a
// feature is missing.
func TestLevelsNeedTheirFeatures(t *testing.T) {
	x := &cpu.X86
	features, amx := *x, hasAMX
	defer func() { *x, hasAMX = features, amx }()
	tiles := true
	hasAMX = func() bool { return tiles }
	highest := func(want Level) {
		t.Helper()
		if got := Detect(); got != want {
			t.Errorf("%v, expected %v", got, want)
		}
	}
	all := []struct {
		feature *bool
		below   Level
	}{
		{&x.HasAVX2, Portable}, {&x.HasFMA, Portable}, {&x.HasF16C, Portable},
		{&x.HasAVX512F, AVX2}, {&x.HasAVX512BW, AVX2}, {&x.HasAVX512DQ, AVX2}, {&x.HasAVX512VL, AVX2}, {&x.HasBMI2, AVX2},
		{&x.HasAVX512BF16, AVX512}, {&x.HasAVX512VNNI, AVX512},
		{&tiles, AVX512BF16},
	}
	for _, c := range all {
		*c.feature = true
	}
	highest(AMX)
	for _, c := range all {
		*c.feature = false
		highest(c.below)
		*c.feature = true
	}
}

// registers is what CPUID says, by leaf and subleaf.
type registers map[[2]uint32][4]uint32

func (r registers) cpuid(leaf, sub uint32) (a, b, c, d uint32) {
	v := r[[2]uint32{leaf, sub}]
	return v[0], v[1], v[2], v[3]
}

// TestTileInstructions: tiles are used where the processor has them in the known size and the operating system saves them; a
// virtual machine may show the first without the second, and a kernel or a sandbox may refuse.
func TestTileInstructions(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(r registers, saved *uint32)
		want  bool
	}{
		{"as Sapphire Rapids", func(registers, *uint32) {}, true},
		{"no leaf of tiles", func(r registers, _ *uint32) { r[[2]uint32{0, 0}] = [4]uint32{0x1c} }, false},
		{"the system saves no extended state", func(r registers, _ *uint32) { r[[2]uint32{1, 0}] = [4]uint32{} }, false},
		{"no AMX-TILE", func(r registers, _ *uint32) { r[[2]uint32{7, 0}] = [4]uint32{3: 1<<22 | 1<<25} }, false},
		{"no AMX-BF16", func(r registers, _ *uint32) { r[[2]uint32{7, 0}] = [4]uint32{3: 1<<24 | 1<<25} }, false},
		{"no AMX-INT8", func(r registers, _ *uint32) { r[[2]uint32{7, 0}] = [4]uint32{3: 1<<24 | 1<<22} }, false},
		{"tiles are not saved", func(_ registers, saved *uint32) { *saved = 0xe7 }, false},
		{"their data is not saved", func(_ registers, saved *uint32) { *saved = 0x200e7 }, false},
		{"smaller tiles", func(r registers, _ *uint32) { r[[2]uint32{0x1d, 1}] = [4]uint32{512<<16 | 4096, 8<<16 | 64, 8} }, false},
		{"narrower rows", func(r registers, _ *uint32) { r[[2]uint32{0x1d, 1}] = [4]uint32{1024<<16 | 8192, 8<<16 | 32, 32} }, false},
		{"fewer tiles", func(r registers, _ *uint32) { r[[2]uint32{0x1d, 1}] = [4]uint32{1024<<16 | 4096, 4<<16 | 64, 16} }, false},
		{"no palette", func(r registers, _ *uint32) { delete(r, [2]uint32{0x1d, 1}) }, false},
	} {
		r := registers{
			{0, 0}: {0x20}, {1, 0}: {2: 1 << 27}, {7, 0}: {3: 1<<22 | 1<<24 | 1<<25},
			{0x1d, 0}: {1}, {0x1d, 1}: {1024<<16 | 8192, 8<<16 | 64, 16},
		}
		saved := uint32(0x602e7) // XCR0: x87, SSE, AVX, AVX-512, PKRU, tile configuration and data
		c.spoil(r, &saved)
		xgetbv := func() uint32 {
			if _, _, osxsave, _ := r.cpuid(1, 0); osxsave>>27&1 == 0 {
				t.Fatalf("%s: XGETBV would be an invalid instruction", c.name)
			}
			return saved
		}
		for _, permitted := range []bool{true, false} {
			asked := false
			got := hasTiles(r.cpuid, xgetbv, func() bool { asked = true; return permitted })
			if got != (c.want && permitted) || asked != c.want {
				t.Errorf("%s, permitted %v: %v (asked %v), expected %v", c.name, permitted, got, asked, c.want && permitted)
			}
		}
	}
}

// TestTilesAreGranted asks the operating system in earnest: it grants what the processor has, or nothing.
func TestTilesAreGranted(t *testing.T) {
	granted := permitTiles()
	if has := tileInstructions(cpuid, xgetbv); granted && !has {
		t.Error("tiles are granted by a processor that has none")
	}
	if again := permitTiles(); again != granted {
		t.Errorf("asked again, the system says %v after %v", again, granted)
	}
}
