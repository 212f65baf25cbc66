package isa

// Available lists the levels that this machine can run, lowest first. No kernel uses NEON yet, so it is not offered.
func Available() []Level { return []Level{Portable} }
