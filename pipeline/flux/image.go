package flux

import (
	"errors"
	"fmt"
	"image"
	"math"

	"github.com/gesso-go/gesso/imageio"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/scheduler"
	"github.com/gesso-go/gesso/tensor"
)

// defaultStrength is that of FluxImg2ImgPipeline and FluxInpaintPipeline.
const defaultStrength = 0.6

// checkImage validates what starts from a picture, as FluxImg2ImgPipeline.check_inputs does.
func (r *run) checkImage() error {
	q := &r.Request
	if q.Image == nil {
		if q.Mask != nil {
			return errors.New("a mask needs an image")
		}
		if q.Strength != 0 {
			return errors.New("strength needs an image to start from")
		}
		return nil
	}
	for what, m := range map[string]image.Image{"image": q.Image, "mask": q.Mask} {
		if m != nil && m.Bounds().Empty() {
			return fmt.Errorf("the %s has no pixels", what)
		}
	}
	if q.Strength == 0 {
		q.Strength = defaultStrength
	}
	if math.IsNaN(q.Strength) || q.Strength < 0 || q.Strength > 1 {
		return fmt.Errorf("strength must be above 0 and at most 1, got %g", q.Strength)
	}
	return nil
}

// firstStep is where a schedule of n timesteps begins: strength is the share of them that is run.
// Source: FluxImg2ImgPipeline.get_timesteps.
func (r *run) firstStep(n int) int {
	if r.Request.Image == nil {
		return 0
	}
	run := math.Min(float64(n)*r.Request.Strength, float64(n))
	return min(int(math.Max(float64(n)-run, 0)), n-1)
}

// inpaint is what a run needs to keep the picture outside the mask. Arrays are packed latents.
type inpaint struct {
	mask, image, noise *tensor.Array
}

// startFromImage returns the initial latents of a run that begins with a picture: its own, with noise. A mask is noted
// in r.inpaint.
func (r *run) startFromImage(s scheduler.Scheduler, t float32, h, w int) (*tensor.Array, error) {
	q := &r.Request
	if q.Latents != nil && q.Mask == nil {
		return r.givenLatents(q.Latents, r.batch, h, w) // nobody would see the picture
	}
	mixer, ok := s.(scheduler.NoiseScaler)
	if !ok {
		return nil, fmt.Errorf("scheduler %s cannot start from an image", s.Class())
	}
	scale := r.p.vae.Config.Scale()
	pixels, err := imageio.Resize(imageio.Pixels(q.Image), h*scale, w*scale)
	if err != nil {
		return nil, err
	}
	x, err := imageio.Floats(pixels, imageio.Convention{})
	if err != nil {
		return nil, err
	}
	r.Progress("image encoding", 0, 0)
	z, err := r.encodeImage(x, 0)
	if err != nil {
		return nil, err
	}
	var noise, latents *tensor.Array // packed
	if q.Latents != nil {
		noise, err = r.givenLatents(q.Latents, r.batch, h, w)
		latents = noise
	} else if noise, err = r.noise(r.dtype(), r.batch, h, w); err == nil {
		latents, err = mixer.ScaleNoise(z, t, noise)
	}
	if err != nil || q.Mask == nil {
		return latents, err
	}
	r.inpaint = &inpaint{image: z, noise: noise}
	r.Dump("prepare_latents.out1", noise)
	r.Dump("prepare_latents.out2", z)
	if r.inpaint.mask, err = r.latentMask(h, w, x); err == nil {
		r.Dump("prepare_mask_latents.out0", r.inpaint.mask)
	}
	return latents, err
}

// encodeImage takes a picture x (1, 3, H, W) in [-1, 1] to packed latents, one row a picture to make, drawn from the
// distribution that the autoencoder gives. With a generator a picture, each draws from its own, so that a picture of a
// batch can be made again alone.
func (r *run) encodeImage(x *tensor.Array, call int) (*tensor.Array, error) {
	x, err := x.Convert(r.dtype())
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("vae.encode%d.", call)
	r.Dump(name+"in", x)
	mean, logvar, err := r.p.vae.Encode(r.ctx, x, r.Request.VAETiling, r.Request.VAESlicing)
	if err != nil {
		return nil, err
	}
	r.Dump(name+"mean", mean)
	r.Dump(name+"logvar", logvar)
	if err := pipeline.CheckFinite("vae encoder", mean); err != nil {
		return nil, err
	}
	rows := make([]*tensor.Array, len(r.generators))
	for i, g := range r.generators {
		noise, err := g.Randn(mean.DType, mean.Shape...)
		if err != nil {
			return nil, err
		}
		if rows[i], err = pipeline.Sample(mean, logvar, noise); err != nil {
			return nil, err
		}
	}
	z := pipeline.Stack(rows)
	if len(rows) < r.batch {
		z = pipeline.RepeatEach(z, r.batch/len(rows))
	}
	if z, err = r.p.vae.Rescale(z); err != nil {
		return nil, err
	}
	if z, err = z.Convert(r.dtype()); err != nil {
		return nil, err
	}
	return pack(z), nil
}

// latentMask returns the mask for packed latents, 1 where the picture is made anew. X is the picture, of which Diffusers
// also encodes the part that stays; models that take it as input would need that.
func (r *run) latentMask(h, w int, x *tensor.Array) (*tensor.Array, error) {
	scale := r.p.vae.Config.Scale()
	pixels, err := imageio.Resize(imageio.Pixels(r.Request.Mask), h*scale, w*scale)
	if err != nil {
		return nil, err
	}
	if pixels, err = imageio.Luma(pixels); err != nil {
		return nil, err
	}
	on := func(y, x int) bool { return pixels.Data[y*w*scale+x] >= 128 } // 0.5 of 255
	if err := r.maskedImage(on, x); err != nil {
		return nil, err
	}
	c := r.p.config.InChannels / 4
	planar := make([]float32, r.batch*c*h*w)
	for i := range planar {
		if y, x := i/w%h, i%w; on(y*scale, x*scale) { // nearest
			planar[i] = 1
		}
	}
	m, err := tensor.FromFloat32(planar, r.batch, c, h, w).Convert(r.dtype())
	if err != nil {
		return nil, err
	}
	return pack(m), nil
}

// maskedImage draws the noise that Diffusers draws for the part that stays, and encodes that only for those who compare.
func (r *run) maskedImage(on func(y, x int) bool, x *tensor.Array) error {
	if r.Request.Dump == nil {
		c := &r.p.vae.Config
		for _, g := range r.generators {
			if _, err := g.Randn(r.p.vae.Weights.DType, 1, c.LatentChannels, x.Shape[2]/c.Scale(), x.Shape[3]/c.Scale()); err != nil {
				return err
			}
		}
		return nil
	}
	h, w := x.Shape[2], x.Shape[3]
	kept := append([]float32(nil), x.Float32s()...)
	for i := range kept {
		if on(i/w%h, i%w) {
			kept[i] *= 0
		}
	}
	z, err := r.encodeImage(tensor.FromFloat32(kept, x.Shape...), 1)
	if err != nil {
		return err
	}
	r.Dump("prepare_mask_latents.out1", z)
	return nil
}

// keep puts the picture back outside the mask after a step: with the noise of the next timestep, or none after the last.
func (p *inpaint) keep(s scheduler.Scheduler, latents *tensor.Array, next *float32) (*tensor.Array, error) {
	old := p.image
	if next != nil {
		var err error
		if old, err = s.(scheduler.NoiseScaler).ScaleNoise(p.image, *next, p.noise); err != nil {
			return nil, err
		}
	}
	// (1 - mask)·old + mask·new in the latents' type: the mask is 0 or 1, so nothing is rounded.
	m, o := p.mask.Float32s(), old.Float32s()
	out := append([]float32(nil), latents.Float32s()...)
	for i := range out {
		if m[i] == 0 {
			out[i] = o[i]
		}
	}
	return tensor.FromFloat32(out, latents.Shape...).Convert(latents.DType)
}
