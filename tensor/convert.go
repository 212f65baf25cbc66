package tensor

import (
	"runtime"
	"sync"
)

// convertHalf converts between f32 and the half types, which weights of a whole model go through, and reports whether
// it did. Large arrays are divided among the processors; elements are independent, so the result is not affected.
func convertHalf(out, a *Array) bool {
	switch {
	case a.DType == BF16 && out.DType == F32:
		each2(View[float32](out.Data), View[uint16](a.Data), BF16ToFloat32)
	case a.DType == F16 && out.DType == F32:
		each2(View[float32](out.Data), View[uint16](a.Data), F16ToFloat32)
	case a.DType == F32 && out.DType == BF16:
		each2(View[uint16](out.Data), View[float32](a.Data), Float32ToBF16)
	case a.DType == F32 && out.DType == F16:
		each2(View[uint16](out.Data), View[float32](a.Data), Float32ToF16)
	default:
		return false
	}
	return true
}

// piece is how many elements a goroutine takes at the least.
const piece = 1 << 18

// each2 sets dst[i] to f(src[i]).
func each2[D, S any](dst []D, src []S, f func(S) D) {
	run := func(dst []D, src []S) {
		src = src[:len(dst)]
		for i, v := range src {
			dst[i] = f(v)
		}
	}
	n := min(runtime.GOMAXPROCS(0), len(dst)/piece)
	if n < 2 {
		run(dst, src)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		lo, hi := len(dst)*i/n, len(dst)*(i+1)/n
		wg.Go(func() { run(dst[lo:hi], src[lo:hi]) })
	}
	wg.Wait()
}
