//go:build !amd64 && !arm64

package attention

import (
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

func levelKernels(isa.Level, tensor.DType) *kernels { return &portable }
