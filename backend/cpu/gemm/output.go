package gemm

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// Output stores C: its Emit adds a bias and converts to DType (F32, BF16 or F16; round to nearest even).
type Output struct {
	DType  tensor.DType
	Data   []byte
	Stride int       // elements from row to row
	Bias   []float32 // one for each column, or nil
}

// Emit returns the function to pass to Run. It panics on memory that is too small for the problem.
func (o Output) Emit(level isa.Level) Emit {
	size := o.DType.Size()
	return func(_, row, col int, acc []float32) {
		if o.Bias != nil {
			bias := o.Bias[col:][:len(acc)]
			for i := range acc {
				acc[i] += bias[i]
			}
		}
		dst := o.Data[(row*o.Stride+col)*size:][:len(acc)*size]
		if len(acc) == 0 {
			return
		}
		switch o.DType {
		case tensor.F32:
			copy(dst, tensor.Bytes(acc))
		case tensor.BF16:
			d := unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), len(acc))
			for i, x := range acc {
				d[i] = tensor.Float32ToBF16(x)
			}
		case tensor.F16:
			d := unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), len(acc))
			for i, x := range acc {
				d[i] = tensor.Float32ToF16(x)
			}
		}
	}
}
