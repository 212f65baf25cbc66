package pipeline

import (
	"context"
	"fmt"
	"math"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/vae"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
)

// VAE is the autoencoder as pipelines use it: on host arrays, with slicing and tiling.
type VAE struct {
	Config         vae.Config
	Weights        *Weights
	encode, decode *engine.Function
	eng            *engine.Engine
}

// LoadVAE opens the component "vae".
func LoadVAE(f *Folder, o Options) (*VAE, error) {
	c := vae.Defaults()
	if err := f.ReadConfig("vae", &c); err != nil {
		return nil, err
	}
	m := vae.New(c)
	w, err := f.Bind(o.Engine, o, "vae", m, placement.Options{})
	if err != nil {
		return nil, err
	}
	v := &VAE{Config: c, Weights: w, eng: o.Engine}
	v.encode = o.Engine.Function("vae.encode", func(in []engine.Value) []engine.Value {
		return []engine.Value{m.Encode(in[0])}
	})
	v.decode = o.Engine.Function("vae.decode", func(in []engine.Value) []engine.Value {
		return []engine.Value{m.Decode(in[0])}
	})
	return v, nil
}

// Unscale returns latents/scaling_factor + shift_factor, rounded to the latents' dtype after each operation. PyTorch
// rounds a number that it adds to the tensor's dtype too, but none that it multiplies by or divides by.
func (v *VAE) Unscale(latents *tensor.Array) (*tensor.Array, error) {
	x := append([]float32(nil), latents.Float32s()...)
	scale, shift := float32(v.Config.ScalingFactor), tensor.RoundTo(latents.DType, float32(v.Config.Shift()))
	for i, f := range x {
		x[i] = tensor.RoundTo(latents.DType, tensor.RoundTo(latents.DType, f/scale)+shift)
	}
	return tensor.FromFloat32(x, latents.Shape...).Convert(latents.DType)
}

// Rescale is Unscale's inverse: (latents - shift_factor)·scaling_factor, rounded in the same way.
func (v *VAE) Rescale(latents *tensor.Array) (*tensor.Array, error) {
	x := append([]float32(nil), latents.Float32s()...)
	scale, shift := float32(v.Config.ScalingFactor), tensor.RoundTo(latents.DType, float32(v.Config.Shift()))
	for i, f := range x {
		x[i] = tensor.RoundTo(latents.DType, tensor.RoundTo(latents.DType, f-shift)*scale)
	}
	return tensor.FromFloat32(x, latents.Shape...).Convert(latents.DType)
}

// Decode takes latents (B, C, h, w), unscaled, to pictures (B, 3, H, W), not clamped. Slicing decodes one picture at a
// time. Tiling decodes large latents in overlapping tiles, whose borders are blended; the result differs slightly from
// that of the whole.
func (v *VAE) Decode(ctx context.Context, z *tensor.Array, tiling, slicing bool) (*tensor.Array, error) {
	tile := v.Config.SampleSize / v.Config.Scale()
	return v.run(ctx, v.decode, z, tiles{
		size: tile, step: int(float64(tile) * (1 - tileOverlap)),
		blend: int(float64(v.Config.SampleSize) * tileOverlap), out: v.Config.SampleSize,
	}, tiling, slicing)
}

// Encode takes pictures (B, 3, H, W) in [-1, 1] to the mean and the logarithm of the variance of their latents
// (B, C, h, w), the latter clamped to [-30, 20].
func (v *VAE) Encode(ctx context.Context, x *tensor.Array, tiling, slicing bool) (mean, logvar *tensor.Array, err error) {
	tile := v.Config.SampleSize / v.Config.Scale()
	moments, err := v.run(ctx, v.encode, x, tiles{
		size: v.Config.SampleSize, step: int(float64(v.Config.SampleSize) * (1 - tileOverlap)),
		blend: int(float64(tile) * tileOverlap), out: tile,
	}, tiling, slicing)
	if err != nil {
		return nil, nil, err
	}
	s := moments.Shape
	c := s[1] / 2
	half := len(moments.Data) / s[0] / 2
	mean, logvar = tensor.New(moments.DType, s[0], c, s[2], s[3]), tensor.New(moments.DType, s[0], c, s[2], s[3])
	for i := range s[0] {
		copy(mean.Data[i*half:], moments.Data[2*i*half:][:half])
		copy(logvar.Data[i*half:], moments.Data[(2*i+1)*half:][:half])
	}
	l := append([]float32(nil), logvar.Float32s()...)
	for i, f := range l {
		l[i] = min(max(f, -30), 20)
	}
	logvar, err = tensor.FromFloat32(l, logvar.Shape...).Convert(moments.DType)
	return mean, logvar, err
}

// Sample draws latents from their distribution: mean + exp(logvar/2)·noise, rounded after each operation.
func Sample(mean, logvar, noise *tensor.Array) (*tensor.Array, error) {
	d := mean.DType
	m, l, n := mean.Float32s(), logvar.Float32s(), noise.Float32s()
	if len(m) != len(l) || len(m) != len(n) {
		return nil, fmt.Errorf("sample from %v, %v with noise %v", mean, logvar, noise)
	}
	out := make([]float32, len(m))
	for i := range out {
		std := tensor.RoundTo(d, float32(math.Exp(float64(tensor.RoundTo(d, 0.5*l[i])))))
		out[i] = tensor.RoundTo(d, m[i]+tensor.RoundTo(d, std*n[i]))
	}
	return tensor.FromFloat32(out, mean.Shape...).Convert(d)
}

// tileOverlap is the share of a tile that overlaps its neighbour.
const tileOverlap = 0.25

// tiles says how a value is cut: the side of a tile and the step between tiles, at the input; the rows that are blended
// and the side of a tile, at the output.
type tiles struct{ size, step, blend, out int }

func (v *VAE) run(ctx context.Context, fn *engine.Function, x *tensor.Array, t tiles, tiling, slicing bool) (*tensor.Array, error) {
	x, err := x.Convert(v.Weights.DType)
	if err != nil {
		return nil, err
	}
	b := x.Shape[0]
	if !slicing || b == 1 {
		return v.runBatch(ctx, fn, x, t, tiling)
	}
	parts := make([]*tensor.Array, b)
	for i := range parts {
		if parts[i], err = v.runBatch(ctx, fn, rows(x, i, 1), t, tiling); err != nil {
			return nil, err
		}
	}
	return Stack(parts), nil
}

func (v *VAE) runBatch(ctx context.Context, fn *engine.Function, x *tensor.Array, t tiles, tiling bool) (*tensor.Array, error) {
	if tiling && (x.Shape[2] > t.size || x.Shape[3] > t.size) {
		return v.runTiled(ctx, fn, x, t)
	}
	return fn.Call(v.eng.Upload(x).Donate())[0].ReadContext(ctx)
}

// runTiled is AutoencoderKL's tiled_decode and tiled_encode: tiles are blended in place, first with the tile above, then
// with the one to the left, so later tiles blend against already blended ones.
func (v *VAE) runTiled(ctx context.Context, fn *engine.Function, z *tensor.Array, t tiles) (*tensor.Array, error) {
	limit := t.out - t.blend
	if t.step < 1 || limit < 1 {
		return nil, fmt.Errorf("vae: sample_size %d is too small for tiling", v.Config.SampleSize)
	}
	var above []*plane
	var out []*plane
	for y := 0; y < z.Shape[2]; y += t.step {
		var row, cut []*plane
		for x := 0; x < z.Shape[3]; x += t.step {
			a, err := fn.Call(v.eng.Upload(crop(z, y, x, t.size, t.size)).Donate())[0].ReadContext(ctx)
			if err != nil {
				return nil, err
			}
			p := newPlane(a)
			if above != nil {
				p.blendDown(above[len(row)], t.blend)
			}
			if len(row) > 0 {
				p.blendRight(row[len(row)-1], t.blend)
			}
			row = append(row, p)
			cut = append(cut, p.crop(limit, limit))
		}
		above = row
		out = append(out, joinRight(cut))
	}
	return joinDown(out).array(z.DType)
}

// crop copies z[:, :, y:y+h, x:x+w], clipped to its size.
func crop(z *tensor.Array, y, x, h, w int) *tensor.Array {
	n, hh, ww := z.Shape[0]*z.Shape[1], z.Shape[2], z.Shape[3]
	h, w = min(h, hh-y), min(w, ww-x)
	out := tensor.New(z.DType, z.Shape[0], z.Shape[1], h, w)
	s := z.DType.Size()
	for i := range n {
		for r := range h {
			src := ((i*hh+y+r)*ww + x) * s
			copy(out.Data[((i*h+r)*w)*s:][:w*s], z.Data[src:src+w*s])
		}
	}
	return out
}

// rows returns n elements of the first axis from i on, without copying.
func rows(a *tensor.Array, i, n int) *tensor.Array {
	size := len(a.Data) / a.Shape[0]
	s := a.Shape.Clone()
	s[0] = n
	return &tensor.Array{DType: a.DType, Shape: s, Data: a.Data[i*size : (i+n)*size]}
}

// Stack joins arrays of one type along the first axis.
func Stack(parts []*tensor.Array) *tensor.Array {
	s := parts[0].Shape.Clone()
	s[0] = 0
	for _, p := range parts {
		s[0] += p.Shape[0]
	}
	out := tensor.New(parts[0].DType, s...)
	at := 0
	for _, p := range parts {
		at += copy(out.Data[at:], p.Data)
	}
	return out
}

// RepeatEach repeats every element of the first axis n times in place: a, a, b, b ….
func RepeatEach(a *tensor.Array, n int) *tensor.Array {
	if n == 1 {
		return a
	}
	parts := make([]*tensor.Array, 0, a.Shape[0]*n)
	for i := range a.Shape[0] {
		for range n {
			parts = append(parts, rows(a, i, 1))
		}
	}
	return Stack(parts)
}

// Close frees the parameters.
func (v *VAE) Close() error { return v.Weights.Close() }
