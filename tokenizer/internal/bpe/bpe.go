// Package bpe is the core of byte-pair encoding: a vocabulary, ranked merges, and the merging of one word. What a word
// is and which symbols it starts from is the caller's business, as that differs between models.
//
// Example, with the vocabulary l o w lo low and the merges "l o", "lo w":
//
//	model, err := bpe.New(vocab, merges)
//	word := []int32{id("l"), id("o"), id("w")}
//	word = model.Merge(word) // [id("low")]
package bpe

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// Model is a vocabulary with its merges. It is immutable.
type Model struct {
	ids    map[string]int32
	tokens []string // by id, "" where there is a gap
	merges map[pair]merge
}

// pair is two symbols, the left one in the upper half.
type pair uint64

func pairOf(left, right int32) pair { return pair(uint32(left))<<32 | pair(uint32(right)) }

type merge struct{ rank, id int32 }

// New builds a model. It fails where two tokens share an id, a token occurs twice, or a merge names or makes a token
// that the vocabulary lacks. A pair that is listed twice has its later rank.
func New(vocab []hf.Entry, merges []hf.Merge) (*Model, error) {
	top := -1
	for _, e := range vocab {
		top = max(top, e.ID)
	}
	m := &Model{
		ids:    make(map[string]int32, len(vocab)),
		tokens: make([]string, top+1),
		merges: make(map[pair]merge, len(merges)),
	}
	for _, e := range vocab {
		if e.Token == "" {
			return nil, fmt.Errorf("id %d: want a token, got an empty string", e.ID)
		}
		if other := m.tokens[e.ID]; other != "" {
			return nil, fmt.Errorf("id %d is given to both %q and %q", e.ID, other, e.Token)
		}
		if id, ok := m.ids[e.Token]; ok {
			return nil, fmt.Errorf("token %q occurs twice, with ids %d and %d", e.Token, id, e.ID)
		}
		m.ids[e.Token] = int32(e.ID)
		m.tokens[e.ID] = e.Token
	}
	union := int32(-1)
	for rank, p := range merges {
		left, ok := m.ids[p.Left]
		if !ok {
			return nil, fmt.Errorf("merge %d, %q + %q: token %q is not in the vocabulary", rank+1, p.Left, p.Right, p.Left)
		}
		right, ok := m.ids[p.Right]
		if !ok {
			return nil, fmt.Errorf("merge %d, %q + %q: token %q is not in the vocabulary", rank+1, p.Left, p.Right, p.Right)
		}
		union++
		if !m.isUnion(union, p) {
			if union, ok = m.ids[p.Left+p.Right]; !ok {
				return nil, fmt.Errorf("merge %d, %q + %q: their union is not in the vocabulary", rank+1, p.Left, p.Right)
			}
		}
		m.merges[pairOf(left, right)] = merge{int32(rank), union}
	}
	return m, nil
}

// isUnion tells whether an id is the token that a merge makes. Vocabularies list these tokens in the order of their
// merges, so trying the next id saves nearly every look-up.
func (m *Model) isUnion(id int32, p hf.Merge) bool {
	return int(id) < len(m.tokens) && len(m.tokens[id]) == len(p.Left)+len(p.Right) &&
		strings.HasPrefix(m.tokens[id], p.Left) && strings.HasSuffix(m.tokens[id], p.Right)
}

// ID gives the id of a token.
func (m *Model) ID(token string) (int32, bool) {
	id, ok := m.ids[token]
	return id, ok
}

// Token gives the token of an id, "" if there is none.
func (m *Model) Token(id int64) string {
	if id < 0 || id >= int64(len(m.tokens)) {
		return ""
	}
	return m.tokens[id]
}

// Len is the number of tokens.
func (m *Model) Len() int { return len(m.ids) }

// Top is the largest id plus one.
func (m *Model) Top() int { return len(m.tokens) }
