package peak

import (
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// chains is how many independent sums the assembly loops keep: more than latency times throughput anywhere.
const chains = 12

func choose(level isa.Level, d tensor.DType) loop {
	fma512 := loop{chains * 16 * 2, fma512}
	switch {
	case level >= isa.AMX && d == tensor.I8:
		return amxLoop(1, amxI8)
	case level >= isa.AMX && d == tensor.BF16:
		return amxLoop(0.5, amxBF16)
	case level >= isa.AVX512BF16 && d == tensor.I8:
		return loop{chains * 64 * 2, int8512}
	case level >= isa.AVX512BF16 && d == tensor.BF16:
		return loop{chains * 32 * 2, bf16512}
	case level >= isa.AVX512:
		return fma512
	case level >= isa.AVX2:
		return loop{chains * 8 * 2, fma256}
	}
	return loop{portableFlops, portable}
}

//go:noescape
func fma512(rounds int)

//go:noescape
func fma256(rounds int)

//go:noescape
func bf16512(rounds int)

//go:noescape
func int8512(rounds int)
