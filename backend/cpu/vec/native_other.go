//go:build !amd64 && !arm64

package vec

import "github.com/gesso-go/gesso/backend/cpu/isa"

func native(isa.Level) *Funcs { return nil }
