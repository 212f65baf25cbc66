package isa

// Available lists the levels that this machine can run, lowest first: every arm64 processor has Advanced SIMD.
func Available() []Level { return []Level{Portable, NEON} }
