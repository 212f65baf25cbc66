package isa

import "sync"

// emulated ends with a 1 where AMX is available though the processor has none. Nothing in Go sets it: the emulator in
// backend/cpu/isa/amxemu does, in the process that it runs, and finds it by its text, since symbols may be stripped.
var emulated = []byte("gesso: amx is emulated if a 1 follows:\x00")

// hasAMX reports whether tiles of bfloat16 and int8 can be used, and asks the operating system for them: once for the
// process, which covers all threads, those that exist and those to come.
var hasAMX = sync.OnceValue(func() bool {
	return emulated[len(emulated)-1] == 1 || hasTiles(cpuid, xgetbv, permitTiles)
})

// hasTiles asks permit, the operating system, only for what the processor has.
func hasTiles(cpuid func(leaf, sub uint32) (a, b, c, d uint32), xgetbv func() uint32, permit func() bool) bool {
	return tileInstructions(cpuid, xgetbv) && permit()
}

// tileInstructions looks at the processor: AMX-TILE, AMX-BF16 and AMX-INT8 with the palette of eight tiles of 16 rows of 64
// bytes, and tile state that the operating system saves (Intel SDM, volume 1, chapter 18).
func tileInstructions(cpuid func(leaf, sub uint32) (a, b, c, d uint32), xgetbv func() uint32) bool {
	if top, _, _, _ := cpuid(0, 0); top < 0x1d {
		return false
	}
	const bf16, tile, int8 = 1 << 22, 1 << 24, 1 << 25
	_, _, osxsave, _ := cpuid(1, 0)
	_, _, _, d := cpuid(7, 0)
	if osxsave>>27&1 == 0 || d&(bf16|tile|int8) != bf16|tile|int8 || xgetbv()>>17&3 != 3 {
		return false
	}
	sizes, count, rows, _ := cpuid(0x1d, 1)
	return sizes>>16 == 1024 && count>>16 >= 8 && count&0xffff == 64 && rows&0xffff >= 16
}

func cpuid(leaf, sub uint32) (a, b, c, d uint32)

func xgetbv() uint32
