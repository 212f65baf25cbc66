package gemm

import "github.com/gesso-go/gesso/backend/cpu/isa"

// kernels is the table of this architecture, in order of preference.
var kernels = []kernel{
	{
		name: "neon f32", level: isa.NEON, cols: 16,
		tiles: tilesF32_neon,
		block: blocking{rows: 128, cols: 256, words: 256},
	},
	portable, portableInt8,
}
