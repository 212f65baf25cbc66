package cpu_test

import (
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu/amxtest"
)

func TestEmulatedAMX(t *testing.T) { amxtest.Run(t, "^TestBackend$/^amx$", 1000) }
