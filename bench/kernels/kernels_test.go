package kernels

import (
	"context"
	"regexp"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// Each kind of operation gives a row with what was asked for.
func TestRun(t *testing.T) {
	seen := map[string]Row{}
	err := Run(context.Background(), Options{
		Seconds: 1e-9, Match: regexp.MustCompile(`^(attention 12×77×64|conv 3×3 64² |silu|linear 333×)`), DTypes: []tensor.DType{tensor.BF16},
	}, func(r Row) error {
		seen[r.Op] = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"attention", "convolution", "silu", "linear"} {
		r, ok := seen[op]
		if !ok || r.MS <= 0 || r.Best > r.MS || r.DType != "bf16" || (r.Percent > 0) != (op != "silu") {
			t.Errorf("%s: %+v", op, r)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d kinds of rows, want 4: %v", len(seen), seen)
	}
}
