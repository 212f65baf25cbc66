package flux

import (
	"errors"
	"fmt"

	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
)

// check validates the request and fills its defaults, as FluxPipeline.check_inputs does and somewhat stricter.
func (r *run) check() error {
	q := &r.Request
	if err := r.checkPrompts(); err != nil {
		return err
	}
	if err := r.checkSize(); err != nil {
		return err
	}
	if err := pipeline.CheckScales(q); err != nil {
		return err
	}
	if err := r.checkImage(); err != nil {
		return err
	}
	settings := &r.p.settings
	r.maxLength = pipeline.DefaultInt(q.MaxSequenceLength, pipeline.DefaultInt(settings.MaxSequenceLength, defaultMaxLength))
	switch {
	case r.maxLength < 0:
		return fmt.Errorf("max_sequence_length must be positive, got %d", r.maxLength)
	case r.maxLength > maxMaxLength:
		return fmt.Errorf("max_sequence_length cannot be greater than %d, got %d", maxMaxLength, r.maxLength)
	}
	if err := pipeline.CheckSteps(q, pipeline.DefaultInt(settings.Steps, defaultSteps)); err != nil {
		return err
	}
	r.guidance = defaultGuidance
	if q.Image != nil {
		r.guidance = defaultGuidanceImage
	}
	for _, g := range []*float64{settings.Guidance, q.Guidance} {
		if g != nil {
			r.guidance = *g
		}
	}
	if q.TrueCFGScale > 1 && !r.trueCFG() {
		r.Warn("true_cfg_scale %g has no effect without a negative prompt", q.TrueCFGScale)
	}
	if len(q.NegativePrompts) > 0 && q.TrueCFGScale <= 1 {
		r.Warn("the negative prompt has no effect unless true_cfg_scale is above 1")
	}
	r.Result.Guidance = r.guidanceUsed()
	var err error
	r.generators, r.Result.Seeds, err = pipeline.Generators(q, r.batch)
	return err
}

func (r *run) checkPrompts() error {
	q := &r.Request
	r.perPrompt = max(q.ImagesPerPrompt, 1)
	if q.ImagesPerPrompt < 0 {
		return fmt.Errorf("the number of images must be positive, got %d", q.ImagesPerPrompt)
	}
	switch {
	case q.PromptEmbeds != nil && (q.Prompts != nil || q.Prompts2 != nil):
		return errors.New("give either a prompt or prompt_embeds, not both")
	case q.PromptEmbeds == nil && len(q.Prompts) == 0:
		return errors.New("give a prompt or prompt_embeds")
	case q.PromptEmbeds == nil:
		r.batch = len(q.Prompts) * r.perPrompt
		if n := len(q.Prompts2); n > 0 && n != len(q.Prompts) {
			return fmt.Errorf("%d second prompts for %d prompts", n, len(q.Prompts))
		}
	default:
		if err := r.checkEmbeds("prompt_embeds", q.PromptEmbeds, q.PooledPromptEmbeds); err != nil {
			return err
		}
		r.batch = q.PromptEmbeds.Shape[0] * r.perPrompt
	}
	if q.NegativePromptEmbeds != nil {
		if len(q.NegativePrompts) > 0 {
			return errors.New("give either a negative prompt or negative_prompt_embeds, not both")
		}
		if err := r.checkEmbeds("negative_prompt_embeds", q.NegativePromptEmbeds, q.NegativePooledPromptEmbeds); err != nil {
			return err
		}
		if q.PromptEmbeds != nil && !q.PromptEmbeds.Shape.Equal(q.NegativePromptEmbeds.Shape) {
			return fmt.Errorf("prompt_embeds %v and negative_prompt_embeds %v must have one shape",
				q.PromptEmbeds.Shape, q.NegativePromptEmbeds.Shape)
		}
		if n := q.NegativePromptEmbeds.Shape[0] * r.perPrompt; n != r.batch {
			return fmt.Errorf("negative_prompt_embeds are for %d pictures, the prompts for %d", n, r.batch)
		}
	}
	for _, n := range []int{len(q.NegativePrompts), len(q.NegativePrompt2)} {
		if n > 1 && n != r.batch/r.perPrompt {
			return fmt.Errorf("%d negative prompts for %d prompts", n, r.batch/r.perPrompt)
		}
	}
	return nil
}

// checkEmbeds checks embeddings of the caller.
func (r *run) checkEmbeds(name string, prompt, pooled *tensor.Array) error {
	if pooled == nil {
		return fmt.Errorf("%s need their pooled embeddings too, made by the same text encoder", name)
	}
	c := &r.p.config
	for _, a := range []*tensor.Array{prompt, pooled} {
		if err := a.Check(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s := prompt.Shape; len(s) != 3 || s[0] < 1 || s[1] < 1 || s[2] != c.JointDim {
		return fmt.Errorf("%s have the shape %v, expected (prompts, tokens, %d)", name, s, c.JointDim)
	}
	if s := pooled.Shape; len(s) != 2 || s[0] != prompt.Shape[0] || s[1] != c.PooledDim {
		return fmt.Errorf("pooled %s have the shape %v, expected (%d, %d)", name, s, prompt.Shape[0], c.PooledDim)
	}
	return nil
}

// trueCFG reports whether each step takes two evaluations.
func (r *run) trueCFG() bool {
	q := &r.Request
	return q.TrueCFGScale > 1 && (len(q.NegativePrompts) > 0 || q.NegativePromptEmbeds != nil)
}

func (r *run) checkSize() error {
	q := &r.Request
	h, w := r.p.DefaultSize()
	q.Height, q.Width = pipeline.DefaultInt(q.Height, h), pipeline.DefaultInt(q.Width, w)
	patch := 2 * r.p.vae.Config.Scale()
	if err := pipeline.CheckSize(q.Height, q.Width, patch); err != nil {
		return err
	}
	if q.Height%patch != 0 || q.Width%patch != 0 {
		r.Warn("height and width must be multiples of %d: %d×%d becomes %d×%d", patch, q.Width, q.Height,
			q.Width/patch*patch, q.Height/patch*patch)
	}
	return nil
}
