// Package rng is PyTorch's CPU random generator, bit for bit, so that a seed gives the latents that Diffusers gives.
//
// The main type is [Generator]:
//
//	g := rng.New(42)
//	latents, err := g.Randn(tensor.BF16, 1, 16, 128, 128)
//
// Values are those of a PyTorch build for x86-64 with AVX2 (every wheel on every such machine of the last ten years),
// and are the same on every platform that Gesso runs on. PyTorch itself differs by some units in the last place
// between x86-64 and ARM. Doubles are the exception: PyTorch takes their log, sin and cos from the C library of the
// machine, this package rounds correctly, and about one value in 600 is off by a unit or two in the last place. No
// pipeline draws doubles.
package rng

// Generator is torch.Generator("cpu"). It is not safe for concurrent use: the order of draws is the result.
type Generator struct {
	// LegacyHalf draws bf16 and f16 arrays of 16 and more elements as PyTorch did until 2.11: uniforms of 8 and 11
	// bits, and every operation rounded to the type. Off, they are float32 draws rounded once, as in PyTorch today.
	// The rule for bf16 is checked against PyTorch; that for f16 follows its source and is not.
	LegacyHalf bool

	seed   uint64
	engine mt19937

	// The double-precision Box–Muller transform makes two values; the second waits here for the next call.
	spare    float64
	hasSpare bool
}

// New returns a generator as after torch.Generator("cpu").manual_seed(seed). For a negative seed pass its two's
// complement, uint64(int64(-1)); [ParseSeed] does. Only the low 32 bits of the seed take part, as in PyTorch.
func New(seed uint64) *Generator {
	g := &Generator{seed: seed}
	g.engine.seed(seed)
	return g
}

// Seed returns the seed that the generator was made with.
func (g *Generator) Seed() uint64 { return g.seed }

// State is a moment of a generator's sequence.
type State struct{ g Generator }

// State returns the present moment; restoring it later repeats all draws from here.
func (g *Generator) State() State { return State{*g} }

// Restore takes the generator back to s, which may come from another generator.
func (g *Generator) Restore(s State) { *g = s.g }

// Clone returns an independent generator that will draw the same values.
func (g *Generator) Clone() *Generator {
	c := *g
	return &c
}
