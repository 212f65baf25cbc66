package gemm

import (
	"sync"
	"time"
)

// BF16Pays reports whether VDPBF16PS, on this processor, beats widening to float32. It does by a factor of two on some and
// loses by a factor of two on others, which no feature bit tells; so it is measured, once, in some 200 µs.
var BF16Pays = sync.OnceValue(func() bool {
	const words, cols = 64, 32
	a, b, c := aligned(12*2*words), aligned(2*words*cols), make([]float32, 12*cols)
	best := func(t func(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32), words int) time.Duration {
		least := time.Hour // of several tries: others only ever make one slower
		for range 10 {
			start := time.Now()
			for range 16 {
				t(words, &a[0], uintptr(4*words), &b[0], &c[0], 4*cols, 0, nil)
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	float := best(tileF32x12_512, 2*words) // the same number of elements
	return best(tileBF16x12_512, words) < float
})
