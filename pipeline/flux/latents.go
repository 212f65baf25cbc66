package flux

import (
	"fmt"

	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

// latentSize returns height and width in latents of a picture: even numbers, so that they pack into 2×2 patches.
func (p *Pipeline) latentSize(height, width int) (int, int) {
	patch := 2 * p.vae.Config.Scale()
	return 2 * (height / patch), 2 * (width / patch)
}

// noise draws the initial latents (B, C, h, w) in dtype d and packs them.
func (r *run) noise(d tensor.DType, batch, h, w int) (*tensor.Array, error) {
	a, err := rng.RandnBatch(r.generators, d, batch, r.p.config.InChannels/4, h, w)
	if err != nil {
		return nil, err
	}
	return pack(a), nil
}

// pack takes (B, C, h, w) to (B, h/2·w/2, 4C); a token is a 2×2 patch, with channel c·4 + dy·2 + dx.
func pack(a *tensor.Array) *tensor.Array {
	b, c, h, w := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	out := tensor.New(a.DType, b, h/2*(w/2), 4*c)
	movePatches(out.Data, a.Data, b, c, h, w, a.DType.Size(), true)
	return out
}

// unpack is pack's inverse.
func unpack(a *tensor.Array, h, w int) *tensor.Array {
	b, c := a.Shape[0], a.Shape[2]/4
	out := tensor.New(a.DType, b, c, h, w)
	movePatches(a.Data, out.Data, b, c, h, w, a.DType.Size(), false)
	return out
}

// movePatches copies between packed and planar, towards packed or away from it.
func movePatches(packed, planar []byte, b, c, h, w, size int, toPacked bool) {
	for i := range b {
		for ch := range c {
			for y := range h {
				for x := range w {
					token := (i*(h/2)+y/2)*(w/2) + x/2
					p := packed[(token*4*c+ch*4+y%2*2+x%2)*size:][:size]
					q := planar[(((i*c+ch)*h+y)*w+x)*size:][:size]
					if toPacked {
						copy(p, q)
					} else {
						copy(q, p)
					}
				}
			}
		}
	}
}

// imageIDs returns the position (0, row, column) of every token, rounded to the latents' dtype as Diffusers does: bf16
// cannot tell positions past 256 apart.
func imageIDs(d tensor.DType, h, w int) [][]float64 {
	ids := make([][]float64, 0, h/2*(w/2))
	for y := range h / 2 {
		for x := range w / 2 {
			ids = append(ids, []float64{0, float64(tensor.RoundTo(d, float32(y))), float64(tensor.RoundTo(d, float32(x)))})
		}
	}
	return ids
}

// idArray makes positions an array of dtype d, for dumps.
func idArray(ids [][]float64, d tensor.DType) (*tensor.Array, error) {
	flat := make([]float64, 0, 3*len(ids))
	for _, id := range ids {
		flat = append(flat, id...)
	}
	return tensor.FromFloat64(flat, len(ids), 3).Convert(d)
}

// givenLatents checks latents of the caller, which must be packed.
func (r *run) givenLatents(a *tensor.Array, batch, h, w int) (*tensor.Array, error) {
	want := tensor.Shape{batch, h / 2 * (w / 2), r.p.config.InChannels}
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("latents: %w", err)
	}
	if !a.Shape.Equal(want) {
		return nil, fmt.Errorf("latents have the shape %v, expected packed latents %v", a.Shape, want)
	}
	return a.Convert(r.dtype())
}

// decode takes packed latents to pictures (B, 3, H, W), not clamped.
func (r *run) decode(latents *tensor.Array, h, w int) (*tensor.Array, error) {
	z, err := r.p.vae.Unscale(unpack(latents, h, w))
	if err != nil {
		return nil, err
	}
	r.Dump("vae.decode0.in", z)
	x, err := r.p.vae.Decode(r.ctx, z, r.Request.VAETiling, r.Request.VAESlicing)
	if err != nil {
		return nil, err
	}
	r.Dump("vae.decode0.out", x)
	return x, pipeline.CheckFinite("vae", x)
}
