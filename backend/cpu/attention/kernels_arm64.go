package attention

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

var neonKernels = kernels{lanes: 16, vectors: 1, rows: 4, tile: [3]tileFunc{tileNEON},
	softmax: softmaxF32NEON, softmaxRound: softmaxRoundNEON, transpose: transposeGo, bias: biasGo}

// levelKernels chooses the kernels for operands of type d.
func levelKernels(l isa.Level, _ tensor.DType) *kernels {
	if l == isa.NEON {
		return &neonKernels
	}
	return &portable
}

//go:noescape
func tileNEON(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

//go:noescape
func softmaxF32NEON(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)

//go:noescape
func softmaxRoundNEON(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)
