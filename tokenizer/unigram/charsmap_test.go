package unigram

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"
)

// The wanted values are the SHA-256 of one line for each character below U+20000, made with tokenizers 0.23.3:
// normalizers.Precompiled with the map of the small vocabulary.
func TestNormalizeWithEveryCharacter(t *testing.T) {
	tok := small(t)
	for _, c := range []struct{ pattern, want string }{
		{"%s", "e64ad9ef8a95a91ba05c8f4a7d42301e4bca032168d3cf63481cbca3e42e5ac2"},
		{"\u00bd%s", "eba6042562dce354e55d9d3c2e3ff717f05110c851fc0a1273819c32035547d2"},
		{"e\u0301%s", "01187d2a83a7cdd95540e1cd4029c05e09d16e8ca69aa76b6b8fea99ec7d9541"},
		{"%s\u0301", "f5b39b02f41af5c0ec5c90af31ebc0d0c68ddee0f2a182fbcea00fba43924521"},
		{"%s\u00bd\u0301", "487a602da26436a9ec698c8e3f8124f88419d83a787cad8da08805e92b5e71fa"},
		{"\u2122\u0301%s", "62f5ece95f2d2887fe4dd64acdfa4418d06097a35e1dbaf2b0fe90f8691d4bb1"},
	} {
		before, after, _ := strings.Cut(c.pattern, "%s")
		var b strings.Builder
		for r := range rune(0x20000) {
			if utf8.ValidRune(r) {
				b.WriteString(tok.model.normalize(before + string(r) + after))
				b.WriteByte('\n')
			}
		}
		sum := sha256.Sum256([]byte(strings.TrimSuffix(b.String(), "\n")))
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("pattern %+q: hash %s, want %s", c.pattern, got, c.want)
		}
	}
}

// Clusters of at most five bytes are replaced as a whole, by what their shortest known beginning becomes.
func TestNormalizeClusters(t *testing.T) {
	tok := small(t)
	for in, want := range map[string]string{
		"plain ASCII":         "plain ASCII",
		"a\r\nb":              "a b", // one cluster
		"a\n\rb":              "a  b",
		"e\u0301":             "é",
		"e\u0301\u0323":       "é",                   // five bytes: the second mark is lost
		"e\u0301\u0323\u0302": "e\u0301\u0323\u0302", // seven: each character by itself
		"ﬁ½㎏":                 "fi1⁄2kg",
		"x\u200by\ufeffz":     "x y z",
		"a\x00b\x01":          "a\x00b", // a NUL ends the search, so it stays
	} {
		if got := tok.model.normalize(in); got != want {
			t.Errorf("normalize(%+q) = %+q, want %+q", in, got, want)
		}
	}
}
