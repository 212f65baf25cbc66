package pipeline

import (
	"errors"
	"fmt"
	"math"

	"github.com/gesso-go/gesso/imageio"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

// MaxSide is the largest height or width of a picture, in pixels. Attention grows with its fourth power.
const MaxSide = 16384

// CheckSize checks a picture's size, in pixels, against the smallest that the model can make and MaxSide.
func CheckSize(height, width, smallest int) error {
	for _, s := range []struct {
		what string
		v    int
	}{{"height", height}, {"width", width}} {
		if s.v < smallest || s.v > MaxSide {
			return fmt.Errorf("%s must be from %d to %d, got %d", s.what, smallest, MaxSide, s.v)
		}
	}
	return nil
}

// CheckSteps sets the number of steps from custom sigmas or timesteps, or its default, and checks them.
func CheckSteps(q *Request, def int) error {
	if q.Sigmas != nil && q.Timesteps != nil {
		return errors.New("give either sigmas or timesteps, not both")
	}
	for _, c := range []struct {
		what string
		v    []float64
	}{{"sigmas", q.Sigmas}, {"timesteps", q.Timesteps}} {
		if c.v == nil {
			continue
		}
		if len(c.v) == 0 {
			return fmt.Errorf("%s must not be empty", c.what)
		}
		for _, x := range c.v {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("%s must be finite, got %g", c.what, x)
			}
		}
		q.Steps = len(c.v) // as in Diffusers, their number wins
	}
	q.Steps = DefaultInt(q.Steps, def)
	if q.Steps < 1 || q.Steps > MaxSteps {
		return fmt.Errorf("steps must be from 1 to %d, got %d", MaxSteps, q.Steps)
	}
	return nil
}

// CheckScales returns an error unless guidance and true_cfg_scale are finite, in f32 as well.
func CheckScales(q *Request) error {
	scales := map[string]float64{"true_cfg_scale": q.TrueCFGScale}
	if q.Guidance != nil {
		scales["guidance"] = *q.Guidance
	}
	for what, v := range scales {
		if math.IsNaN(v) || math.IsInf(float64(float32(v)), 0) {
			return fmt.Errorf("%s must be finite, got %g", what, v)
		}
	}
	return nil
}

// MaxSteps is the number of timesteps that models are trained on.
const MaxSteps = 1000

// DefaultInt returns v, or def where v is 0.
func DefaultInt(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// Default returns v, or def where v is empty.
func Default(v, def []string) []string {
	if len(v) == 0 {
		return def
	}
	return v
}

// Spread returns one text per prompt from one text for all.
func Spread(v []string, n int) []string {
	if len(v) != 1 || n == 1 {
		return v
	}
	out := make([]string, n)
	for i := range out {
		out[i] = v[0]
	}
	return out
}

// Generators returns where the noise of a batch comes from, and the seed of each picture: one generator a picture, or
// one for all if the request brings it.
func Generators(q *Request, batch int) ([]*rng.Generator, []uint64, error) {
	if q.Generator != nil {
		if q.Seeds != nil {
			return nil, nil, errors.New("give either seeds or a generator, not both")
		}
		return []*rng.Generator{q.Generator}, nil, nil
	}
	seeds := q.Seeds
	if seeds == nil {
		first, err := rng.RandomSeed(nil)
		if err != nil {
			return nil, nil, err
		}
		seeds = SeedsFrom(first, batch)
	}
	if len(seeds) != batch {
		return nil, nil, fmt.Errorf("%d seeds for %d pictures", len(seeds), batch)
	}
	gens := make([]*rng.Generator, batch)
	for i, s := range seeds {
		gens[i] = rng.New(s)
	}
	if q.Latents != nil {
		seeds = nil
	}
	return gens, seeds, nil
}

// SeedsFrom returns n seeds, counting up from the first and wrapping at 2^64.
func SeedsFrom(first uint64, n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

// Guide returns neg + scale·(pos - neg), rounded to the arrays' dtype after each operation.
func Guide(pos, neg *tensor.Array, scale float64) (*tensor.Array, error) {
	d := pos.DType
	if !pos.Shape.Equal(neg.Shape) || neg.DType != d {
		return nil, fmt.Errorf("guidance between %v and %v", pos, neg)
	}
	p, n := pos.Float32s(), neg.Float32s()
	out := make([]float32, len(p))
	s := float32(scale)
	for i := range out {
		diff := tensor.RoundTo(d, p[i]-n[i])
		out[i] = tensor.RoundTo(d, n[i]+tensor.RoundTo(d, s*diff))
	}
	return tensor.FromFloat32(out, pos.Shape...).Convert(d)
}

// Finish makes the decoded picture x (B, 3, H, W), in [-1, 1], what the request wants.
func (r *Run) Finish(x *tensor.Array) error {
	if r.Request.Output == OutputArray {
		a, err := toArray(x)
		r.Result.Array = a
		return err
	}
	pixels, err := imageio.Quantize(x, imageio.Convention{})
	if err != nil {
		return err
	}
	r.Result.Images, err = imageio.Images(pixels)
	return err
}

// toArray takes a decoded picture to (B, H, W, 3) in f32, in [0, 1].
func toArray(x *tensor.Array) (*tensor.Array, error) {
	a, err := imageio.Denormalize(x)
	if err != nil {
		return nil, err
	}
	b, c, h, w := a.Shape[0], a.Shape[1], a.Shape[2], a.Shape[3]
	src := a.Float32s()
	out := tensor.New(tensor.F32, b, h, w, c)
	dst := out.Float32s()
	for i := range b {
		for ch := range c {
			for p := range h * w {
				dst[(i*h*w+p)*c+ch] = src[(i*c+ch)*h*w+p]
			}
		}
	}
	return out, nil
}
