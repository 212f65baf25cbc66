//go:build !linux

package hub

// processStart isn't known here.
func processStart(int) string { return "-" }
