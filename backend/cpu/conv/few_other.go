//go:build !amd64

package conv

import "github.com/gesso-go/gesso/backend/cpu/isa"

// fewKernels lists the kernels of a level: none here.
func fewKernels(isa.Level) []*few { return nil }
