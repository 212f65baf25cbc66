//go:build !linux && !darwin && !freebsd

package weights

// dontNeed does nothing: the system takes pages of a mapping back when it needs them.
func dontNeed([]byte) {}
