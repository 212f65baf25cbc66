package conv

import (
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu/amxtest"
)

func TestEmulatedAMX(t *testing.T) {
	amxtest.Run(t, "^TestRun(AgreesWithDefinition|Upsampled)$/^amx$/^bf16·bf16$", 10_000)
}
