package isa

import "golang.org/x/sys/cpu"

// Available lists the levels that this machine can run, lowest first; Portable is always among them. That the operating
// system saves the wide registers is part of what package cpu looks at.
func Available() []Level {
	x := cpu.X86
	levels := []Level{Portable}
	if !x.HasAVX2 || !x.HasFMA || !x.HasF16C {
		return levels
	}
	levels = append(levels, AVX2)
	if !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL || !x.HasBMI2 {
		return levels
	}
	levels = append(levels, AVX512)
	if x.HasAVX512BF16 && x.HasAVX512VNNI {
		levels = append(levels, AVX512BF16)
		if hasAMX() {
			levels = append(levels, AMX)
		}
	}
	return levels
}
