package xet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Scheme is how a chunk's bytes are stored.
type Scheme uint8

const (
	Stored     Scheme = iota // as they are
	LZ4                      // one LZ4 frame
	GroupedLZ4               // bytes sorted by their position modulo four, then one LZ4 frame
)

// chunkHeader is the size of a chunk's header: version 0, 24-bit stored size, scheme, 24-bit size of the bytes.
const chunkHeader = 8

// maxStored bounds the stored size: LZ4 can grow what it can't shrink, but never to twice its size.
const maxStored = 2 * MaxChunk

// footerTag begins the optional part after the last chunk of a xorb.
const footerTag = "XETBLOB"

// A ChunkReader reads the chunks of a xorb, or of a byte range of one that begins and ends at chunks.
type ChunkReader struct {
	r       *bufio.Reader
	stored  []byte
	grouped []byte
	chunk   []byte
}

// Reset makes the reader read from r and keeps its buffers.
func (c *ChunkReader) Reset(r io.Reader) {
	if c.r == nil {
		c.r = bufio.NewReaderSize(r, 64<<10)
		return
	}
	c.r.Reset(r)
}

// Next returns the bytes of the next chunk, valid until the next call. It returns io.EOF after the last chunk, whether
// the stream ends there or goes on with a footer.
func (c *ChunkReader) Next() ([]byte, error) {
	head, err := c.r.Peek(chunkHeader)
	if len(head) == 0 && err == io.EOF {
		return nil, io.EOF
	}
	if len(head) >= len(footerTag) && string(head[:len(footerTag)]) == footerTag {
		return nil, io.EOF
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("chunk header: %w", err)
	}
	h, err := parseHeader(head)
	if err != nil {
		return nil, err
	}
	c.r.Discard(chunkHeader)
	c.chunk = grow(c.chunk, h.size)
	if h.scheme == Stored {
		err = readFull(c.r, c.chunk)
	} else {
		c.stored = grow(c.stored, h.stored)
		if err = readFull(c.r, c.stored); err == nil {
			c.grouped = grow(c.grouped, h.size)
			err = decodePayload(c.chunk, c.grouped, c.stored, h.scheme)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("chunk of %d bytes: %w", h.size, err)
	}
	return c.chunk, nil
}

func readFull(r io.Reader, p []byte) error {
	_, err := io.ReadFull(r, p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func grow(p []byte, n int) []byte {
	if cap(p) < n {
		return make([]byte, n, max(n, MaxChunk))
	}
	return p[:n]
}

type header struct {
	stored, size int
	scheme       Scheme
}

func parseHeader(b []byte) (header, error) {
	word := binary.LittleEndian.Uint64(b)
	h := header{stored: int(word >> 8 & 0xFFFFFF), scheme: Scheme(word >> 32 & 0xFF), size: int(word >> 40)}
	switch {
	case b[0] != 0:
		return h, fmt.Errorf("chunk version %d, expected 0", b[0])
	case h.scheme > GroupedLZ4:
		return h, fmt.Errorf("chunk compression scheme %d is unknown", h.scheme)
	case h.size > MaxChunk:
		return h, fmt.Errorf("chunk of %d bytes, at most %d are allowed", h.size, MaxChunk)
	case h.stored > maxStored:
		return h, fmt.Errorf("stored chunk of %d bytes, at most %d are allowed", h.stored, maxStored)
	case h.scheme == Stored && h.stored != h.size:
		return h, fmt.Errorf("stored chunk of %d bytes, expected %d", h.stored, h.size)
	}
	return h, nil
}

// decodePayload fills dst from a compressed payload; scratch has dst's length.
func decodePayload(dst, scratch, payload []byte, scheme Scheme) error {
	if scheme == LZ4 {
		return decodeFrame(dst, payload)
	}
	if err := decodeFrame(scratch, payload); err != nil {
		return err
	}
	ungroup(dst, scratch)
	return nil
}

// AppendChunk appends the chunk in the given scheme, or as it is if that doesn't shrink it.
func AppendChunk(dst, chunk []byte, scheme Scheme) ([]byte, error) {
	if len(chunk) > MaxChunk {
		return dst, errors.New("chunk too large")
	}
	payload := chunk
	switch scheme {
	case Stored:
	case LZ4:
		payload = encodeFrame(chunk)
	case GroupedLZ4:
		g := make([]byte, len(chunk))
		group(g, chunk)
		payload = encodeFrame(g)
	default:
		return dst, fmt.Errorf("chunk compression scheme %d is unknown", scheme)
	}
	if len(payload) >= len(chunk) {
		payload, scheme = chunk, Stored
	}
	var head [chunkHeader]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(payload))<<8|uint64(scheme)<<32|uint64(len(chunk))<<40)
	return append(append(dst, head[:]...), payload...), nil
}

// ReadXorb decodes a whole xorb and returns its hash with the sizes and hashes of its chunks. The xorb's name must be
// this hash.
func ReadXorb(data []byte) (Hash, []Leaf, error) {
	var tree Tree
	var leaves []Leaf
	var r ChunkReader
	r.Reset(bytes.NewReader(data))
	for {
		chunk, err := r.Next()
		if err == io.EOF {
			return tree.Root(), leaves, nil
		}
		if err != nil {
			return Hash{}, nil, fmt.Errorf("xorb chunk %d: %w", len(leaves), err)
		}
		leaf := Leaf{Hash: HashChunk(chunk), Size: uint64(len(chunk))}
		tree.Add(leaf)
		leaves = append(leaves, leaf)
	}
}
