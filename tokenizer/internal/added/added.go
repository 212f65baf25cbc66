// Package added cuts added tokens ("<|endoftext|>", "<extra_id_0>") out of a text before the model tokenises what lies
// between them. It follows AddedVocabulary of Hugging Face's tokenizers: tokens are looked for in the raw text first,
// those marked as normalised then in the normalised rest; the leftmost match counts, of several there the longest.
package added

import (
	"fmt"
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
	next       int64
}

// Segment is a stretch of text: an added token, or normalised text for the model.
type Segment struct {
	Text string
	ID   int64 // -1 for text
}

// New registers the tokens of a configuration: those with an id, those with a role, and extra ones, in this order, as
// Transformers does. A token of the vocabulary keeps its id there (lookup tells it); any other gets the next free one,
// which must be the id that the configuration gives, if it gives any. vocabSize is the size of the model's vocabulary.
//
// With specialAsText, tokens marked as special are never matched.
func New(c *hf.Config, extra []hf.Token, lookup func(string) (int64, bool), vocabSize int, normalize Normalizer, specialAsText bool) (*Set, error) {
	s := &Set{normalize: normalize, content: map[int64]string{}, ids: map[string]int64{}, next: int64(vocabSize)}
	tokens := append([]hf.Token(nil), c.Added...)
	for _, n := range c.Names {
		tokens = append(tokens, n.Token)
	}
	tokens = append(append(tokens, c.Extra...), extra...)
	for _, t := range tokens {
		if t.Content == "" {
			continue
		}
		if _, known := s.ids[t.Content]; known {
			continue
		}
		id, ok := lookup(t.Content)
		if !ok {
			id = s.next
			s.next++
		}
		if t.ID >= 0 && int64(t.ID) != id {
			if ok {
				return nil, fmt.Errorf("added token %q has id %d, but %d in the vocabulary", t.Content, t.ID, id)
			}
			return nil, fmt.Errorf("added token %q: id %d is out of range: want %d, the next after the vocabulary", t.Content, t.ID, id)
		}
		s.ids[t.Content], s.content[id] = id, t.Content
		switch {
		case specialAsText && t.Special:
		case t.Normalized:
			s.normalized.add(normalize(t.Content), t, id)
		default:
			s.raw.add(t.Content, t, id)
		}
	}
	return s, nil
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

// Top is the largest id plus one, of the vocabulary and the added tokens.
func (s *Set) Top() int { return int(s.next) }

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
		start = max(start, from) // an earlier token may have eaten the space already
		if from < start {
			out = append(out, Segment{text[from:start], -1})
		}
		out = append(out, Segment{text[start:stop], found.id})
		from, at = stop, max(at, stop)
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
