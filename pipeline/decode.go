package pipeline

import (
	"fmt"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/vae"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
)

// VAE is the autoencoder as pipelines use it: on host arrays, with slicing and tiling.
type VAE struct {
	Config  vae.Config
	Weights *Weights
	decode  *engine.Function
	eng     *engine.Engine
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
	v.decode = o.Engine.Function("vae.decode", func(in []engine.Value) []engine.Value {
		return []engine.Value{m.Decode(in[0])}
	})
	return v, nil
}

// Unscale returns latents/scaling_factor + shift_factor, rounded to the latents' dtype after each operation.
func (v *VAE) Unscale(latents *tensor.Array) (*tensor.Array, error) {
	x := append([]float32(nil), latents.Float32s()...)
	scale, shift := float32(v.Config.ScalingFactor), float32(v.Config.Shift())
	for i, f := range x {
		x[i] = tensor.RoundTo(latents.DType, tensor.RoundTo(latents.DType, f/scale)+shift)
	}
	return tensor.FromFloat32(x, latents.Shape...).Convert(latents.DType)
}

// Decode takes latents (B, C, h, w), unscaled, to pictures (B, 3, H, W), not clamped. Slicing decodes one picture at a
// time. Tiling decodes large latents in overlapping tiles, whose borders are blended; the result differs slightly from
// that of the whole.
func (v *VAE) Decode(z *tensor.Array, tiling, slicing bool) (*tensor.Array, error) {
	z, err := z.Convert(v.Weights.DType)
	if err != nil {
		return nil, err
	}
	b := z.Shape[0]
	if !slicing || b == 1 {
		return v.decodeBatch(z, tiling)
	}
	parts := make([]*tensor.Array, b)
	for i := range parts {
		if parts[i], err = v.decodeBatch(rows(z, i, 1), tiling); err != nil {
			return nil, err
		}
	}
	return Stack(parts), nil
}

func (v *VAE) decodeBatch(z *tensor.Array, tiling bool) (*tensor.Array, error) {
	if tile := v.latentTile(); tiling && (z.Shape[2] > tile || z.Shape[3] > tile) {
		return v.decodeTiled(z)
	}
	return v.decode.Call(v.eng.Upload(z))[0].Read()
}

// tileOverlap is the share of a tile that overlaps its neighbour.
const tileOverlap = 0.25

// latentTile is the side of a tile, in latents.
func (v *VAE) latentTile() int { return v.Config.SampleSize / v.Config.Scale() }

// decodeTiled is AutoencoderKL.tiled_decode: tiles are blended in place, first with the tile above, then with the one to
// the left, so later tiles blend against already blended ones.
func (v *VAE) decodeTiled(z *tensor.Array) (*tensor.Array, error) {
	tile := v.latentTile()
	step := int(float64(tile) * (1 - tileOverlap))
	blend := int(float64(v.Config.SampleSize) * tileOverlap)
	limit := v.Config.SampleSize - blend
	if step < 1 || limit < 1 {
		return nil, fmt.Errorf("vae: sample_size %d is too small for tiling", v.Config.SampleSize)
	}
	var above []*plane
	var out []*plane
	for y := 0; y < z.Shape[2]; y += step {
		var row, cut []*plane
		for x := 0; x < z.Shape[3]; x += step {
			a, err := v.decode.Call(v.eng.Upload(crop(z, y, x, tile, tile)))[0].Read()
			if err != nil {
				return nil, err
			}
			p := newPlane(a)
			if above != nil {
				p.blendDown(above[len(row)], blend)
			}
			if len(row) > 0 {
				p.blendRight(row[len(row)-1], blend)
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

// plane is a decoded tile as float32 numbers that are rounded to the autoencoder's dtype.
type plane struct {
	b, c, h, w int
	dtype      tensor.DType
	v          []float32
}

func newPlane(a *tensor.Array) *plane {
	return &plane{a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3], a.DType, append([]float32(nil), a.Float32s()...)}
}

func (p *plane) at(i, y, x int) *float32 { return &p.v[(i*p.h+y)*p.w+x] }

// mix is a·(1-t) + b·t with a rounding after each operation.
func (p *plane) mix(a, b float32, k, n int) float32 {
	t := float64(k) / float64(n)
	x := tensor.RoundTo(p.dtype, a*float32(1-t))
	y := tensor.RoundTo(p.dtype, b*float32(t))
	return tensor.RoundTo(p.dtype, x+y)
}

// blendDown blends p's first rows with the last rows of the tile above.
func (p *plane) blendDown(above *plane, extent int) {
	n := min(above.h, p.h, extent)
	for i := range p.b * p.c {
		for y := range n {
			for x := range p.w {
				*p.at(i, y, x) = p.mix(*above.at(i, above.h-n+y, x), *p.at(i, y, x), y, n)
			}
		}
	}
}

// blendRight blends p's first columns with the last columns of the tile to the left.
func (p *plane) blendRight(left *plane, extent int) {
	n := min(left.w, p.w, extent)
	for i := range p.b * p.c {
		for y := range p.h {
			for x := range n {
				*p.at(i, y, x) = p.mix(*left.at(i, y, left.w-n+x), *p.at(i, y, x), x, n)
			}
		}
	}
}

func (p *plane) crop(h, w int) *plane {
	h, w = min(h, p.h), min(w, p.w)
	q := &plane{p.b, p.c, h, w, p.dtype, make([]float32, p.b*p.c*h*w)}
	for i := range p.b * p.c {
		for y := range h {
			copy(q.v[(i*h+y)*w:][:w], p.v[(i*p.h+y)*p.w:])
		}
	}
	return q
}

func joinRight(ps []*plane) *plane {
	q := &plane{b: ps[0].b, c: ps[0].c, h: ps[0].h, dtype: ps[0].dtype}
	for _, p := range ps {
		q.w += p.w
	}
	q.v = make([]float32, 0, q.b*q.c*q.h*q.w)
	for i := range q.b * q.c {
		for y := range q.h {
			for _, p := range ps {
				q.v = append(q.v, p.v[(i*p.h+y)*p.w:][:p.w]...)
			}
		}
	}
	return q
}

func joinDown(ps []*plane) *plane {
	q := &plane{b: ps[0].b, c: ps[0].c, w: ps[0].w, dtype: ps[0].dtype}
	for _, p := range ps {
		q.h += p.h
	}
	q.v = make([]float32, 0, q.b*q.c*q.h*q.w)
	for i := range q.b * q.c {
		for _, p := range ps {
			q.v = append(q.v, p.v[i*p.h*p.w:][:p.h*p.w]...)
		}
	}
	return q
}

func (p *plane) array(d tensor.DType) (*tensor.Array, error) {
	return tensor.FromFloat32(p.v, p.b, p.c, p.h, p.w).Convert(d)
}

// Close frees the parameters.
func (v *VAE) Close() error { return v.Weights.Close() }
