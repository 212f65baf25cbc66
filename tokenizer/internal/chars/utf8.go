// Package chars sees characters as Hugging Face's tokenizers 0.23 does. Its libraries follow Unicode 16 for regular
// expressions, Unicode 17 for case and Unicode 9 for normalisation, whereas Go's tables move with the toolchain; the
// few characters that differ are listed here.
package chars

import (
	"strings"
	"unicode/utf8"
)

// Valid replaces every maximal ill-formed sequence of bytes by U+FFFD, as the Unicode standard recommends (section
// 3.9, "substitution of maximal subparts") and Python's decoder does.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			size = illFormed(s)
		}
		b.WriteRune(r)
		s = s[size:]
	}
	return b.String()
}

// illFormed gives the length of the maximal ill-formed sequence at the start of s: the longest that begins a
// well-formed one, or a single byte.
func illFormed(s string) int {
	low, high, want := byte(0x80), byte(0xBF), 0
	switch c := s[0]; {
	case c >= 0xC2 && c <= 0xDF:
		want = 1
	case c == 0xE0:
		low, want = 0xA0, 2
	case c == 0xED:
		high, want = 0x9F, 2
	case c >= 0xE1 && c <= 0xEF:
		want = 2
	case c == 0xF0:
		low, want = 0x90, 3
	case c == 0xF4:
		high, want = 0x8F, 3
	case c >= 0xF1 && c <= 0xF3:
		want = 3
	}
	n := 1
	for ; n <= want && n < len(s) && s[n] >= low && s[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}
