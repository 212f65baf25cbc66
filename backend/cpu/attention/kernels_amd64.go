package attention

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

type tileFunc = func(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

var (
	avx2Kernels = kernels{lanes: 8, vectors: 3, rows: 4,
		tile: [3]tileFunc{tileF32x1AVX2, tileF32x2AVX2, tileF32x3AVX2}, softmax: softmaxF32AVX2}
	avx512Kernels = kernels{lanes: 16, vectors: 3, rows: 8,
		tile: [3]tileFunc{tileF32x1AVX512, tileF32x2AVX512, tileF32x3AVX512}, softmax: softmaxF32AVX512}
	bf16Kernels = kernels{lanes: 16, vectors: 3, rows: 8, bf16: true,
		tile: [3]tileFunc{tileBF16x1AVX512, tileBF16x2AVX512, tileBF16x3AVX512}, softmaxBF16: softmaxBF16AVX512}
)

// levelKernels chooses the kernels for operands of type d. Where there is AMX, VDPBF16PS is slower than f32 multiply-adds
// (measured on Sapphire Rapids), so bf16 is widened there.
func levelKernels(l isa.Level, d tensor.DType) *kernels {
	switch {
	case l == isa.AVX512BF16 && d == tensor.BF16:
		return &bf16Kernels
	case l >= isa.AVX512:
		return &avx512Kernels
	case l == isa.AVX2:
		return &avx2Kernels
	}
	return &portable
}

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
func softmaxF32AVX2(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxF32AVX512(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxBF16AVX512(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32, p *uint32)
