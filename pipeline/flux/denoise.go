package flux

import (
	"fmt"
	"slices"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
)

// stepsAhead is for how many steps the model's modulation is computed at once. It is the same for every request, so that
// another number of steps is no other program: the last step's rows are repeated.
const stepsAhead = 16

// denoiser calls the transformer.
type denoiser struct {
	r                *run
	times            []float32
	rope             [2]engine.Value
	prompt, negative conditions
}

// conditions are what modulates the model under one prompt.
type conditions struct {
	embeds   *embeds
	text     engine.Value   // uploaded, on the device
	uploaded *tensor.Array  // embeds.prompt as a call saw it; nil before the first
	ahead    []engine.Value // of some steps: (steps·B, …) for each norm
}

func (r *run) newDenoiser(times []float32, h, w int) (*denoiser, error) {
	p := r.p
	text := make([][]float64, r.prompt.prompt.Shape[1])
	for i := range text {
		text[i] = []float64{0, 0, 0}
	}
	img := imageIDs(r.dtype(), h, w)
	cos, sin := p.config.Rope(append(text, img...))
	d := &denoiser{
		r: r, times: times, rope: [2]engine.Value{p.eng.Upload(cos), p.eng.Upload(sin)},
		prompt: conditions{embeds: &r.prompt}, negative: conditions{embeds: r.negative},
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

// velocity returns the model's answer at a step, combined with that for the negative prompt.
func (d *denoiser) velocity(latents *tensor.Array, step int) (*tensor.Array, error) {
	v, err := d.call(latents, step, &d.prompt)
	if err != nil || d.r.negative == nil {
		return v, err
	}
	neg, err := d.call(latents, step, &d.negative)
	if err != nil {
		return nil, err
	}
	return pipeline.Guide(v, neg, d.r.Request.TrueCFGScale)
}

// call evaluates the transformer once.
func (d *denoiser) call(latents *tensor.Array, step int, c *conditions) (*tensor.Array, error) {
	r, p := d.r, d.r.p
	if r.calls.transformer == 0 {
		if err := d.dumpInputs(latents, step, c); err != nil {
			return nil, err
		}
	}
	if c.uploaded != c.embeds.prompt {
		text, err := p.upload(c.embeds.prompt)
		if err != nil {
			return nil, err
		}
		c.text, c.uploaded = text, c.embeds.prompt
	}
	rows, err := d.modulate(latents.DType, step, c)
	if err != nil {
		return nil, err
	}
	hidden, err := p.upload(latents)
	if err != nil {
		return nil, err
	}
	args := append([]engine.Value{hidden.Donate(), c.text, d.rope[0], d.rope[1], rows}, c.ahead...)
	out, err := p.transformer.Call(args...)[0].ReadContext(r.ctx)
	if err != nil {
		return nil, err
	}
	r.Dump(fmt.Sprintf("transformer.call%d.out", r.calls.transformer), out)
	r.calls.transformer++
	return out, nil
}

// upload brings an array to the device in the transformer's dtype.
func (p *Pipeline) upload(a *tensor.Array) (engine.Value, error) {
	a, err := a.Convert(p.weights.DType)
	if err != nil {
		return engine.Value{}, err
	}
	return p.eng.Upload(a), nil
}

// modulate returns which rows of c.ahead are a step's (B), and computes those of the coming steps when it is their turn.
// While values are tapped that is one step, so that layers report what Diffusers' modules return.
func (d *denoiser) modulate(latents tensor.DType, step int, c *conditions) (engine.Value, error) {
	p, batch := d.r.p, d.r.batch
	ahead := stepsAhead
	if p.eng.Tapping() {
		ahead = 1
	}
	if step%ahead == 0 {
		pooled, err := p.upload(pipeline.Stack(slices.Repeat([]*tensor.Array{c.embeds.pooled}, ahead)))
		if err != nil {
			return engine.Value{}, err
		}
		times, err := d.timesteps(latents, step, ahead)
		if err != nil {
			return engine.Value{}, err
		}
		timestep, err := p.upload(times)
		if err != nil {
			return engine.Value{}, err
		}
		in := []engine.Value{pooled, timestep}
		if p.config.GuidanceEmbed {
			in = append(in, p.eng.Upload(d.r.guidances(ahead)))
		}
		c.ahead = p.modulation.Call(in...)
	}
	rows := make([]int32, batch)
	for i := range rows {
		rows[i] = int32(step%ahead*batch + i)
	}
	return p.eng.Upload(tensor.FromInt32(rows, batch)), nil
}

// timesteps returns the transformer's for n steps from one on (n·B), the last step's where there are no more. They are
// rounded to the latents' dtype, then divided by 1000 in it.
func (d *denoiser) timesteps(latents tensor.DType, step, n int) (*tensor.Array, error) {
	out := make([]float32, 0, n*d.r.batch)
	for i := range n {
		t := d.times[min(step+i, len(d.times)-1)]
		out = append(out, slices.Repeat([]float32{tensor.RoundTo(latents, tensor.RoundTo(latents, t)/1000)}, d.r.batch)...)
	}
	return tensor.FromFloat32(out, len(out)).Convert(latents)
}

// guidances returns the guidance for n steps (n·B).
func (r *run) guidances(n int) *tensor.Array {
	return tensor.FromFloat32(slices.Repeat([]float32{float32(r.guidance)}, n*r.batch), n*r.batch)
}

// dumpInputs gives what a call takes to whoever compares.
func (d *denoiser) dumpInputs(latents *tensor.Array, step int, c *conditions) error {
	r := d.r
	timestep, err := d.timesteps(latents.DType, step, 1)
	if err != nil {
		return err
	}
	r.Dump("transformer.call0.in.hidden_states", latents)
	r.Dump("transformer.call0.in.encoder_hidden_states", c.embeds.prompt)
	r.Dump("transformer.call0.in.pooled_projections", c.embeds.pooled)
	r.Dump("transformer.call0.in.timestep", timestep)
	if r.p.config.GuidanceEmbed {
		r.Dump("transformer.call0.in.guidance", r.guidances(1))
	}
	return nil
}
