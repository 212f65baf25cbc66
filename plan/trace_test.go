package plan

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/pipeline/flux"
	"github.com/gesso-go/gesso/tensor"
)

func fluxLoader(t *testing.T, dir string) Loader {
	t.Helper()
	f, err := pipeline.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return func(o pipeline.Options) (pipeline.Pipeline, error) { return flux.Load(f, o) }
}

func TestTraceSchnell(t *testing.T) {
	dir := shareddata.Dir(t, "data", "configs", "flux1-schnell")
	g, err := Trace(t.Context(), fluxLoader(t, dir), Request{Height: 1024, Width: 1024, Steps: 4, Mode: engine.Fused})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Programs {
		t.Logf("%-55s %-14s %v nodes %d weights %d MB in %d MB out %d MB", p.Name, p.Component, p.Runs, len(p.Graph.Nodes), p.Weights>>20, p.Inputs>>20, p.Outputs>>20)
	}
	for _, p := range g.Programs {
		if p.Name == "vae.decoder.up_blocks.0.upsamplers.0.conv" && Flops(p.Graph) != 2*512*512*9*256*256 {
			t.Errorf("%s: %g multiplications and additions", p.Name, Flops(p.Graph))
		}
	}
	for _, c := range g.Components {
		t.Logf("%s %d %d", c.Name, c.Weights, c.Params)
	}
}

// No program of a pipeline holds a number in f64: XLA would compute in it, and TPUs would do so slowly.
func TestNoF64(t *testing.T) {
	for _, name := range []string{"flux_schnell", "flux_dev"} {
		dir := filepath.Join("../testdata/golden/checkpoints", name)
		for _, mode := range []engine.Mode{engine.Fused, engine.Compiled} {
			for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
				g, err := Trace(t.Context(), fluxLoader(t, dir), Request{Height: 32, Width: 48, Steps: 2, Images: 2, MaxSequenceLength: 16, TrueCFGScale: 2, DType: d, Mode: mode})
				if err != nil || len(g.Programs) == 0 {
					t.Fatalf("%d programs, %v", len(g.Programs), err)
				}
				for _, p := range g.Programs {
					text, err := stablehlo.Text(p.Graph, stablehlo.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(text, "f64") || !strings.Contains(text, "f32") && !strings.Contains(text, d.String()) {
						t.Errorf("%s %v %v %s:\n%.2000s", name, mode, d, p.Name, text)
					}
				}
			}
		}
	}
}
