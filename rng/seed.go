package rng

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ParseSeed reads a decimal seed in PyTorch's range, -2^63 to 2^64-1. A negative one is its two's complement.
func ParseSeed(s string) (uint64, error) {
	u, err := strconv.ParseUint(s, 10, 64)
	if err == nil {
		return u, nil
	}
	if strings.HasPrefix(s, "-") {
		i, err := strconv.ParseInt(s, 10, 64)
		if err == nil {
			return uint64(i), nil
		}
	}
	return 0, fmt.Errorf("seed %q is not a whole number from -2^63 to 2^64-1", s)
}

// RandomSeed draws a seed for a user who gave none, from random or, when that is nil, from the operating system. It
// has 32 bits: no more take part in the sequence, and it stays short enough to be typed again.
func RandomSeed(random io.Reader) (uint64, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return 0, fmt.Errorf("draw a random seed: %w", err)
	}
	return uint64(binary.LittleEndian.Uint32(b[:])), nil
}
