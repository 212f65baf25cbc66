package gemm

import "github.com/gesso-go/gesso/backend/cpu/isa"

// kernels is the table of this architecture, in order of preference.
var kernels = []kernel{
	{
		name: "amx bf16", level: isa.AMX, kind: wordBF16, cols: 32,
		panel: panelBF16_amx,
		block: blocking{rows: 256, cols: 512, words: 256}, // a panel's words stay in the first cache
		vec:   vector512,
	},
	{
		name: "amx int8", level: isa.AMX, kind: wordI8, cols: 32,
		panel: panelI8_amx,
		block: blocking{rows: 256, cols: 512, words: 256},
		vec:   vector512,
	},
	{
		name: "avx512 bf16", level: isa.AVX512BF16, kind: wordBF16, cols: 32,
		tiles: []tile{{12, tileBF16x12_512}, {11, tileBF16x11_512}, {10, tileBF16x10_512}, {9, tileBF16x9_512}, {8, tileBF16x8_512}, {7, tileBF16x7_512}, {6, tileBF16x6_512}, {5, tileBF16x5_512}, {4, tileBF16x4_512}, {3, tileBF16x3_512}, {2, tileBF16x2_512}, {1, tileBF16x1_512}},
		block: blocking{rows: 120, cols: 512, words: 1024},
		vec:   vector512, pays: BF16Pays,
	},
	{
		name: "avx512 bf16 widened", level: isa.AVX512, kind: wordBF16, wide: true, cols: 32,
		tiles: []tile{{12, tileWide12_512}, {11, tileWide11_512}, {10, tileWide10_512}, {9, tileWide9_512}, {8, tileWide8_512}, {7, tileWide7_512}, {6, tileWide6_512}, {5, tileWide5_512}, {4, tileWide4_512}, {3, tileWide3_512}, {2, tileWide2_512}, {1, tileWide1_512}},
		block: blocking{rows: 120, cols: 512, words: 512},
		vec:   vector512,
	},
	{
		name: "avx512 f32", level: isa.AVX512, cols: 32,
		tiles: []tile{{12, tileF32x12_512}, {11, tileF32x11_512}, {10, tileF32x10_512}, {9, tileF32x9_512}, {8, tileF32x8_512}, {7, tileF32x7_512}, {6, tileF32x6_512}, {5, tileF32x5_512}, {4, tileF32x4_512}, {3, tileF32x3_512}, {2, tileF32x2_512}, {1, tileF32x1_512}},
		block: blocking{rows: 120, cols: 512, words: 1024},
		vec:   vector512,
	},
	{
		name: "avx2 bf16 widened", level: isa.AVX2, kind: wordBF16, wide: true, cols: 16,
		tiles: []tile{{6, tileWide6_256}, {5, tileWide5_256}, {4, tileWide4_256}, {3, tileWide3_256}, {2, tileWide2_256}, {1, tileWide1_256}},
		block: blocking{rows: 240, cols: 512, words: 128},
		vec:   vector256,
	},
	{
		name: "avx2 f32", level: isa.AVX2, cols: 16,
		tiles: []tile{{6, tileF32x6_256}, {5, tileF32x5_256}, {4, tileF32x4_256}, {3, tileF32x3_256}, {2, tileF32x2_256}, {1, tileF32x1_256}},
		block: blocking{rows: 240, cols: 512, words: 256},
		vec:   vector256,
	},
	portable,
	{
		name: "avx512 vnni", level: isa.AVX512BF16, kind: wordI8, flip: true, cols: 32,
		tiles: []tile{{12, tileI8x12_512}, {11, tileI8x11_512}, {10, tileI8x10_512}, {9, tileI8x9_512}, {8, tileI8x8_512}, {7, tileI8x7_512}, {6, tileI8x6_512}, {5, tileI8x5_512}, {4, tileI8x4_512}, {3, tileI8x3_512}, {2, tileI8x2_512}, {1, tileI8x1_512}},
		block: blocking{rows: 120, cols: 512, words: 1024},
		vec:   vector512,
	},
	{
		name: "avx2 int8", level: isa.AVX2, kind: wordI8, cols: 16,
		tiles: []tile{{4, tileI8x4_256}, {3, tileI8x3_256}, {2, tileI8x2_256}, {1, tileI8x1_256}},
		block: blocking{rows: 120, cols: 512, words: 256},
		vec:   vector256,
	},
	portableInt8,
}

//go:noescape
func panelBF16_amx(rows, kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)

//go:noescape
func panelI8_amx(rows, kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)

//go:noescape
func tileI8x12_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x11_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x10_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x9_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x8_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x7_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x6_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x5_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x4_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x3_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x2_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x1_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x4_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x3_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x2_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileI8x1_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x12_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x11_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x10_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x9_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x8_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x7_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x6_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x5_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x4_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x3_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x2_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x1_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x12_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x11_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x10_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x9_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x8_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x7_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x6_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x5_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x4_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x3_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x2_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileBF16x1_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide12_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide11_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide10_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide9_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide8_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide7_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide6_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide5_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide4_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide3_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide2_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide1_512(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x6_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x5_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x4_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x3_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x2_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x1_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide6_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide5_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide4_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide3_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide2_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileWide1_256(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)
