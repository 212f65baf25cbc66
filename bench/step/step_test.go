package step

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// The smallest run: no repeated block, one row of tokens. What it counts follows from the dimensions of FLUX.1.
func TestRunCounts(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Strict, engine.Compiled} {
		r, err := Run(context.Background(), Options{
			Arch: "flux1", Layers: "0+0", Height: 16, Width: 64, DType: tensor.BF16, Mode: mode, MinSteps: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens != 516 || r.Layers != "0+0" || r.Steps < 1 {
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
		{Options{Arch: "vgg"}, `architecture "vgg" is unknown (known: clip-l, flux1, flux2, klein-4b, klein-9b, sd3.5-large, sd3.5-medium, t5-xxl, vae)`},
		{Options{Arch: "flux1", Layers: "2"}, "2 kinds of blocks"},
		{Options{Arch: "flux1", Layers: "2,x"}, "expected 2 numbers"},
		{Options{Arch: "sd3.5-medium", Layers: "2,2"}, `expected "24"`},
		{Options{Arch: "sd3.5-large", Height: 4096}, "pos_embed_max_size"},
		{Options{Arch: "flux1", Height: 8}, "height 8"},
		{Options{Arch: "flux1", DType: tensor.I32}, "dtype i32"},
		{Options{Arch: "flux1", ISA: "z80"}, "z80"},
	} {
		if _, err := Run(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.o, err, c.want)
		}
	}
}

// The networks have the sizes that are published: parameters in units of 1e9.
func TestParameterCounts(t *testing.T) {
	for name, want := range map[string]float64{
		"flux1": 11.90, "flux2": 32.22, "klein-4b": 3.88, "klein-9b": 9.08, "sd3.5-medium": 2.47, "sd3.5-large": 8.15, "t5-xxl": 4.76,
		"clip-l": 0.123, "vae": 0.0495,
	} {
		o := Options{Arch: name, Height: 512, Width: 512}.withDefaults()
		n, err := o.network()
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, s := range nn.Shapes(n.model) {
			count += s.Size()
		}
		if got := float64(count) / 1e9; math.Abs(got-want) > 0.005*want {
			t.Errorf("%s has %.4f G parameters, want %.4f", name, got, want)
		}
	}
}

// Every network runs with as few blocks as it can have.
func TestRunEveryNetwork(t *testing.T) {
	for arch, layers := range map[string]string{"sd3.5-medium": "1", "klein-4b": "0+0", "clip-l": "1", "vae": "all"} {
		r, err := Run(context.Background(), Options{Arch: arch, Layers: layers, Height: 16, Width: 32, DType: tensor.BF16, Mode: engine.Compiled, MinSteps: 1})
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		if r.GFLOP <= 0 || r.Seconds <= 0 {
			t.Errorf("%s: %+v", arch, r)
		}
	}
}
