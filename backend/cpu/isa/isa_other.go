//go:build !amd64 && !arm64

package isa

// Available lists the levels that this machine can run: only Portable here.
func Available() []Level { return []Level{Portable} }
