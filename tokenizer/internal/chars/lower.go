package chars

import (
	"strings"
	"unicode"
)

// AppendLower writes a character's lower case as Rust's char::to_lowercase gives it: each character by itself, so a
// final sigma is like any other, and İ becomes two characters.
func AppendLower(b *strings.Builder, r rune) {
	switch {
	case r < 0x80:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		b.WriteByte(byte(r))
	case r == 'İ':
		b.WriteString("i\u0307")
	default:
		b.WriteRune(lower(r))
	}
}

func lower(r rune) rune {
	for _, c := range lower17 {
		if c.from <= r && r <= c.to && (r-c.from)%c.step == 0 {
			return r + c.delta
		}
	}
	return unicode.ToLower(r)
}

// lower17 are the pairs that Unicode 16 and 17 added.
var lower17 = []struct{ from, to, step, delta rune }{
	{0x1c89, 0x1c89, 1, 1},
	{0xa7cb, 0xa7cb, 1, 0x264 - 0xa7cb},
	{0xa7cc, 0xa7ce, 2, 1},
	{0xa7d2, 0xa7d4, 2, 1},
	{0xa7da, 0xa7da, 1, 1},
	{0xa7dc, 0xa7dc, 1, 0x19b - 0xa7dc},
	{0x10d50, 0x10d65, 1, 0x20},
	{0x16ea0, 0x16eb8, 1, 0x1b},
}
