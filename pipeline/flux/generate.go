package flux

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/scheduler"
	"github.com/gesso-go/gesso/tensor"
)

// Defaults of FluxPipeline.__call__.
const (
	defaultSteps     = 28
	defaultGuidance  = 3.5
	defaultMaxLength = 512
	maxMaxLength     = 512
)

// run is one request on its way.
type run struct {
	pipeline.Run
	p          *Pipeline
	batch      int // pictures in all
	perPrompt  int
	maxLength  int
	guidance   float64
	generators []*rng.Generator
	calls      struct{ clip, t5, transformer int }
	prompt     embeds
	negative   *embeds  // nil without true CFG
	inpaint    *inpaint // nil without a mask
}

// Generate runs one request.
func (p *Pipeline) Generate(ctx context.Context, req pipeline.Request) (*pipeline.Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &run{Run: pipeline.Run{Request: req}, p: p}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := p.loras.SetWeights(req.LoRAWeights); err != nil {
		return nil, err
	}

	start := time.Now()
	r.Progress("text encoding", 0, 0)
	if err := r.encodePrompts(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("stopped after text encoding: %w", err)
	}
	r.Result.Timing.TextEncode = time.Since(start)

	start = time.Now()
	h, w := p.latentSize(r.Request.Height, r.Request.Width)
	s, err := r.schedule(h / 2 * (w / 2))
	if err != nil {
		return nil, err
	}
	first := r.firstStep(len(s.Timesteps()))
	if err := s.SetBeginIndex(first); err != nil {
		return nil, err
	}
	latents, err := r.initialLatents(s, s.Timesteps()[first], h, w)
	if err != nil {
		return nil, err
	}
	if latents, err = r.denoise(ctx, s, s.Timesteps()[first:], latents, h, w); err != nil {
		return nil, err
	}
	r.Dump("latents.final", latents)
	r.Result.Timing.Denoise = time.Since(start)

	r.Result.Height, r.Result.Width = h*p.vae.Config.Scale(), w*p.vae.Config.Scale()
	if req.Output == pipeline.OutputLatent {
		r.Dump("output.latent", latents)
		r.Result.Array = latents
		return &r.Result, nil
	}
	start = time.Now()
	r.Progress("decoding", 0, 0)
	x, err := r.decode(latents, h, w)
	if err != nil {
		return nil, err
	}
	if err := r.Finish(x); err != nil {
		return nil, err
	}
	r.Result.Timing.Decode = time.Since(start)
	return &r.Result, nil
}

// dtype is the type of latents and embeddings: that of the long text encoder.
func (r *run) dtype() tensor.DType { return r.prompt.prompt.DType }

// encodePrompts fills prompt and negative.
func (r *run) encodePrompts() error {
	q := &r.Request
	var err error
	if q.PromptEmbeds != nil {
		r.prompt, err = r.givenEmbeds("prompt_embeds", q.PromptEmbeds, q.PooledPromptEmbeds, "")
	} else {
		r.prompt, err = r.encode(q.Prompts, pipeline.Default(q.Prompts2, q.Prompts), r.perPrompt, "")
	}
	if err != nil {
		return err
	}
	if !r.trueCFG() {
		return nil
	}
	var neg embeds
	if q.NegativePromptEmbeds != nil {
		neg, err = r.givenEmbeds("negative_prompt_embeds", q.NegativePromptEmbeds, q.NegativePooledPromptEmbeds, "negative_")
	} else {
		prompts := r.batch / r.perPrompt
		texts := pipeline.Spread(q.NegativePrompts, prompts)
		neg, err = r.encode(texts, pipeline.Default(pipeline.Spread(q.NegativePrompt2, prompts), texts), r.perPrompt, "negative_")
	}
	r.negative = &neg
	return err
}

// givenEmbeds repeats the caller's embeddings for every picture of a prompt.
func (r *run) givenEmbeds(name string, prompt, pooled *tensor.Array, prefix string) (embeds, error) {
	d := r.p.t5Weights.DType
	prompt, err := prompt.Convert(d)
	if err != nil {
		return embeds{}, fmt.Errorf("%s: %w", name, err)
	}
	if pooled, err = pooled.Convert(d); err != nil {
		return embeds{}, fmt.Errorf("pooled %s: %w", name, err)
	}
	e := embeds{pipeline.RepeatEach(prompt, r.perPrompt), pipeline.RepeatEach(pooled, r.perPrompt)}
	r.dumpEmbeds(e, prefix)
	return e, nil
}

// initialLatents returns what the loop begins with, at timestep t.
func (r *run) initialLatents(s scheduler.Scheduler, t float32, h, w int) (latents *tensor.Array, err error) {
	switch q := &r.Request; {
	case q.Image != nil:
		latents, err = r.startFromImage(s, t, h, w)
	case q.Latents != nil:
		latents, err = r.givenLatents(q.Latents, r.batch, h, w)
	default:
		latents, err = r.noise(r.dtype(), r.batch, h, w)
	}
	if err == nil {
		r.Dump("latents.initial", latents)
	}
	return latents, err
}

// schedule prepares the scheduler for pictures of so many tokens.
func (r *run) schedule(tokens int) (scheduler.Scheduler, error) {
	s := r.p.scheduler.Clone()
	mu := s.Shifting().Mu(tokens)
	sched := scheduler.Schedule{Mu: &mu}
	switch q := &r.Request; {
	case q.Timesteps != nil:
		sched.Timesteps = q.Timesteps
	case q.Sigmas != nil:
		sched.Sigmas = q.Sigmas
	default:
		sched.Sigmas = scheduler.LinearSigmas(q.Steps)
	}
	if err := s.SetTimesteps(sched); err != nil {
		return nil, err
	}
	r.Dump("sigmas", tensor.FromFloat32(s.Sigmas(), len(s.Sigmas())))
	r.Dump("timesteps", tensor.FromFloat32(s.Timesteps(), len(s.Timesteps())))
	return s, nil
}

// denoise takes the initial latents to the final ones, over the given timesteps of s.
func (r *run) denoise(ctx context.Context, s scheduler.Scheduler, times []float32, latents *tensor.Array, h, w int) (*tensor.Array, error) {
	d, err := r.newDenoiser(h, w)
	if err != nil {
		return nil, err
	}
	r.Result.Steps = len(times)
	for i, t := range times {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("stopped after %d of %d steps: %w", i, len(times), err)
		}
		r.Progress("denoising", i, len(times))
		start := time.Now()
		v, err := d.velocity(latents, t)
		if err != nil {
			return nil, err
		}
		r.Dump(fmt.Sprintf("noise_pred.step_%d", i), v)
		if latents, err = s.Step(v, t, latents, r.generators[0].Randn); err != nil {
			return nil, err
		}
		r.Dump(fmt.Sprintf("latents.after_step_%d", i), latents)
		if r.inpaint != nil {
			var next *float32
			if i+1 < len(times) {
				next = &times[i+1]
			}
			if latents, err = r.inpaint.keep(s, latents, next); err != nil {
				return nil, err
			}
		}
		if err := pipeline.CheckFinite(fmt.Sprintf("step %d of the transformer", i+1), latents); err != nil {
			return nil, err
		}
		r.Result.Timing.Steps = append(r.Result.Timing.Steps, time.Since(start))
		stop, err := r.onStep(i, t, &latents)
		if err != nil {
			return nil, err
		}
		if stop {
			break
		}
	}
	r.Progress("denoising", len(r.Result.Timing.Steps), len(times))
	return latents, nil
}

// onStep calls the caller's function, which may replace latents and embeddings.
func (r *run) onStep(i int, t float32, latents **tensor.Array) (stop bool, err error) {
	if r.Request.OnStep == nil {
		return false, nil
	}
	s := &pipeline.Step{Index: i, Timestep: t, Latents: *latents, PromptEmbeds: r.prompt.prompt}
	if err := r.Request.OnStep(s); err != nil {
		return false, fmt.Errorf("after step %d: %w", i+1, err)
	}
	for _, a := range []struct {
		name     string
		now, was *tensor.Array
	}{{"latents", s.Latents, *latents}, {"prompt_embeds", s.PromptEmbeds, r.prompt.prompt}} {
		if a.now == nil || !a.now.Shape.Equal(a.was.Shape) || a.now.DType != a.was.DType {
			return false, fmt.Errorf("after step %d: %s were replaced by %v, expected %v", i+1, a.name, a.now, a.was)
		}
	}
	*latents, r.prompt.prompt = s.Latents, s.PromptEmbeds
	return s.Stop, nil
}

// denoiser calls the transformer.
type denoiser struct {
	r        *run
	rope     [2]engine.Value
	guidance []engine.Value // one value, or none where the model takes none
}

func (r *run) newDenoiser(h, w int) (*denoiser, error) {
	p := r.p
	text := make([][]float64, r.prompt.prompt.Shape[1])
	for i := range text {
		text[i] = []float64{0, 0, 0}
	}
	img := imageIDs(r.dtype(), h, w)
	cos, sin := p.config.Rope(append(text, img...))
	d := &denoiser{r: r, rope: [2]engine.Value{p.eng.Upload(cos), p.eng.Upload(sin)}}
	if p.config.GuidanceEmbed {
		g := make([]float32, r.batch)
		for i := range g {
			g[i] = float32(r.guidance)
		}
		d.guidance = []engine.Value{p.eng.Upload(tensor.FromFloat32(g, r.batch))}
	}
	if r.Request.Dump != nil {
		ids, err := idArray(img, r.dtype())
		if err != nil {
			return nil, err
		}
		if r.inpaint != nil {
			r.Dump("prepare_latents.out3", ids)
		} else {
			r.Dump("prepare_latents.out1", ids)
		}
		r.Dump("transformer.call0.in.img_ids", ids)
		r.Dump("transformer.call0.in.txt_ids", tensor.New(r.dtype(), len(text), 3))
	}
	return d, nil
}

// velocity returns the model's answer, combined with that for the negative prompt.
func (d *denoiser) velocity(latents *tensor.Array, t float32) (*tensor.Array, error) {
	v, err := d.call(latents, t, d.r.prompt)
	if err != nil || d.r.negative == nil {
		return v, err
	}
	neg, err := d.call(latents, t, *d.r.negative)
	if err != nil {
		return nil, err
	}
	return pipeline.Guide(v, neg, d.r.Request.TrueCFGScale)
}

// call evaluates the transformer once.
func (d *denoiser) call(latents *tensor.Array, t float32, e embeds) (*tensor.Array, error) {
	r, p := d.r, d.r.p
	dt := p.weights.DType
	// The timestep is rounded to the latents' dtype, then divided by 1000 in it.
	time := tensor.RoundTo(latents.DType, tensor.RoundTo(latents.DType, t)/1000)
	times := make([]float32, r.batch)
	for i := range times {
		times[i] = time
	}
	timestep, err := tensor.FromFloat32(times, r.batch).Convert(latents.DType)
	if err != nil {
		return nil, err
	}
	in := []*tensor.Array{latents, e.prompt, e.pooled, timestep}
	if r.calls.transformer == 0 {
		for i, name := range []string{"hidden_states", "encoder_hidden_states", "pooled_projections", "timestep"} {
			r.Dump("transformer.call0.in."+name, in[i])
		}
		if p.config.GuidanceEmbed && r.Request.Dump != nil {
			g, err := d.guidance[0].Read()
			if err != nil {
				return nil, err
			}
			r.Dump("transformer.call0.in.guidance", g)
		}
	}
	args := make([]engine.Value, 0, 7)
	for _, a := range in {
		if a, err = a.Convert(dt); err != nil {
			return nil, err
		}
		args = append(args, p.eng.Upload(a))
	}
	args = append(append(args, d.rope[:]...), d.guidance...)
	out, err := p.transformer.Call(args...)[0].Read()
	if err != nil {
		return nil, err
	}
	r.Dump(fmt.Sprintf("transformer.call%d.out", r.calls.transformer), out)
	r.calls.transformer++
	return out, nil
}

// guidanceUsed is what the result reports.
func (r *run) guidanceUsed() float64 {
	if !r.p.config.GuidanceEmbed {
		return math.NaN()
	}
	return r.guidance
}
