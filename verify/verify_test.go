package verify

import (
	"testing"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine"
)

// Every reference case agrees with Diffusers, stage by stage, in every mode.
func TestReferenceCases(t *testing.T) {
	cases, err := Open("../testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
		for _, c := range cases {
			t.Run(mode.String()+"/"+c.Name, func(t *testing.T) {
				out := c.Run(t.Context(), Options{Load: gesso.Options{Mode: mode}})
				if out.Status != Passed || len(out.Missing) > 0 {
					t.Error(out)
				}
				if out.Compared < 5 {
					t.Errorf("only %d comparisons", out.Compared)
				}
			})
		}
	}
}
