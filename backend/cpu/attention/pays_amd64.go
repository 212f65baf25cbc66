package attention

import (
	"sync"
	"time"
	"unsafe"
)

// bf16Pays reports whether VDPBF16PS, on this processor, beats widening to float32. It does by a factor of two on some and
// loses on others (measured on Sapphire Rapids), which no feature bit tells; so it is measured, once, in some 100 µs.
var bf16Pays = sync.OnceValue(func() bool {
	const words = 64
	k := &bf16Kernels
	a, b, c := grow(nil, k.rows*2*words), grow(nil, 2*words*3*k.lanes), grow(nil, k.rows*3*k.lanes)
	const rowStride = 4 * 2 * words
	best := func(t tileFunc, steps int) time.Duration {
		least := time.Hour // of several tries: others only ever make one slower
		for range 10 {
			start := time.Now()
			for range 16 {
				t(steps, unsafe.Pointer(&a[0]), rowStride, 4, unsafe.Pointer(&b[0]), &c[0], nil)
			}
			least = min(least, time.Since(start))
		}
		return least
	}
	float := best(avx512Kernels.tile[2], 2*words) // the same number of elements
	return best(k.tile[2], words) < float
})
