// Package added cuts added tokens ("<|endoftext|>", "<extra_id_0>") out of a text before the model tokenises what lies
// between them. It follows AddedVocabulary of Hugging Face's tokenizers: tokens are looked for in the raw text first,
// those marked as normalised then in the normalised rest; the leftmost match counts, of several there the longest.
package added

import (
	"unicode"
	"unicode/utf8"

	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// Normalizer is the model's text normalisation.
type Normalizer func(string) string

// Set is the added tokens of a tokenizer. It is immutable.
type Set struct {
	normalize  Normalizer
	raw        trie // tokens to find in the raw text
	normalized trie // tokens to find in the normalised text, themselves normalised
	content    map[int64]string
	ids        map[string]int64
	top        int64
}

// Segment is a stretch of text: an added token, or normalised text for the model.
type Segment struct {
	Text string
	ID   int64 // -1 for text
}

// New registers the tokens of a configuration: those with an id, those with a role, and extra ones, in this order, as
// Transformers does. A token of the vocabulary keeps its id there (lookup tells it); any other gets the next free one. The
// ids of the configuration only say in which order. Of a token that has several roles the last one's flags count.
// vocabSize is the number of tokens in the model's vocabulary.
//
// With specialAsText, tokens marked as special are never matched.
func New(c *hf.Config, extra []hf.Token, lookup func(string) (int64, bool), vocabSize int, normalize Normalizer, specialAsText bool) *Set {
	s := &Set{normalize: normalize, content: map[int64]string{}, ids: map[string]int64{}, top: int64(vocabSize)}
	named := map[string]bool{}
	var later []hf.Token
	for _, n := range c.Names {
		named[n.Token.Content] = true
		later = append(later, n.Token)
	}
	var tokens []hf.Token
	place := map[string]int{} // in tokens
	register := func(t hf.Token) {
		if t.Content == "" {
			return
		}
		t.Special = t.Special || named[t.Content]
		if at, known := place[t.Content]; known {
			t.Special = t.Special || tokens[at].Special
			tokens[at] = t
			return
		}
		place[t.Content] = len(tokens)
		tokens = append(tokens, t)
	}
	for _, t := range c.Added {
		register(t)
	}
	withID := len(tokens)
	for _, t := range append(later, extra...) {
		if at, known := place[t.Content]; !known || at >= withID {
			register(t)
		}
	}
	for _, t := range tokens {
		id := s.take(t.Content, lookup)
		switch {
		case specialAsText && t.Special:
		case t.Normalized:
			s.normalized.add(normalize(t.Content), t, id)
		default:
			s.raw.add(t.Content, t, id)
		}
	}
	return s
}

// take gives a token its id.
func (s *Set) take(content string, lookup func(string) (int64, bool)) int64 {
	id, ok := lookup(content)
	if !ok {
		id = s.top
	}
	s.ids[content], s.content[id] = id, content
	s.top = max(s.top, id+1)
	return id
}

// ID gives the id of an added token.
func (s *Set) ID(content string) (int64, bool) {
	id, ok := s.ids[content]
	return id, ok
}

// Content gives the text of an added token.
func (s *Set) Content(id int64) (string, bool) {
	content, ok := s.content[id]
	return content, ok
}

// Top is the largest id of the added tokens plus one, at least the size of the vocabulary.
func (s *Set) Top() int { return int(s.top) }

// Split cuts text, which must be valid UTF-8, into added tokens and normalised text.
func (s *Set) Split(text string) []Segment {
	var out []Segment
	for _, part := range s.raw.split(nil, text) {
		if part.ID >= 0 {
			out = append(out, part)
			continue
		}
		out = s.normalized.split(out, s.normalize(part.Text))
	}
	return out
}

// split appends the segments of text.
func (t *trie) split(out []Segment, text string) []Segment {
	from := 0 // end of the last segment
	for at := 0; at < len(text); {
		if !t.starts[text[at]] {
			at++
			continue
		}
		found, length := t.longest(text[at:])
		if length == 0 {
			at++
			continue
		}
		start, stop := at, at+length
		at = stop
		if found.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[stop:])) {
			continue
		}
		if found.LStrip {
			start = trimmedEnd(text[:start])
		}
		if found.RStrip {
			stop += leadingSpace(text[stop:])
		}
		// The token before may have eaten space that this one starts with, or is.
		start = min(max(start, from), stop)
		if from < start {
			out = append(out, Segment{text[from:start], -1})
		}
		out = append(out, Segment{text[start:stop], found.id})
		from = stop
	}
	if from < len(text) {
		out = append(out, Segment{text[from:], -1})
	}
	return out
}

func trimmedEnd(s string) int {
	for s != "" {
		r, size := utf8.DecodeLastRuneInString(s)
		if !unicode.IsSpace(r) {
			break
		}
		s = s[:len(s)-size]
	}
	return len(s)
}

func leadingSpace(s string) int {
	for i, r := range s {
		if !unicode.IsSpace(r) {
			return i
		}
	}
	return len(s)
}

func endsWithWord(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && isWord(r)
}

func startsWithWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && isWord(r)
}

// isWord is \w of Rust's regex crate: letters, marks, decimal digits, connectors and joiners.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
