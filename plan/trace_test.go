package plan

import (
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/pipeline/flux"
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
