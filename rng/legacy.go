package rng

import (
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// fillLegacyHalf draws len(out) >= block values of a half type as PyTorch did until 2.11: the generic template with
// the half type as its scalar, so the uniforms have 8 (bf16) or 11 (f16) bits and every operation rounds to the type.
// No bf16 value lies beyond ±3.33 (pytorch#166853).
func (g *Generator) fillLegacyHalf(out []uint16, d tensor.DType) {
	bits := 8
	if d == tensor.F16 {
		bits = 11
	}
	uniform := func() float32 {
		return float32(g.engine.uint32()&(1<<bits-1)) / float32(int(1)<<bits)
	}
	n := len(out)
	u := make([]float32, n)
	for i := range u {
		u[i] = uniform()
	}
	for i := 0; i+block <= n; i += block {
		boxMullerHalf((*[block]float32)(u[i:]), d)
	}
	if n%block != 0 {
		tail := (*[block]float32)(u[n-block:])
		for i := range tail {
			tail[i] = uniform()
		}
		boxMullerHalf(tail, d)
	}
	round := narrow(d)
	for i, v := range u {
		out[i] = round(v)
	}
}

// boxMullerHalf is boxMuller64 on values of a half type, held as float32.
func boxMullerHalf(u *[block]float32, d tensor.DType) {
	round := func(f float64) float32 { return tensor.RoundTo(d, float32(f)) }
	for j := range block / 2 {
		u1 := round(float64(1 - u[j]))
		r := round(math.Log(float64(u1)))
		r = round(float64(-2 * r))
		r = round(math.Sqrt(float64(r)))
		theta := float64(round(2 * math.Pi * float64(u[j+8])))
		u[j] = round(float64(r*round(math.Cos(theta)))) + 0
		u[j+8] = round(float64(r*round(math.Sin(theta)))) + 0
	}
}
