package attention

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

var (
	avx2Kernels = kernels{lanes: 8, vectors: 3, rows: 4,
		tile: [3]tileFunc{tileF32x1AVX2, tileF32x2AVX2, tileF32x3AVX2}, softmax: softmaxF32AVX2, softmaxRound: softmaxRoundAVX2,
		transpose: transposeTail, bias: biasTail, fetch: fetchAMD64, fetchToWrite: fetchToWriteAMD64}
	avx512Kernels = kernels{lanes: 16, vectors: 3, rows: 8,
		tile: [3]tileFunc{tileF32x1AVX512, tileF32x2AVX512, tileF32x3AVX512}, softmax: softmaxF32AVX512, softmaxRound: softmaxRoundAVX512,
		transpose: transposeTail, bias: biasTail, fetch: fetchAMD64, fetchToWrite: fetchToWriteAMD64}
	bf16Kernels = kernels{lanes: 16, vectors: 3, rows: 8, bf16: true,
		tile: [3]tileFunc{tileBF16x1AVX512, tileBF16x2AVX512, tileBF16x3AVX512}, softmaxBF16: softmaxBF16AVX512, pairs: pairsAVX512,
		transpose: transposeTail, bias: biasTail, fetch: fetchAMD64, fetchToWrite: fetchToWriteAMD64}
	amxKernels = kernels{lanes: 16, vectors: 2, bf16: true, panel: gemm.MultiplyTiles, softmaxBF16: softmaxBF16AVX512, pairs: pairsAVX512,
		transpose: transposeTail, bias: biasTail, fetch: fetchAMD64, fetchToWrite: fetchToWriteAMD64}
)

// levelKernels chooses the kernels for operands of type d.
func levelKernels(l isa.Level, d tensor.DType) *kernels {
	switch {
	case l >= isa.AMX && d == tensor.BF16:
		return &amxKernels
	case l >= isa.AVX512BF16 && d == tensor.BF16 && gemm.BF16Pays():
		return &bf16Kernels
	case l >= isa.AVX512:
		return &avx512Kernels
	case l == isa.AVX2:
		return &avx2Kernels
	}
	return &portable
}

// transposeTail leaves the columns after the last eight to the portable twin.
func transposeTail(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int) {
	m := n &^ 7
	transposeAVX2(dst, dstStride, src, srcStride, m)
	if m < n {
		transposeGo(offset(dst, uintptr(m)*dstStride), dstStride, offset(src, 4*uintptr(m)), srcStride, n-m)
	}
}

func biasTail(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int, scale float32) {
	m := n &^ 7
	biasAVX2(dst, dstStride, src, srcStride, m, scale)
	if m < n {
		biasGo(offset(dst, uintptr(m)*dstStride), dstStride, offset(src, 4*uintptr(m)), srcStride, n-m, scale)
	}
}

func offset(p *float32, bytes uintptr) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}

//go:noescape
func fetchAMD64(p unsafe.Pointer, stride uintptr, rows, bytes int)

//go:noescape
func fetchToWriteAMD64(p unsafe.Pointer, stride uintptr, rows, bytes int)

//go:noescape
func transposeAVX2(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int)

//go:noescape
func biasAVX2(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int, scale float32)

//go:noescape
func tileF32x1AVX2(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileF32x2AVX2(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileF32x3AVX2(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileF32x1AVX512(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileF32x2AVX512(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileF32x3AVX512(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileBF16x1AVX512(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileBF16x2AVX512(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func tileBF16x3AVX512(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func softmaxRoundAVX2(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxF32AVX2(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxRoundAVX512(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxF32AVX512(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxBF16AVX512(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32, p *uint32)

//go:noescape
func pairsAVX512(dst *uint32, even, odd *uint16, n int)
