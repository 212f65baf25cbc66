package xet

import (
	"fmt"
	"io"
)

// Chunk sizes in bytes, and the bits of the rolling hash that are all zero where a chunk ends (64 KiB on average).
const (
	MinChunk  = 8 << 10
	MaxChunk  = 128 << 10
	chunkMask = 0xFFFF_0000_0000_0000
)

// Cut returns the length of the first chunk of data. When data holds fewer than MaxChunk bytes and more may follow, ok
// is false if the chunk may go on: give more, or take all of data as the last chunk.
func Cut(data []byte) (n int, ok bool) {
	// The hash is a shift register of 64 bytes, and no chunk ends before MinChunk: what lies further ahead of that
	// point can't change any decision.
	const skip = MinChunk - 64 - 1
	if len(data) <= skip {
		return len(data), false
	}
	end := min(len(data), MaxChunk)
	var h uint64
	for _, b := range data[skip:min(MinChunk-1, end)] {
		h = h<<1 + gear[b]
	}
	for i := MinChunk - 1; i < end; i++ {
		h = h<<1 + gear[data[i]]
		if h&chunkMask == 0 {
			return i + 1, true
		}
	}
	return end, end == MaxChunk
}

// Chunks calls fn for each chunk of r in order. The slice is valid during the call only.
func Chunks(r io.Reader, fn func(chunk []byte) error) error {
	buf := make([]byte, 8*MaxChunk)
	have := 0
	for {
		n, err := io.ReadFull(r, buf[have:])
		have += n
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		rest := buf[:have]
		for len(rest) > 0 {
			n, ok := Cut(rest)
			if !ok && !last {
				break
			}
			if err := fn(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if last {
			return nil
		}
		have = copy(buf, rest)
	}
}

// Sum returns the Xet file hash of everything in r and its length in bytes.
func Sum(r io.Reader) (Hash, int64, error) {
	var tree Tree
	var size int64
	err := Chunks(r, func(chunk []byte) error {
		tree.Add(Leaf{Hash: HashChunk(chunk), Size: uint64(len(chunk))})
		size += int64(len(chunk))
		return nil
	})
	if err != nil {
		return Hash{}, size, fmt.Errorf("hash: %w", err)
	}
	return tree.FileHash(), size, nil
}
