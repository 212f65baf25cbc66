// Package vec holds the vector primitives of the CPU backend: elementwise functions, conversions and row reductions
// over []float32 that lie in the first caches.
//
// The main type is [Funcs], the primitives of one instruction-set level:
//
//	f := vec.For(isa.Detect())
//	f.Exp(y, x)                   // y[i] = exp(x[i])
//	f.AddScalar(y, y, 1)          // a result may overwrite a source
//	f.Div(y, x, y)
//
// All levels compute the same bits: the kernels are generated from one description (folder gen), and sums have a fixed
// order (64 partial sums; element i belongs to partial sum i mod 64). A NaN is a NaN on every level, its payload is free.
//
// The number of elements is the length of dst (of x where there is no dst); sources may be longer, never shorter. Any
// length and alignment will do. Dst may be one of the sources but not overlap one otherwise. Nothing is allocated.
//
// Values of the half types are kept in float32: compute, then round with [Funcs.RoundBF16] or [Funcs.RoundF16], which
// is what an operation on a half type means.
package vec

//go:generate go run ./gen

import "github.com/gesso-go/gesso/backend/cpu/isa"

// Funcs are the primitives of one level.
type Funcs struct {
	level isa.Level
	k     kernels
}

// For returns the primitives of the given level. It must be one that this machine can run (isa.Available).
func For(level isa.Level) *Funcs {
	if f := native(level); f != nil {
		return f
	}
	return &goFuncs
}

var goFuncs = Funcs{level: isa.Portable, k: portable}

// Level returns the level of the kernels in use, which may be below the one asked for.
func (f *Funcs) Level() isa.Level { return f.level }
