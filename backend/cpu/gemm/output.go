package gemm

import (
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
	vec := vectorsOf(level)
	return func(_, row, col int, acc []float32) {
		if o.Bias != nil {
			bias := o.Bias[col:][:len(acc)]
			for i := range acc {
				acc[i] += bias[i]
			}
		}
		vec.narrow(o.Data[(row*o.Stride+col)*size:][:len(acc)*size], o.DType, acc)
	}
}

// vectorsOf returns the vector routines of level, nil where there are none.
func vectorsOf(level isa.Level) *vectorOps {
	for i := range kernels {
		if kernels[i].level <= level {
			return kernels[i].vec
		}
	}
	return nil
}
