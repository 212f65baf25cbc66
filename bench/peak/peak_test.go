package peak

import (
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

func TestMeasureAtEveryLevel(t *testing.T) {
	for _, l := range isa.Available() {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.I8} {
			got := Measure(l, d, 0)
			t.Logf("%s %s: %.1f GFLOP/s", l, d, got/1e9)
			if got < 1e7 || got > 1e15 {
				t.Errorf("%s %s: %g operations a second cannot be", l, d, got)
			}
		}
	}
}
