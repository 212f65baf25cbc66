package chars

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// NFC composes a text canonically, as of Unicode 9. It differs from package norm for marks that are younger than that,
// and where more than 30 marks follow each other: norm then inserts U+034F to bound its buffers, which would add a
// token.
func NFC(s string) string {
	if plain(s) {
		return s
	}
	return string(compose(decompose(s)))
}

// plain tells whether s surely equals its composed form.
func plain(s string) bool {
	at := 0
	for at < len(s) && s[at] < 0x80 {
		at++
	}
	if at == len(s) {
		return true
	}
	for _, r := range s[at:] {
		if in(youngMarks, r) {
			return false
		}
	}
	return norm.NFC.IsNormalString(s)
}

type char struct {
	r   rune
	ccc uint8 // canonical combining class
}

// decompose gives the canonical decomposition of s in canonical order.
func decompose(s string) []char {
	out := make([]char, 0, len(s))
	start := 0 // of the marks that are not yet in order
	push := func(r rune, ccc uint8) {
		if ccc == 0 {
			sortMarks(out[start:])
			start = len(out) + 1
		}
		out = append(out, char{r, ccc})
	}
	var buf [utf8.UTFMax]byte
	for _, r := range s {
		switch {
		case r < 0x80:
			push(r, 0)
		case hangulBase <= r && r < hangulEnd:
			i := r - hangulBase
			push(jamoL+i/jamoNCount, 0)
			push(jamoV+i%jamoNCount/jamoTCount, 0)
			if t := i % jamoTCount; t != 0 {
				push(jamoT+t, 0)
			}
		case in(youngMarks, r) || in(youngComposites, r):
			push(r, 0)
		default:
			p := norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)])
			parts := p.Decomposition()
			if parts == nil {
				push(r, p.CCC())
				continue
			}
			for len(parts) > 0 {
				q := norm.NFD.Properties(parts)
				part, size := utf8.DecodeRune(parts)
				push(part, q.CCC())
				parts = parts[size:]
			}
		}
	}
	sortMarks(out[start:])
	return out
}

func sortMarks(marks []char) {
	if len(marks) > 1 {
		slices.SortStableFunc(marks, func(a, b char) int { return int(a.ccc) - int(b.ccc) })
	}
}

// compose joins each starter with the marks, or the starter, after it that nothing blocks from it.
func compose(in []char) []rune {
	out := make([]rune, 0, len(in))
	starter := -1 // place in out of the last starter
	highest := -1 // class of the last mark kept after it, -1 directly after it
	for _, c := range in {
		if starter >= 0 && highest < int(c.ccc) {
			if joined, ok := pair(out[starter], c.r); ok {
				out[starter] = joined
				continue
			}
		}
		if c.ccc == 0 {
			starter, highest = len(out), -1
		} else {
			highest = int(c.ccc)
		}
		out = append(out, c.r)
	}
	return out
}

const (
	hangulBase, hangulEnd  = 0xAC00, 0xD7A4
	jamoL, jamoV, jamoT    = 0x1100, 0x1161, 0x11A7
	jamoLCount, jamoVCount = 19, 21
	jamoTCount             = 28
	jamoNCount             = jamoVCount * jamoTCount
)

// pair gives the composition of two characters, if they have one.
func pair(a, b rune) (rune, bool) {
	if jamoL <= a && a < jamoL+jamoLCount && jamoV <= b && b < jamoV+jamoVCount {
		return hangulBase + (a-jamoL)*jamoNCount + (b-jamoV)*jamoTCount, true
	}
	if hangulBase <= a && a < hangulEnd && (a-hangulBase)%jamoTCount == 0 && jamoT < b && b < jamoT+jamoTCount {
		return a + b - jamoT, true
	}
	if b < 0x300 { // no composition ends with an earlier character
		return 0, false
	}
	var buf [2 * utf8.UTFMax]byte
	text := utf8.AppendRune(utf8.AppendRune(buf[:0], a), b)
	composed := norm.NFC.Bytes(text)
	r, size := utf8.DecodeRune(composed)
	return r, size == len(composed) && !in(youngComposites, r)
}

// youngMarks got a combining class after Unicode 9; before that they keep their place, like letters.
var youngMarks = [][2]rune{
	{0x05c8, 0x05c9}, {0x07fd, 0x07fd}, {0x0897, 0x089f}, {0x08ca, 0x08d3}, {0x09fe, 0x09fe}, {0x0c3c, 0x0c3c},
	{0x0d3b, 0x0d3c}, {0x0eba, 0x0eba}, {0x1715, 0x1715}, {0x1abf, 0x1af0}, {0x1df6, 0x1dfa}, {0xa82c, 0xa82c},
	{0x10d24, 0x10d27}, {0x10d69, 0x10d6d}, {0x10eab, 0x10eac}, {0x10ecb, 0x10ecf}, {0x10ef0, 0x10efb},
	{0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b},
	{0x113ce, 0x113d0}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x1193d, 0x1193e}, {0x11943, 0x11943},
	{0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
	{0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x1612f, 0x1612f}, {0x16ff0, 0x16ff1},
	{0x1d127, 0x1d128}, {0x1d250, 0x1d252}, {0x1d25b, 0x1d25c}, {0x1d25f, 0x1d25f}, {0x1d280, 0x1d281},
	{0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
	{0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6}, {0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5},
}

// youngComposites are the characters with a canonical decomposition that are younger than Unicode 9.
var youngComposites = [][2]rune{
	{0x105c9, 0x105c9}, {0x105e4, 0x105e4}, {0x11383, 0x11383}, {0x11385, 0x11385}, {0x1138e, 0x1138e},
	{0x11391, 0x11391}, {0x113c5, 0x113c5}, {0x113c7, 0x113c8}, {0x11938, 0x11938}, {0x16121, 0x16128},
	{0x16d68, 0x16d6a},
}
