//go:build !linux

package isa

// permitTiles: only Linux is known to hand out the state of tiles.
func permitTiles() bool { return false }
