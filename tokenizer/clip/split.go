package clip

import (
	"strings"
	"unicode/utf8"

	"github.com/gesso-go/gesso/tokenizer/internal/chars"
)

// normalize composes a text canonically, makes one space of every run of white space and lowers the case.
func normalize(s string) string {
	s = chars.NFC(s)
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if chars.ClassOf(r) == chars.Space {
			if !space {
				b.WriteByte(' ')
			}
			space = true
			continue
		}
		space = false
		chars.AppendLower(&b, r)
	}
	return b.String()
}

// splitter cuts a normalised text into words, as CLIPTokenizer's two expressions do one after the other:
//
//	<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// The second one changes nothing but the two special names, which it cuts in three. They are told from other text by
// the first only to keep their brackets apart from punctuation beside them.
type splitter struct {
	word string // the current word, never empty
	rest string
	cut  []string // words of a special name that are still to come
}

func newSplitter(text string) *splitter { return &splitter{rest: text} }

var specialNames = []struct {
	name  string
	parts []string
}{
	{"<|startoftext|>", []string{"<|", "startoftext", "|>"}},
	{"<|endoftext|>", []string{"<|", "endoftext", "|>"}},
}

var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// next moves to the next word; it is false at the end.
func (s *splitter) next() bool {
	if len(s.cut) > 0 {
		s.word, s.cut = s.cut[0], s.cut[1:]
		return true
	}
	for s.rest != "" {
		if s.special() || s.contraction() {
			return true
		}
		r, size := utf8.DecodeRuneInString(s.rest)
		class := chars.ClassOf(r)
		switch class {
		case chars.Space:
			s.rest = s.rest[size:]
			continue
		case chars.Number:
		default:
			size += run(s.rest[size:], class)
		}
		s.take(size)
		return true
	}
	return false
}

func (s *splitter) take(n int) { s.word, s.rest = s.rest[:n], s.rest[n:] }

func (s *splitter) special() bool {
	if s.rest[0] != '<' {
		return false
	}
	for _, special := range specialNames {
		if rest, ok := strings.CutPrefix(s.rest, special.name); ok {
			s.rest = rest
			s.word, s.cut = special.parts[0], special.parts[1:]
			return true
		}
	}
	return false
}

func (s *splitter) contraction() bool {
	if s.rest[0] != '\'' {
		return false
	}
	for _, c := range contractions {
		if strings.HasPrefix(s.rest, c) {
			s.take(len(c))
			return true
		}
	}
	return false
}

// run gives the length of the characters of one class that s starts with.
func run(s string, class chars.Class) int {
	for i, r := range s {
		if chars.ClassOf(r) != class {
			return i
		}
	}
	return len(s)
}
