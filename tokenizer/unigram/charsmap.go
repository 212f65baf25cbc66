package unigram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsmap is SentencePiece's precompiled normalisation: a double-array trie (Darts) of the sequences to replace, and
// the texts that replace them, each ending with a NUL.
type charsmap struct {
	trie  []uint32
	texts string
	ascii [0x80]string // what each ASCII character becomes
}

var errShort = errors.New("truncated: want 4 bytes of size, the trie, and the replacements")

// newCharsmap reads the blob: the trie's size in bytes, little-endian, the trie, the replacements.
func newCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) < 4 {
		return nil, errShort
	}
	size := int64(binary.LittleEndian.Uint32(blob))
	rest := blob[4:]
	if size > int64(len(rest)) {
		return nil, errShort
	}
	if size == 0 || size%4 != 0 {
		return nil, fmt.Errorf("want a trie of whole 4-byte units, got %d bytes", size)
	}
	if !utf8.Valid(rest[size:]) {
		return nil, errors.New("want UTF-8 replacements")
	}
	c := &charsmap{trie: make([]uint32, size/4), texts: string(rest[size:])}
	for i := range c.trie {
		c.trie[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	for b := range c.ascii {
		s := string(rune(b))
		if text, ok := c.replacement(s); ok {
			s = text
		}
		c.ascii[b] = s
	}
	return c, nil
}

// offset, leaf, label and value read a unit as Darts-clone packs it.
func offset(unit uint32) uint32 { return unit >> 10 << (unit >> 9 & 1 << 3) }
func leaf(unit uint32) bool     { return unit>>8&1 == 1 }
func label(unit uint32) uint32  { return unit & (1<<31 | 0xFF) }
func value(unit uint32) uint32  { return unit & (1<<31 - 1) }

// replacement gives what stands for s: the text of the shortest sequence in the trie that s starts with. Taking the
// shortest, and for the whole of s, is what Transformers' library does.
func (c *charsmap) replacement(s string) (string, bool) {
	at := offset(c.trie[0])
	for i := range len(s) {
		b := uint32(s[i])
		at ^= b
		if b == 0 || int64(at) >= int64(len(c.trie)) {
			return "", false
		}
		unit := c.trie[at]
		if label(unit) != b {
			return "", false
		}
		at ^= offset(unit)
		if !leaf(unit) {
			continue
		}
		if int64(at) >= int64(len(c.trie)) {
			return "", false
		}
		start := int(value(c.trie[at]))
		if start > len(c.texts) {
			return "", false
		}
		text, _, _ := strings.Cut(c.texts[start:], "\x00")
		return text, true
	}
	return "", false
}

// cluster is how many bytes a grapheme cluster may have, at most, to be replaced as a whole.
const cluster = 5

// normalize replaces grapheme clusters that are short enough, and the characters of all others one by one.
func (c *charsmap) normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	shape := shape(s)
	for i := 0; i < len(s); {
		// An ASCII character before another one is a cluster by itself, unless it is a line end.
		if s[i] < 0x80 && s[i] != '\r' && (i+1 == len(s) || s[i+1] < 0x80) {
			b.WriteString(c.ascii[s[i]])
			i++
			continue
		}
		found, _, _, _ := uniseg.FirstGraphemeClusterInString(shape[i:], -1)
		group := s[i : i+len(found)]
		i += len(group)
		if len(group) <= cluster {
			if text, ok := c.replacement(group); ok {
				b.WriteString(text)
				continue
			}
		}
		for len(group) > 0 {
			_, size := utf8.DecodeRuneInString(group)
			text, ok := c.replacement(group[:size])
			if !ok {
				text = group[:size]
			}
			b.WriteString(text)
			group = group[size:]
		}
	}
	return b.String()
}
