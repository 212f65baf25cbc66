package attention

import (
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu/amxtest"
)

func TestEmulatedAMX(t *testing.T) {
	amxtest.Run(t, "^Test(Lengths|HeadSizes|BiasAndMasks|FullyMasked.*|LargeLogits|NotFinite|SameForAny.*|ManyHeads|ManyKeys|Strides|HalfBias|Goldens|NothingIsLeft.*|Probabilities.*)$", 10_000)
}
