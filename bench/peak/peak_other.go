//go:build !amd64

package peak

import (
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

func choose(isa.Level, tensor.DType) loop { return loop{portableFlops, portable} }
