package gemm

import (
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu/amxtest"
)

func TestEmulatedAMX(t *testing.T) { amxtest.Run(t, "/^amx$", 10_000) }
