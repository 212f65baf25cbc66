package gesso_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/draw"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

const (
	schnell = "testdata/golden/checkpoints/flux_schnell"
	dev     = "testdata/golden/checkpoints/flux_dev"
)

func load(t *testing.T, dir string, o gesso.Options) *gesso.Pipeline {
	t.Helper()
	p, err := gesso.Load(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func request() gesso.Request {
	return gesso.Request{Prompts: []string{"a cat"}, Height: 32, Width: 48, Steps: 2, MaxSequenceLength: 16, Seeds: []uint64{3}}
}

func generate(t *testing.T, p *gesso.Pipeline, r gesso.Request) *gesso.Result {
	t.Helper()
	res, err := p.Generate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func pixels(m image.Image) string {
	n := image.NewNRGBA(m.Bounds())
	draw.Draw(n, n.Bounds(), m, m.Bounds().Min, draw.Src)
	return string(n.Pix)
}

// In compiled mode the transformer compiles once per shape and never for other numbers.
func TestCompiledOncePerShape(t *testing.T) {
	for _, dir := range []string{schnell, dev} {
		p := load(t, dir, gesso.Options{Mode: engine.Compiled})
		g := 1.0
		base := request()
		steps := func(change func(*gesso.Request)) gesso.Stats {
			before := p.Stats()
			r := base
			change(&r)
			generate(t, p, r)
			after := p.Stats()
			after.Snapshot = after.Sub(before.Snapshot)
			return after
		}
		if s := steps(func(*gesso.Request) {}); s.CompilesOf["transformer"] != 1 {
			t.Errorf("%s: the first run compiled %v", dir, s.CompilesOf)
		}
		other := steps(func(r *gesso.Request) {
			r.Steps, r.Seeds, r.Guidance, r.Prompts = 5, []uint64{99}, &g, []string{"something else entirely"}
		})
		if other.Compiles != 0 {
			t.Errorf("%s: other steps, seed, guidance and prompt compiled %v", dir, other.CompilesOf)
		}
		if s := steps(func(r *gesso.Request) { r.Height, r.Width = 48, 64 }); s.CompilesOf["transformer"] != 1 || s.CompilesOf["text_encoder"] != 0 {
			t.Errorf("%s: a new size compiled %v", dir, s.CompilesOf)
		}
		if s := steps(func(*gesso.Request) {}); s.Compiles != 0 {
			t.Errorf("%s: going back compiled %v", dir, s.CompilesOf)
		}
	}
}

// In fused mode a second picture compiles nothing; the steps of the first share their programs.
func TestFusedCompilesOnce(t *testing.T) {
	p := load(t, schnell, gesso.Options{Mode: engine.Fused})
	generate(t, p, request())
	first := p.Stats()
	generate(t, p, request())
	if d := p.Stats().Sub(first.Snapshot); d.Compiles != 0 || d.Runs == 0 {
		t.Errorf("the second picture compiled %v", d.CompilesOf)
	}
}

// All modes make the same picture, bit for bit.
func TestModesAgree(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		want := ""
		for _, m := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled, engine.Blocking} {
			r := request()
			r.Output = gesso.OutputArray
			got := string(generate(t, load(t, schnell, gesso.Options{Mode: m, DType: d}), r).Array.Data)
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: %s mode makes another picture", d, m)
			}
		}
	}
}

// Whatever kernels this machine can use, half precision makes the picture that f32 makes, within 2 % of it.
func TestHalfPrecisionAtEveryLevel(t *testing.T) {
	values := func(level isa.Level, d tensor.DType) []float32 {
		r := request()
		r.Height, r.Width, r.Output = 48, 80, gesso.OutputArray // 15 tokens: no multiple of a tile
		return generate(t, load(t, schnell, gesso.Options{CPUISA: level.String(), DType: d}), r).Array.Float32s()
	}
	for _, level := range isa.Available() {
		want := values(level, tensor.F32)
		for _, d := range []tensor.DType{tensor.BF16, tensor.F16} {
			var diff, norm float64
			for i, v := range values(level, d) {
				diff += float64(v-want[i]) * float64(v-want[i])
				norm += float64(want[i]) * float64(want[i])
			}
			if e := math.Sqrt(diff / norm); !(e > 0 && e <= 0.02) {
				t.Errorf("%s, %s: relative error %.4f", level, d, e)
			} else {
				t.Logf("%s, %s: relative error %.4f", level, d, e)
			}
		}
	}
}

// A batch is its pictures made alone, also where the scheduler draws noise in each step.
func TestBatchEqualsSingle(t *testing.T) {
	stochastic := t.TempDir()
	if err := os.CopyFS(stochastic, os.DirFS(dev)); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(stochastic, "scheduler", "scheduler_config.json")
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(b, []byte(`"stochastic_sampling": false`), []byte(`"stochastic_sampling": true`), 1)
	if err := os.WriteFile(config, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	drawn := map[string]string{} // the first picture
	for _, dir := range []string{dev, stochastic} {
		p := load(t, dir, gesso.Options{})
		r := request()
		r.Prompts, r.ImagesPerPrompt, r.Seeds = []string{"a cat", "a dog"}, 2, []uint64{1, 2, 3, 4}
		all := generate(t, p, r)
		if len(all.Images) != 4 || len(all.Seeds) != 4 {
			t.Fatalf("%d pictures, %d seeds", len(all.Images), len(all.Seeds))
		}
		for i, prompt := range []string{"a cat", "a cat", "a dog", "a dog"} {
			one := request()
			one.Prompts, one.Seeds = []string{prompt}, []uint64{all.Seeds[i]}
			if pixels(generate(t, p, one).Images[0]) != pixels(all.Images[i]) {
				t.Errorf("%s: picture %d is not the one made alone", dir, i)
			}
		}
		drawn[dir] = pixels(all.Images[0])
	}
	if drawn[dev] == drawn[stochastic] {
		t.Error("stochastic sampling has no effect")
	}
}

// One generator draws for the whole batch, as in Diffusers, and goes on where it was.
func TestOneGenerator(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	g := rng.New(5)
	r := request()
	r.Seeds, r.Generator = nil, g
	first := generate(t, p, r)
	second := generate(t, p, r)
	if first.Seeds != nil || pixels(first.Images[0]) == pixels(second.Images[0]) {
		t.Error("the generator did not go on, or seeds were reported for it")
	}
	r.Generator = rng.New(5)
	if pixels(generate(t, p, r).Images[0]) != pixels(first.Images[0]) {
		t.Error("the same generator makes another picture")
	}
}

// T5 checkpoints hold their embedding under one name, or the other, or both: the picture is the same.
func TestEmbeddingNames(t *testing.T) {
	const shared, encoder = "shared.weight", "encoder.embed_tokens.weight"
	want := pixels(generate(t, load(t, schnell, gesso.Options{}), request()).Images[0])
	for _, names := range [][]string{{shared}, {encoder}, {shared, encoder}, {}} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(schnell)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "text_encoder_2", "model.safetensors")
		f, err := weights.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		arrays := map[string]*tensor.Array{}
		for _, name := range f.Names() {
			x, err := f.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			arrays[name] = x.Array()
		}
		embedding := arrays[shared]
		delete(arrays, shared)
		delete(arrays, encoder)
		for _, name := range names {
			arrays[name] = embedding
		}
		if err := weights.Save(path, arrays, nil); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := gesso.Load(t.Context(), dir, gesso.Options{})
		if len(names) == 0 {
			if err == nil || !strings.Contains(err.Error(), shared) {
				t.Errorf("no embedding: %v", err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", names, err)
			continue
		}
		if pixels(generate(t, p, request()).Images[0]) != want {
			t.Errorf("%v: another picture", names)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Embeddings and latents that the caller brings give the picture of the prompt and seed they come from.
func TestGivenEmbedsAndLatents(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	stages := map[string]*tensor.Array{}
	r := request()
	r.Dump = func(name string, a *tensor.Array) { stages[name] = a }
	want := generate(t, p, r)
	r = request()
	r.Prompts = nil
	r.PromptEmbeds, r.PooledPromptEmbeds, r.Latents = stages["prompt_embeds"], stages["pooled_prompt_embeds"], stages["latents.initial"]
	got := generate(t, p, r)
	if pixels(got.Images[0]) != pixels(want.Images[0]) || got.Seeds != nil {
		t.Error("another picture, or a seed for latents that were given")
	}
	r = request()
	r.Output = gesso.OutputLatent
	if lat := generate(t, p, r); string(lat.Array.Data) != string(stages["latents.final"].Data) || lat.Images != nil {
		t.Error("latent output is not the final latents")
	}
	r = request()
	r.ImagesPerPrompt, r.Seeds = 2, []uint64{5, 6}
	want = generate(t, p, r)
	r.Prompts, r.PromptEmbeds, r.PooledPromptEmbeds = nil, stages["prompt_embeds"], stages["pooled_prompt_embeds"]
	got = generate(t, p, r)
	for i := range want.Images {
		if len(got.Images) != 2 || pixels(got.Images[i]) != pixels(want.Images[i]) {
			t.Errorf("picture %d of given embeddings is another one", i)
		}
	}
}

// The callback may replace latents, and stop the loop.
func TestOnStep(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	r := request()
	r.Steps = 4
	calls := 0
	r.OnStep = func(s *gesso.Step) error {
		calls++
		s.Stop = s.Index == 1
		return nil
	}
	if res := generate(t, p, r); calls != 2 || res.Steps != 2 || res.Asked != 4 || len(res.Timing.Steps) != 2 {
		t.Errorf("%d calls, %d steps", calls, len(res.Timing.Steps))
	}
	r.Output = gesso.OutputLatent
	r.OnStep = func(s *gesso.Step) error {
		s.Latents = tensor.New(s.Latents.DType, s.Latents.Shape...)
		s.Stop = true
		return nil
	}
	for _, v := range generate(t, p, r).Array.Float32s() {
		if v != 0 {
			t.Fatal("the latents were not replaced")
		}
	}
	r.OnStep = nil
	r.Steps = 2
	same := generate(t, p, r).Array
	r.OnStep = func(s *gesso.Step) error {
		s.PromptEmbeds = tensor.New(s.PromptEmbeds.DType, s.PromptEmbeds.Shape...)
		return nil
	}
	if bytes.Equal(generate(t, p, r).Array.Data, same.Data) {
		t.Error("the embeddings were not replaced")
	}
	r.OnStep = func(s *gesso.Step) error { s.Latents = tensor.New(tensor.F32, 1); return nil }
	if _, err := p.Generate(t.Context(), r); err == nil || !strings.Contains(err.Error(), "latents") {
		t.Errorf("latents of another shape: %v", err)
	}
	mine := errors.New("mine")
	r.OnStep = func(*gesso.Step) error { return mine }
	if _, err := p.Generate(t.Context(), r); !errors.Is(err, mine) {
		t.Errorf("an error of the callback became %v", err)
	}
}

func TestCancel(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	r := request()
	r.Steps = 1000
	r.OnStep = func(s *gesso.Step) error {
		if s.Index == 1 {
			cancel()
		}
		return nil
	}
	steps := 0
	r.Progress = func(s gesso.Progress) { steps = max(steps, s.Step) }
	if _, err := p.Generate(ctx, r); !errors.Is(err, context.Canceled) || steps > 2 {
		t.Errorf("%v after %d steps", err, steps)
	}
	ctx, cancel = context.WithCancel(t.Context())
	r.OnStep = nil
	r.Progress = func(s gesso.Progress) {
		if s.Step == 3 { // the transformer is about to run
			cancel()
		}
	}
	if _, err := p.Generate(ctx, r); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "after 3 of 1000 steps") {
		t.Errorf("in a step: %v", err)
	}
	generate(t, p, request()) // the pipeline goes on
}

// Wrong requests are refused with a message that names the argument. The messages correspond to Diffusers' errors.
func TestRefusedRequests(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	embeds, pooled := tensor.New(tensor.F32, 1, 16, 32), tensor.New(tensor.F32, 1, 24)
	for _, c := range []struct {
		name   string
		change func(*gesso.Request)
		want   string
	}{
		{"nothing", func(r *gesso.Request) { r.Prompts = nil }, "give a prompt"},
		{"both", func(r *gesso.Request) { r.PromptEmbeds, r.PooledPromptEmbeds = embeds, pooled }, "not both"},
		{"no pooled", func(r *gesso.Request) { r.Prompts, r.PromptEmbeds = nil, embeds }, "pooled"},
		{"embeds shape", func(r *gesso.Request) { r.Prompts, r.PromptEmbeds, r.PooledPromptEmbeds = nil, pooled, pooled }, "shape"},
		{"too long", func(r *gesso.Request) { r.MaxSequenceLength = 513 }, "512"},
		{"negative steps", func(r *gesso.Request) { r.Steps = -1 }, "steps"},
		{"negative size", func(r *gesso.Request) { r.Height = -8 }, "height"},
		{"huge size", func(r *gesso.Request) { r.Width = 100000 }, "width"},
		{"seeds for another batch", func(r *gesso.Request) { r.Seeds = []uint64{1, 2} }, "2 seeds for 1"},
		{"seeds and generator", func(r *gesso.Request) { r.Generator = rng.New(1) }, "not both"},
		{"sigmas and timesteps", func(r *gesso.Request) { r.Sigmas, r.Timesteps = []float64{1}, []float64{1000} }, "not both"},
		{"guidance", func(r *gesso.Request) { g := math.NaN(); r.Guidance = &g }, "guidance must be finite"},
		{"large guidance", func(r *gesso.Request) { g := 1e300; r.Guidance = &g }, "guidance must be finite"},
		{"true cfg", func(r *gesso.Request) { r.TrueCFGScale = math.Inf(1) }, "true_cfg_scale must be finite"},
		{"latents", func(r *gesso.Request) { r.Latents = tensor.New(tensor.F32, 1, 3, 4) }, "packed"},
		{"negative prompts", func(r *gesso.Request) { r.NegativePrompts = []string{"a", "b"}; r.TrueCFGScale = 2 }, "2 negative prompts"},
		{"second prompts", func(r *gesso.Request) { r.Prompts2 = []string{"a", "b"} }, "2 second prompts"},
		{"negative embeds shape", func(r *gesso.Request) {
			r.Prompts, r.PromptEmbeds, r.PooledPromptEmbeds, r.TrueCFGScale = nil, embeds, pooled, 2
			r.NegativePromptEmbeds, r.NegativePooledPromptEmbeds = tensor.New(tensor.F32, 1, 8, 32), pooled
		}, "one shape"},
	} {
		r := request()
		c.change(&r)
		_, err := p.Generate(t.Context(), r)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Guidance 0 is embedded by dev, unlike no guidance; schnell takes none.
func TestGuidance(t *testing.T) {
	zero, other := 0.0, 3.5
	for dir, differs := range map[string]bool{schnell: false, dev: true} {
		p := load(t, dir, gesso.Options{})
		a, b := request(), request()
		a.Guidance, b.Guidance = &zero, &other
		if got := pixels(generate(t, p, a).Images[0]) != pixels(generate(t, p, b).Images[0]); got != differs {
			t.Errorf("%s: guidance changes the picture: %v", dir, got)
		}
	}
}

// More padding is another picture: the transformer attends to padding, as Diffusers' does.
func TestPaddingIsAttended(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	a, b := request(), request()
	b.MaxSequenceLength = 32
	if pixels(generate(t, p, a).Images[0]) == pixels(generate(t, p, b).Images[0]) {
		t.Error("the length of the padded prompt makes no difference")
	}
}

// A size that is no multiple of 16 is floored with a warning.
func TestSizeIsFloored(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	r := request()
	r.Height, r.Width = 47, 63
	warned := ""
	r.Warn = func(s string) { warned = s }
	res := generate(t, p, r)
	if b := res.Images[0].Bounds(); b.Dx() != 48 || b.Dy() != 32 || res.Width != 48 || res.Height != 32 {
		t.Errorf("made %v, told %d×%d", b, res.Width, res.Height)
	}
	if !strings.Contains(warned, "48×32") || len(res.Warnings) != 1 {
		t.Errorf("warned %q, %v", warned, res.Warnings)
	}
}

// A run after another leaves no memory behind: what a pipeline holds does not grow.
func TestRunsDoNotLeak(t *testing.T) {
	p := load(t, schnell, gesso.Options{})
	generate(t, p, request())
	before := p.Stats().WeightBytes
	for range 5 {
		generate(t, p, request())
	}
	if after := p.Stats().WeightBytes; after != before {
		t.Errorf("weights were read again: %d, then %d bytes", before, after)
	}
}

// A model's own settings are the defaults of a request.
func TestModelSettings(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(schnell)); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(dir, "gesso.json")
	if err := os.WriteFile(settings, []byte(`{"steps": 3, "height": 48, "width": 32, "max_sequence_length": 16}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p := load(t, dir, gesso.Options{})
	res := generate(t, p, gesso.Request{Prompts: []string{"x"}})
	if res.Steps != 3 || res.Height != 48 || res.Width != 32 {
		t.Errorf("%d steps, %d×%d", res.Steps, res.Width, res.Height)
	}
	if res := generate(t, p, gesso.Request{Prompts: []string{"x"}, Steps: 1, Width: 48}); res.Steps != 1 || res.Height != 48 || res.Width != 48 {
		t.Errorf("the request's own values do not win: %d steps, %d×%d", res.Steps, res.Width, res.Height)
	}
	if err := os.WriteFile(settings, []byte(`{"steps": "many"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := gesso.Load(t.Context(), dir, gesso.Options{}); err == nil || !strings.Contains(err.Error(), "gesso.json") || !strings.Contains(err.Error(), "steps") {
		t.Errorf("wrong settings: %v", err)
	}
}

// CLIP reads as many tokens as its tokenizer was saved with; more than the model has positions for are refused.
func TestCLIPLength(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(schnell)); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "tokenizer", "tokenizer_config.json")
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	set := func(n string) {
		t.Helper()
		changed := strings.Replace(string(b), `"model_max_length": 77`, `"model_max_length": `+n, 1)
		if err := os.WriteFile(config, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set("33")
	p := load(t, dir, gesso.Options{})
	r := request()
	var ids *tensor.Array
	r.Dump = func(name string, a *tensor.Array) {
		if name == "text_encoder.call0.input_ids" {
			ids = a
		}
	}
	generate(t, p, r)
	if ids.Shape[1] != 33 {
		t.Errorf("%d tokens, want 33", ids.Shape[1])
	}
	set("78")
	if _, err := gesso.Load(t.Context(), dir, gesso.Options{}); err == nil || !strings.Contains(err.Error(), "model_max_length is 78") {
		t.Errorf("more tokens than positions: %v", err)
	}
}
