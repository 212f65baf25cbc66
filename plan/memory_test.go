package plan

import (
	"math"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/shareddata"
)

// What the trace counts of FLUX.1-schnell is what its architecture says.
func TestWeights(t *testing.T) {
	dir := shareddata.Dir(t, "data", "configs", "flux1-schnell")
	g, err := Trace(t.Context(), fluxLoader(t, dir), Request{Height: 1024, Width: 1024, Steps: 20, Mode: engine.Fused})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"transformer": 11891178560, "text_encoder": 123060480, "text_encoder_2": 4762310656}
	for _, c := range g.Components {
		if n, ok := want[c.Name]; ok && (c.Params != n || c.Weights != 2*n) {
			t.Errorf("%s: %d parameters in %d bytes, expected %d in bf16", c.Name, c.Params, c.Weights, n)
		}
	}
	runs := map[string]int{}
	for _, p := range g.Programs {
		runs[p.Name] = p.Times()
	}
	for name, n := range map[string]int{
		"transformer.transformer_blocks.0": 20 * 19, "transformer.single_transformer_blocks.0": 20 * 38,
		// Norms are modulated for 16 steps at once.
		"transformer.transformer_blocks.0.norm1.linear": 2 * 2 * 19, "transformer.single_transformer_blocks.0.norm.linear": 2 * 38,
	} {
		if runs[name] != n {
			t.Errorf("%s: %d runs, expected %d", name, runs[name], n)
		}
	}
}

// The compiler's arguments of a program agree with weights and values counted by hand.
func TestMemory(t *testing.T) {
	plugin := plugintest.TPU(t)
	if testing.Short() {
		t.Skip("compiles for seconds")
	}
	dir := shareddata.Dir(t, "data", "configs", "flux1-schnell")
	g, err := Trace(t.Context(), fluxLoader(t, dir), Request{Height: 1024, Width: 1024, Mode: engine.Fused})
	if err != nil {
		t.Fatal(err)
	}
	target, err := Open(t.Context(), "v6e:1x1", Options{Plugin: plugin, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	kept := *g
	kept.Programs = nil
	for _, p := range g.Programs {
		if p.Name == "transformer" || p.Name == "vae.decoder.conv_in" { // the embedders; a convolution
			kept.Programs = append(kept.Programs, p)
		}
	}
	all, err := target.Compile(t.Context(), &kept, Options{})
	if err != nil || len(all) != 2 || all[0].Err != nil || all[1].Err != nil {
		t.Fatalf("%v, %+v", err, all)
	}
	// Weights of two embedders; latents, prompt embeddings; hidden states of both.
	const d = 3072
	weights := 2 * (64*d + d + 4096*d + d)
	args := weights + 2*(4096*64+512*4096)
	outs := 2 * (4096*d + 512*d)
	if got := float64(all[0].Arguments); math.Abs(got/float64(args)-1) > 0.1 {
		t.Errorf("arguments: %.0f bytes by the compiler, %d by count", got, args)
	}
	if got := float64(all[0].Peak); math.Abs(got/float64(args+outs)-1) > 0.1 {
		t.Errorf("peak: %.0f bytes by the compiler, arguments and results are %d", got, args+outs)
	}
	// Latents of 128² by 16, f32 or bf16 as they come in; a 3×3 convolution to 512 channels.
	in, out := all[1].Inputs, int64(2*128*128*512)
	if got := float64(all[1].Peak); math.Abs(got/float64(in+2*(16*512*9+512)+out)-1) > 0.1 {
		t.Errorf("convolution: %.0f bytes by the compiler, %d in and %d out", got, in, out)
	}
}

// A plugin that can't be loaded is an error of the child process, not of this one.
func TestRefusal(t *testing.T) {
	c := aot.New(aot.Options{Plugin: "/does/not/exist.so", Topology: "v6e:1x1"})
	defer c.Close()
	if _, err := c.Info(t.Context()); err == nil {
		t.Error("a plugin that isn't there was loaded")
	}
}
