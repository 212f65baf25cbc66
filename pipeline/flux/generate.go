package flux

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/scheduler"
	"github.com/gesso-go/gesso/tensor"
)

// Defaults of FluxPipeline.__call__, and of FluxImg2ImgPipeline's and FluxInpaintPipeline's where they differ.
const (
	defaultSteps         = 28
	defaultGuidance      = 3.5
	defaultGuidanceImage = 7.0
	defaultMaxLength     = 512
	maxMaxLength         = 512
)

// run is one request on its way.
type run struct {
	pipeline.Run
	p          *Pipeline
	ctx        context.Context
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
	r := &run{Run: pipeline.Run{Request: req}, ctx: ctx, p: p}
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := p.loras.SetWeights(req.LoRAWeights); err != nil {
		return nil, err
	}

	start := time.Now()
	r.Progress("text encoding", 0, 0)
	if err := r.encodePrompts(); err != nil {
		return nil, r.stopped("in text encoding", err)
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
		return nil, r.stopped("before the first step", err)
	}
	if latents, err = r.denoise(s, s.Timesteps()[first:], latents, h, w); err != nil {
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
		return nil, r.stopped("in decoding", err)
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
func (r *run) denoise(s scheduler.Scheduler, times []float32, latents *tensor.Array, h, w int) (*tensor.Array, error) {
	d, err := r.newDenoiser(times, h, w)
	if err != nil {
		return nil, err
	}
	r.Result.Asked, r.Result.Strength = r.Request.Steps, r.Request.Strength
	for i, t := range times {
		r.Progress("denoising", i, len(times))
		start := time.Now()
		v, err := d.velocity(latents, i)
		if err != nil {
			return nil, r.stopped(fmt.Sprintf("after %d of %d steps", i, len(times)), err)
		}
		r.Dump(fmt.Sprintf("noise_pred.step_%d", i), v)
		if latents, err = s.Step(v, t, latents, r.draw); err != nil {
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
	r.Result.Steps = len(r.Result.Timing.Steps)
	r.Progress("denoising", r.Result.Steps, len(times))
	return latents, nil
}

// draw is the noise of a stochastic scheduler. Each picture's comes from its own generator, so that it can be made again
// alone; Diffusers' pipelines give their scheduler none, and its noise depends on what the process drew before.
func (r *run) draw(d tensor.DType, shape ...int) (*tensor.Array, error) {
	return rng.RandnBatch(r.generators, d, shape...)
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

// stopped says where a request was when its context ended, if that is what err is.
func (r *run) stopped(where string, err error) error {
	if r.ctx.Err() == nil || !errors.Is(err, r.ctx.Err()) {
		return err
	}
	return fmt.Errorf("stopped %s: %w", where, err)
}

// guidanceUsed is what the result reports.
func (r *run) guidanceUsed() float64 {
	if !r.p.config.GuidanceEmbed {
		return math.NaN()
	}
	return r.guidance
}
