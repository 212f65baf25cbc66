package step

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// The smallest run: no repeated block, one row of tokens. What it counts follows from the dimensions of FLUX.1.
func TestRunCounts(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Strict, engine.Compiled} {
		r, err := Run(context.Background(), Options{
			Arch: "flux1", Layers: "0,0", Height: 16, Width: 64, DType: tensor.BF16, Mode: mode, MinSteps: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens != 516 || r.Layers != "0,0" || r.Steps < 1 {
			t.Errorf("%s: %+v", mode, r)
		}
		const d = 3072
		macs := 4*64*d + 512*4096*d + // picture and text tokens in
			2*(256*d+d*d) + 768*d + d*d + // timestep, guidance, pooled text
			2*d*d + 4*64*d // norm and projection out
		if want := 2 * float64(macs) / 1e9; math.Abs(r.GFLOP-want) > 1e-6 {
			t.Errorf("%s: %g GFLOP a step, want %g", mode, r.GFLOP, want)
		}
		if r.Seconds <= 0 || r.PeakGFLOPS <= 0 || r.Best > r.Seconds {
			t.Errorf("%s: seconds %g, best %g, peak %g", mode, r.Seconds, r.Best, r.PeakGFLOPS)
		}
		if mode == engine.Compiled && r.Programs != 1 {
			t.Errorf("compiled: %d programs a step, want 1", r.Programs)
		}
	}
}

func TestRunErrors(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Arch: "vgg"}, `architecture "vgg" is unknown (known: flux1)`},
		{Options{Arch: "flux1", Layers: "2"}, "2 kinds of blocks"},
		{Options{Arch: "flux1", Layers: "2,x"}, "expected 2 numbers"},
		{Options{Arch: "flux1", Height: 8}, "height 8"},
		{Options{Arch: "flux1", DType: tensor.I32}, "dtype i32"},
		{Options{Arch: "flux1", ISA: "z80"}, "z80"},
	} {
		if _, err := Run(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.o, err, c.want)
		}
	}
}
