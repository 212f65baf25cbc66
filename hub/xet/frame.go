package xet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pierrec/lz4/v4"
)

// decodeFrame decompresses an LZ4 frame that must hold exactly len(dst) bytes.
//
// The frames that the store holds have independent blocks and no checksums; those are decoded straight into dst. Any
// other legal frame goes through the library's general reader.
func decodeFrame(dst, src []byte) error {
	const plain = 0x60 // version 1, independent blocks, no block or content checksum, no size, no dictionary
	if len(src) < 7 || binary.LittleEndian.Uint32(src) != 0x184D2204 {
		return errors.New("no LZ4 frame")
	}
	if want, ok := plainHeader[src[5]]; src[4] != plain || !ok || src[6] != want {
		return decodeAnyFrame(dst, src)
	}
	out, rest := dst, src[7:]
	for {
		if len(rest) < 4 {
			return errors.New("LZ4 frame ends inside a block header")
		}
		word := binary.LittleEndian.Uint32(rest)
		rest = rest[4:]
		if word == 0 {
			break
		}
		n := int(word &^ (1 << 31))
		if n > len(rest) {
			return fmt.Errorf("LZ4 block of %d bytes, %d left in the frame", n, len(rest))
		}
		if word>>31 == 1 {
			if n > len(out) {
				return errors.New("LZ4 frame holds more than its chunk")
			}
			copy(out, rest[:n])
			out = out[n:]
		} else {
			m, err := lz4.UncompressBlock(rest[:n], out)
			if err != nil {
				return fmt.Errorf("LZ4 block: %w", err)
			}
			out = out[m:]
		}
		rest = rest[n:]
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes after the LZ4 frame", len(rest))
	}
	if len(out) != 0 {
		return fmt.Errorf("LZ4 frame holds %d bytes, expected %d", len(dst)-len(out), len(dst))
	}
	return nil
}

// plainHeader maps the block-size byte of a plain frame to its header checksum, the second byte of xxh32 over the two
// descriptor bytes.
var plainHeader = map[byte]byte{0x40: 0x82, 0x50: 0xfb, 0x60: 0x51, 0x70: 0x73}

func decodeAnyFrame(dst, src []byte) error {
	in := bytes.NewReader(src)
	r := lz4.NewReader(in)
	if n, err := io.ReadFull(r, dst); err != nil {
		return fmt.Errorf("LZ4 frame holds %d bytes, expected %d: %w", n, len(dst), err)
	}
	var more [1]byte
	if n, err := r.Read(more[:]); n != 0 || err != io.EOF {
		return fmt.Errorf("LZ4 frame holds more than %d bytes or is damaged at its end", len(dst))
	}
	return nil
}

// encodeFrame compresses src to a plain frame with 256 KiB blocks, as the official uploader does for large chunks.
func encodeFrame(src []byte) []byte {
	out := make([]byte, 7+4+lz4.CompressBlockBound(len(src))+4)
	copy(out, []byte{0x04, 0x22, 0x4D, 0x18, 0x60, 0x50, plainHeader[0x50]})
	n, err := lz4.CompressBlock(src, out[11:], nil)
	if err != nil || n == 0 || n >= len(src) {
		n = copy(out[11:], src)
		binary.LittleEndian.PutUint32(out[7:], uint32(n)|1<<31)
	} else {
		binary.LittleEndian.PutUint32(out[7:], uint32(n))
	}
	return append(out[:11+n], 0, 0, 0, 0)
}
