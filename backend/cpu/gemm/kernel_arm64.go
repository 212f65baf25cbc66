package gemm

import "github.com/gesso-go/gesso/backend/cpu/isa"

// kernels is the table of this architecture, in order of preference.
var kernels = []kernel{
	{
		name: "neon f32", level: isa.NEON, cols: 16,
		tiles: []tile{{4, tileF32x4_neon}, {3, tileF32x3_neon}, {2, tileF32x2_neon}, {1, tileF32x1_neon}},
		block: blocking{rows: 128, cols: 256, words: 256},
	},
	portable, portableInt8,
}

//go:noescape
func tileF32x4_neon(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x3_neon(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x2_neon(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)

//go:noescape
func tileF32x1_neon(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)
