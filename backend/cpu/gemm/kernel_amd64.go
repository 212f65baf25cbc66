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
		tiles:  tilesBF16_512,
		pieces: tileBF16x12Pieces_512,
		block:  blocking{rows: 120, cols: 512, words: 1024},
		vec:    vector512, pays: BF16Pays,
	},
	{
		name: "avx512 bf16 widened", level: isa.AVX512, kind: wordBF16, wide: true, cols: 32,
		tiles: tilesWide_512,
		block: blocking{rows: 120, cols: 512, words: 512},
		vec:   vector512,
	},
	{
		name: "avx512 f32", level: isa.AVX512, cols: 32,
		tiles:  tilesF32_512,
		pieces: tileF32x12Pieces_512,
		block:  blocking{rows: 120, cols: 512, words: 1024},
		vec:    vector512,
	},
	{
		name: "avx2 bf16 widened", level: isa.AVX2, kind: wordBF16, wide: true, cols: 16,
		tiles: tilesWide_256,
		block: blocking{rows: 240, cols: 512, words: 128},
		vec:   vector256,
	},
	{
		name: "avx2 f32", level: isa.AVX2, cols: 16,
		tiles:  tilesF32_256,
		pieces: tileF32x6Pieces_256,
		block:  blocking{rows: 240, cols: 512, words: 256},
		vec:    vector256,
	},
	portable,
	{
		name: "avx512 vnni", level: isa.AVX512BF16, kind: wordI8, flip: true, cols: 32,
		tiles: tilesI8_512,
		block: blocking{rows: 120, cols: 512, words: 1024},
		vec:   vector512,
	},
	{
		name: "avx2 int8", level: isa.AVX2, kind: wordI8, cols: 16,
		tiles: tilesI8_256,
		block: blocking{rows: 120, cols: 512, words: 256},
		vec:   vector256,
	},
	portableInt8,
}

//go:noescape
func panelBF16_amx(rows, kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)

//go:noescape
func panelI8_amx(rows, kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)
