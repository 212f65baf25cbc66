// Package isa says which instruction sets the CPU kernels may use.
//
// [Detect] looks at the processor once; the environment variable GESSO_CPU_ISA forces a lower level, for tests and bug
// reports. A level includes all below it on the same architecture.
package isa

import (
	"fmt"
	"strings"
)

// Level is an instruction-set level, in the order of preference on its architecture.
type Level int

const (
	Portable   Level = iota // plain Go
	NEON                    // arm64 Advanced SIMD
	AVX2                    // amd64 AVX2, FMA, F16C
	AVX512                  // amd64 AVX2 with AVX-512 F, BW, DQ, VL and BMI2
	AVX512BF16              // AVX512 with VDPBF16PS and VNNI
	AMX                     // AVX512BF16 with bf16 and int8 tiles, permitted by the operating system
)

var names = []string{"portable", "neon", "avx2", "avx512", "avx512bf16", "amx"}

// String returns the name that GESSO_CPU_ISA takes.
func (l Level) String() string {
	if l >= 0 && int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("isa(%d)", int(l))
}

// Parse returns the level with the given name.
func Parse(name string) (Level, error) {
	for i, n := range names {
		if strings.EqualFold(n, name) {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("unknown instruction set %q (known: %s)", name, strings.Join(names, ", "))
}

// Detect returns the highest level that this processor and operating system offer.
func Detect() Level {
	levels := Available()
	return levels[len(levels)-1]
}

// Choose returns the level to use: the detected one, or the one that force names (the value of GESSO_CPU_ISA; empty
// means none). A level that this machine lacks is an error.
func Choose(force string) (Level, error) {
	if force == "" {
		return Detect(), nil
	}
	want, err := Parse(force)
	if err != nil {
		return 0, fmt.Errorf("GESSO_CPU_ISA: %w", err)
	}
	for _, l := range Available() {
		if l == want {
			return want, nil
		}
	}
	return 0, fmt.Errorf("GESSO_CPU_ISA: this machine has no %s (it has %v)", want, Available())
}
