package verify

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/imageio"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// Options say how cases are run.
type Options struct {
	Load    gesso.Options // DType and Variant come from the case
	DumpDir string        // if set, what was computed goes to DumpDir/NAME.safetensors
}

// Status is the outcome of a case.
type Status int

// The outcomes.
const (
	Passed Status = iota
	Failed
	Unsupported
)

// String returns "pass", "FAIL" or "not supported".
func (s Status) String() string { return [...]string{"pass", "FAIL", "not supported"}[s] }

// Outcome is the result of one case.
type Outcome struct {
	Name     string
	Status   Status
	Compared int      // stored tensors and pictures that were compared
	Missing  []string // stored, but not computed
	Worst    string   // the tensor that is nearest to or furthest past its tolerance
	Diff     float64  // of Worst
	Tol      float64  // of Worst
	Err      error    // why the case could not be run, or is not supported
}

// String is the case's line.
func (o *Outcome) String() string {
	switch {
	case o.Status == Unsupported:
		return fmt.Sprintf("%-13s %s: %v", o.Status, o.Name, o.Err)
	case o.Err != nil:
		return fmt.Sprintf("%-13s %s: %v", o.Status, o.Name, o.Err)
	}
	s := fmt.Sprintf("%-13s %s: %d compared, worst %s off by %.3g (tolerance %.3g)", o.Status, o.Name, o.Compared, o.Worst, o.Diff, o.Tol)
	if len(o.Missing) > 0 {
		s += fmt.Sprintf("; not computed: %s", strings.Join(o.Missing[:min(3, len(o.Missing))], ", "))
		if n := len(o.Missing) - 3; n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
	}
	return s
}

// Run runs the case and compares every stored tensor and picture.
func (c *Case) Run(ctx context.Context, o Options) *Outcome {
	out := &Outcome{Name: c.Name, Worst: "nothing"}
	if c.why != "" {
		out.Status, out.Err = Unsupported, errors.New(c.why)
		return out
	}
	if err := c.run(ctx, o, out); err != nil {
		out.Status, out.Err = Failed, err
	}
	return out
}

func (c *Case) run(ctx context.Context, o Options, out *Outcome) error {
	d, err := c.dtype()
	if err != nil {
		return err
	}
	load := o.Load
	load.DType, load.Variant = d, c.Variant
	if c.LoRA != "" {
		load.LoRAs = []gesso.LoRA{{Path: c.input(c.LoRA), Weight: c.call.Attention.Scale}}
	}
	pipe, err := gesso.Load(ctx, filepath.Join(c.top, "checkpoints", c.Checkpoint), load)
	if err != nil {
		return err
	}
	defer pipe.Close()
	if c.ExpectError != "" {
		req, err := c.request()
		if err != nil {
			return err
		}
		if _, err := pipe.Generate(ctx, req); err == nil {
			return fmt.Errorf("expected an error (%s)", c.ExpectError)
		}
		return nil
	}
	ref, err := weights.OpenFile(filepath.Join(c.dir, "tensors.safetensors"))
	if err != nil {
		return err
	}
	defer ref.Close()

	got := map[string]*tensor.Array{}
	dump := func(name string, a *tensor.Array) { got[name] = a }
	var tapErr error
	if c.Trace {
		pipe.SetTap(func(name string, v engine.Value) {
			name = "trace." + name
			if _, again := got[name]; again { // the first call is stored
				return
			}
			a, err := v.Read()
			if tapErr = errors.Join(tapErr, err); err == nil {
				got[name] = a
			}
		})
	}
	req, err := c.request()
	if err != nil {
		return err
	}
	req.Dump = dump
	res, err := pipe.Generate(ctx, req)
	if err != nil {
		return err
	}
	if d.IsHalf() {
		// A rounding that falls the other way early on moves everything after it: each stage starts from stored inputs.
		for name := range got {
			if fromStored(strings.TrimPrefix(name, "trace.")) {
				delete(got, name)
			}
		}
		if res, err = c.runFromStored(ctx, pipe, ref, dump); err != nil {
			return err
		}
	}
	if tapErr != nil {
		return tapErr
	}
	c.rename(got, res.Steps)
	if o.DumpDir != "" {
		if err := weights.Save(filepath.Join(o.DumpDir, c.Name+".safetensors"), got, nil); err != nil {
			return err
		}
	}
	if err := c.compare(ref, got, d, out); err != nil {
		return err
	}
	return c.compareImages(res, d, out)
}

// rename adds what the reference calls otherwise than we do.
func (c *Case) rename(got map[string]*tensor.Array, steps int) {
	k := &c.call
	if k.Mask != nil { // stored as the last step returned it, before the mask was applied
		got["latents.final"] = got[fmt.Sprintf("latents.after_step_%d", steps-1)]
	}
	if k.Image == nil {
		return
	}
	for i := 1; i < k.Image.times; i++ { // encoded once for each picture of a list
		for _, what := range []string{"in", "mean", "logvar"} {
			got[fmt.Sprintf("vae.encode%d.%s", i, what)] = got["vae.encode0."+what]
		}
	}
}

// input returns the path of one of the files that cases share.
func (c *Case) input(name string) string { return filepath.Join(c.top, "inputs", name) }

// request turns the case's call into ours.
func (c *Case) request() (gesso.Request, error) {
	k := &c.call
	r := gesso.Request{
		Strength: k.Strength,
		Prompts:  k.Prompt, Prompts2: k.Prompt2, NegativePrompts: k.Negative, NegativePrompt2: k.Negative2,
		Height: k.Height, Width: k.Width, Steps: k.Steps, Guidance: k.Guidance, TrueCFGScale: k.TrueCFG,
		MaxSequenceLength: k.MaxLength, ImagesPerPrompt: k.PerPrompt, Sigmas: k.Sigmas, Timesteps: k.Timesteps,
		VAETiling: c.VAETiling, VAESlicing: c.VAESlicing,
	}
	switch k.Output {
	case "latent":
		r.Output = gesso.OutputLatent
	case "np", "pt":
		r.Output = gesso.OutputArray
	}
	if k.Generator.Seeds != nil {
		for _, s := range k.Generator.Seeds {
			r.Seeds = append(r.Seeds, uint64(s))
		}
	} else if k.Generator.Seed != nil {
		r.Generator = rng.New(uint64(*k.Generator.Seed))
	}
	for _, f := range []struct {
		from *file
		to   *image.Image
	}{{k.Image, &r.Image}, {k.Mask, &r.Mask}} {
		if f.from == nil {
			continue
		}
		var err error
		if *f.to, err = imageio.ReadFile(c.input(f.from.Name), imageio.Limits{}); err != nil {
			return r, err
		}
	}
	return r, nil
}

// stored returns a tensor of the reference, or the one that it is a duplicate of.
func (c *Case) stored(ref *weights.File, name string) *tensor.Array {
	if !ref.Has(name) {
		name = c.Recorded.Duplicates[name]
	}
	t, err := ref.Tensor(name)
	if err != nil {
		return nil
	}
	return t.Array()
}

// fromStored reports the stages after the text encoders, which a half-precision case computes from stored inputs.
func fromStored(name string) bool {
	if strings.HasPrefix(name, "vae.encode") || name == "latents.initial" {
		return false // made from the picture and the seed
	}
	for _, p := range []string{"transformer.", "noise_pred.", "latents.", "vae.", "output."} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// runFromStored runs the case again with the stored embeddings, and after each step goes on from the stored latents.
func (c *Case) runFromStored(ctx context.Context, pipe *gesso.Pipeline, ref *weights.File, dump func(string, *tensor.Array)) (*gesso.Result, error) {
	d, err := c.dtype()
	if err != nil {
		return nil, err
	}
	half := func(a *tensor.Array) *tensor.Array {
		if a == nil {
			return nil
		}
		h, cerr := a.Convert(d)
		err = errors.Join(err, cerr)
		return h
	}
	req, rerr := c.request()
	if rerr != nil {
		return nil, rerr
	}
	if req.Image != nil && req.Mask == nil { // with a mask, given latents would be the noise outside of it too
		req.Latents = half(c.stored(ref, "latents.initial"))
	}
	req.PromptEmbeds, req.PooledPromptEmbeds = half(c.stored(ref, "prompt_embeds")), half(c.stored(ref, "pooled_prompt_embeds"))
	if req.PromptEmbeds == nil || req.PooledPromptEmbeds == nil {
		return nil, errors.New("the case stores no prompt embeddings")
	}
	req.Prompts, req.Prompts2, req.NegativePrompts, req.NegativePrompt2, req.ImagesPerPrompt = nil, nil, nil, nil, 1 // stored after they were repeated
	if neg := half(c.stored(ref, "negative_prompt_embeds")); neg != nil {
		req.NegativePromptEmbeds, req.NegativePooledPromptEmbeds = neg, half(c.stored(ref, "negative_pooled_prompt_embeds"))
	}
	var mask *tensor.Array
	req.Dump = func(name string, a *tensor.Array) {
		if name == "prepare_mask_latents.out0" {
			mask = a
		}
		if fromStored(name) {
			dump(name, a)
		}
	}
	req.OnStep = func(s *gesso.Step) error {
		if a := half(c.stored(ref, fmt.Sprintf("latents.after_step_%d", s.Index))); a != nil {
			s.Latents = within(mask, a, s.Latents)
		}
		return err
	}
	res, gerr := pipe.Generate(ctx, req)
	return res, errors.Join(err, gerr)
}

// within returns a where the mask is set and b elsewhere; without a mask, a.
func within(mask, a, b *tensor.Array) *tensor.Array {
	if mask == nil {
		return a
	}
	out := tensor.New(a.DType, a.Shape...)
	size := a.DType.Size()
	for i, m := range mask.Float32s() {
		from := b
		if m != 0 {
			from = a
		}
		copy(out.Data[i*size:][:size], from.Data[i*size:])
	}
	return out
}

// compare checks every stored tensor.
func (c *Case) compare(ref *weights.File, got map[string]*tensor.Array, d tensor.DType, out *Outcome) error {
	names := ref.Names()
	for dup := range c.Recorded.Duplicates {
		names = append(names, dup)
	}
	slices.Sort(names)
	for _, name := range names {
		want := c.stored(ref, name)
		if want == nil {
			return fmt.Errorf("%s is recorded as a duplicate of a tensor that is not stored", name)
		}
		have, ok := got[name]
		if !ok {
			out.Missing = append(out.Missing, name)
			if !strings.HasPrefix(name, "trace.") {
				return fmt.Errorf("%s was not computed", name)
			}
			continue
		}
		if !have.Shape.Equal(want.Shape) {
			return fmt.Errorf("%s has the shape %v, expected %v", name, have.Shape, want.Shape)
		}
		out.note(name, maxDiff(have, want), c.tolerance(name, d, absMax(want)))
	}
	return nil
}

// note counts a comparison and keeps the worst, by its share of the tolerance.
func (o *Outcome) note(name string, diff, tol float64) {
	o.Compared++
	if diff > tol || math.IsNaN(diff) {
		o.Status = Failed
	}
	if o.Compared == 1 || share(diff, tol) > share(o.Diff, o.Tol) {
		o.Worst, o.Diff, o.Tol = name, diff, tol
	}
}

func share(diff, tol float64) float64 {
	switch {
	case math.IsNaN(diff):
		return math.Inf(1)
	case tol > 0:
		return diff / tol
	case diff > 0:
		return math.Inf(1)
	}
	return 0
}

// maxDiff returns the largest absolute difference; NaN where only one of the two is NaN.
func maxDiff(a, b *tensor.Array) float64 {
	x, y := a.Float64s(), b.Float64s()
	worst := 0.0
	for i := range x {
		if x[i] == y[i] || (math.IsNaN(x[i]) && math.IsNaN(y[i])) {
			continue
		}
		d := math.Abs(x[i] - y[i])
		if math.IsNaN(d) {
			return d
		}
		worst = max(worst, d)
	}
	return worst
}

func absMax(a *tensor.Array) float64 {
	m := 0.0
	for _, v := range a.Float64s() {
		m = max(m, math.Abs(v))
	}
	return m
}

// minEqual is the share of pixels of an f32 picture that must be equal; the others may differ by one level.
const minEqual = 0.99

// compareImages checks the stored pictures.
func (c *Case) compareImages(res *gesso.Result, d tensor.DType, out *Outcome) error {
	files, err := filepath.Glob(filepath.Join(c.dir, "image_*.png"))
	if err != nil {
		return err
	}
	if res.Images == nil {
		return nil
	}
	if len(files) != len(res.Images) {
		return fmt.Errorf("%d pictures were made, expected %d", len(res.Images), len(files))
	}
	for i, img := range res.Images {
		name := fmt.Sprintf("image_%d.png", i)
		ref, err := imageio.ReadFile(filepath.Join(c.dir, name), imageio.Limits{})
		if err != nil {
			return err
		}
		a, b := imageio.Pixels(img), imageio.Pixels(ref)
		if !a.Shape.Equal(b.Shape) {
			return fmt.Errorf("%s is %v, expected %v", name, a.Shape, b.Shape)
		}
		tol := 1.0
		if d.IsHalf() {
			tol = math.Ceil(c.tolerance("vae.decode0.out", d, 1) * 127.5)
		}
		out.note(name, maxDiff(a, b), tol)
		equal := 0
		for j := range a.Data {
			if a.Data[j] == b.Data[j] {
				equal++
			}
		}
		if !d.IsHalf() && float64(equal) < minEqual*float64(len(a.Data)) {
			return fmt.Errorf("%s: only %.2f %% of its values are equal, expected %g %%", name, 100*float64(equal)/float64(len(a.Data)), 100*minEqual)
		}
	}
	return nil
}
