package rng

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// block is the width of PyTorch's vectorised fill: arrays of fewer elements are drawn one by one.
const block = 16

// Randn draws a standard normal array like torch.randn(shape, generator=g, dtype=d). The type is F32, F64, BF16 or F16.
// The values depend on the type, and a large array does not begin with the values of a smaller one: pass the whole
// shape at once.
// Source: at::native::templates::cpu::normal_fill (ATen/native/cpu/DistributionTemplates.h).
func (g *Generator) Randn(d tensor.DType, shape ...int) (*tensor.Array, error) {
	if d != tensor.F32 && d != tensor.F64 && !d.IsHalf() {
		return nil, fmt.Errorf("draw normal numbers: dtype %s is not one of f32, f64, bf16, f16", d)
	}
	if err := tensor.Shape(shape).Check(); err != nil {
		return nil, fmt.Errorf("draw normal numbers: %w", err)
	}
	a := tensor.New(d, shape...)
	n := a.Shape.Size()
	if n < block {
		g.fillSmall(a, n)
		return a, nil
	}
	switch {
	case d == tensor.F32:
		g.fill32(tensor.View[float32](a.Data))
	case d == tensor.F64:
		g.fill64(tensor.View[float64](a.Data))
	case g.LegacyHalf:
		g.fillLegacyHalf(tensor.View[uint16](a.Data), d)
	default:
		g.fillHalf(tensor.View[uint16](a.Data), narrow(d))
	}
	return a, nil
}

// narrow returns the rounding from float32 to a half type.
func narrow(d tensor.DType) func(float32) uint16 {
	if d == tensor.BF16 {
		return tensor.Float32ToBF16
	}
	return tensor.Float32ToF16
}

// fillSmall draws n < block elements one by one in double precision.
func (g *Generator) fillSmall(a *tensor.Array, n int) {
	for i := range n {
		v := g.normal()
		switch a.DType {
		case tensor.F64:
			tensor.View[float64](a.Data)[i] = v
		case tensor.F32:
			tensor.View[float32](a.Data)[i] = float32(v)
		default:
			tensor.View[uint16](a.Data)[i] = narrow(a.DType)(float32(v))
		}
	}
}

// normal draws one value by the Box–Muller transform in double precision. Its second value is kept for the next call,
// across arrays; only this path uses it.
// Source: at::normal_distribution<double> (ATen/core/DistributionsHelper.h).
func (g *Generator) normal() float64 {
	if g.hasSpare {
		g.hasSpare = false
		return g.spare
	}
	u1 := g.engine.uniform53()
	u2 := g.engine.uniform53()
	r := math.Sqrt(-2 * ln(1-u2)) // log1p(-u2): 1-u2 is exact
	sin, cos := sincos(2 * math.Pi * u1)
	g.spare, g.hasSpare = r*sin+0, true
	return r*cos + 0
}

// fill32 draws len(out) >= block values: uniforms first, each block of 16 then transformed in place. A ragged tail
// draws fresh uniforms for the last 16 positions and writes over what the full blocks left there.
func (g *Generator) fill32(out []float32) {
	for i := range out {
		out[i] = g.engine.uniform24()
	}
	n := len(out)
	for i := 0; i+block <= n; i += block {
		boxMuller32((*[block]float32)(out[i:]))
	}
	if n%block != 0 {
		tail := (*[block]float32)(out[n-block:])
		for i := range tail {
			tail[i] = g.engine.uniform24()
		}
		boxMuller32(tail)
	}
}

// fillHalf is fill32 rounded to a half type. Unlike fill32 it draws no uniforms for the ragged tail that the last
// 16 positions would overwrite, so from there on the two sequences differ.
func (g *Generator) fillHalf(out []uint16, round func(float32) uint16) {
	n := len(out)
	for i := 0; i < n; i += block {
		var b [block]float32
		for j := range b {
			b[j] = g.engine.uniform24()
		}
		boxMuller32(&b)
		at := min(i, n-block)
		for j, v := range b {
			out[at+j] = round(v)
		}
	}
}

// fill64 is fill32 in double precision.
func (g *Generator) fill64(out []float64) {
	for i := range out {
		out[i] = g.engine.uniform53()
	}
	n := len(out)
	for i := 0; i+block <= n; i += block {
		boxMuller64((*[block]float64)(out[i:]))
	}
	if n%block != 0 {
		tail := (*[block]float64)(out[n-block:])
		for i := range tail {
			tail[i] = g.engine.uniform53()
		}
		boxMuller64(tail)
	}
}

// boxMuller64 turns 16 uniforms into 16 normals; value j is paired with value j+8.
func boxMuller64(d *[block]float64) {
	for j := range block / 2 {
		r := math.Sqrt(-2 * ln(1-d[j]))
		sin, cos := sincos(2 * math.Pi * d[j+8])
		// Adding the mean of zero turns -0 into 0, as PyTorch's x*std + mean does.
		d[j] = r*cos + 0
		d[j+8] = r*sin + 0
	}
}
