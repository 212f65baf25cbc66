package unigram

import (
	"strings"
	"unicode/utf8"
)

// Package uniseg knows the grapheme clusters of Unicode 15, the reference those of Unicode 17. The characters that
// differ are shown to uniseg as ones that it knows, of the same length and with the right property.
const (
	extend3 = '\u20D0'     // a mark of three bytes
	extend4 = '\U0001D167' // a mark of four bytes
	prepend = '\U000110BD' // a sign of four bytes that joins with what follows
	plain   = '\U00010000' // a letter of four bytes
)

// youngMarks are the combining marks and spacing signs of Unicode 16 and 17.
var youngMarks = [][2]rune{
	{0x0897, 0x0897}, {0x1acf, 0x1add}, {0x1ae0, 0x1aeb}, {0x10d69, 0x10d6d}, {0x10efa, 0x10efc}, {0x113b8, 0x113c0},
	{0x113c2, 0x113c2}, {0x113c5, 0x113c5}, {0x113c7, 0x113ca}, {0x113cc, 0x113d0}, {0x113d2, 0x113d2}, {0x113e1, 0x113e2},
	{0x11b60, 0x11b67}, {0x11f5a, 0x11f5a}, {0x1611e, 0x1612f}, {0x1e5ee, 0x1e5ef}, {0x1e6e3, 0x1e6e3}, {0x1e6e6, 0x1e6e6},
	{0x1e6ee, 0x1e6ef}, {0x1e6f5, 0x1e6f5},
}

// shape gives a text with the same clusters, of the same lengths, as s, which uniseg finds right. It is mostly s.
func shape(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return shapeOf(r) != r }) < 0 {
		return s
	}
	return strings.Map(shapeOf, s)
}

func shapeOf(r rune) rune {
	switch {
	case r < youngMarks[0][0]:
	case r == '\U000113D1':
		return prepend
	case r == '\U00011A3A': // a prefix in Unicode 15 only
		return plain
	case isYoungMark(r) && utf8.RuneLen(r) == 3:
		return extend3
	case isYoungMark(r):
		return extend4
	}
	return r
}

func isYoungMark(r rune) bool {
	for _, m := range youngMarks {
		if r <= m[1] {
			return r >= m[0]
		}
	}
	return false
}
