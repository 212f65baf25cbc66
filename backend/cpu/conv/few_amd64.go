package conv

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

type fewFunc = func(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

var (
	fewF32AVX2    = &few{tensor.F32, 8, 2, false, [FewOutputs]fewFunc{few1F32AVX2, few2F32AVX2, few3F32AVX2, few4F32AVX2}}
	fewF32AVX512  = &few{tensor.F32, 16, 6, true, [FewOutputs]fewFunc{few1F32AVX512, few2F32AVX512, few3F32AVX512, few4F32AVX512}}
	fewBF16AVX512 = &few{tensor.BF16, 32, 6, true, [FewOutputs]fewFunc{few1BF16AVX512, few2BF16AVX512, few3BF16AVX512, few4BF16AVX512}}
)

// fewKernels lists the kernels of a level.
func fewKernels(level isa.Level) []*few {
	switch {
	case level >= isa.AVX512BF16:
		return []*few{fewF32AVX512, fewBF16AVX512}
	case level == isa.AVX512:
		return []*few{fewF32AVX512}
	case level == isa.AVX2:
		return []*few{fewF32AVX2}
	}
	return nil
}

//go:noescape
func few1F32AVX2(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few2F32AVX2(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few3F32AVX2(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few4F32AVX2(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few1F32AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few2F32AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few3F32AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few4F32AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few1BF16AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few2BF16AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few3BF16AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)

//go:noescape
func few4BF16AVX512(rows, vectors int, mask uint64, x unsafe.Pointer, step, line uintptr, w unsafe.Pointer, out *float32)
