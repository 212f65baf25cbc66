package unigram

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// unknownPenalty is how far an unknown character scores below the worst piece (SentencePiece's kUnkPenalty).
const unknownPenalty = 10

// model is the pieces of a unigram language model. Searching for those that start at a place narrows a range of the
// sorted list byte by byte: that needs no tree, which would take longer to build than the file takes to read.
type model struct {
	sorted   []entry        // by text
	first    [257]int32     // where the entries that start with a byte begin in sorted
	byID     []string       // text by id
	unknown  float64        // score of an unknown character
	charsmap *charsmap      // nil for no normalisation
	hidden   map[int32]bool // ids that text must never become
}

type entry struct {
	text  string
	score float64
	id    int32
}

func newModel(pieces []hf.Piece) (*model, error) {
	if len(pieces) <= unknown {
		return nil, fmt.Errorf("want at least %d pieces, the last of them <unk>, got %d", unknown+1, len(pieces))
	}
	m := &model{sorted: make([]entry, len(pieces)), byID: make([]string, len(pieces)), unknown: math.Inf(1)}
	for i, p := range pieces {
		if p.Text == "" || math.IsNaN(p.Score) || math.IsInf(p.Score, 0) {
			return nil, fmt.Errorf("piece %d: want a text and a finite score, got %q and %v", i, p.Text, p.Score)
		}
		if !utf8.ValidString(p.Text) {
			return nil, fmt.Errorf("piece %d: want UTF-8, got %q", i, p.Text)
		}
		m.sorted[i] = entry{p.Text, p.Score, int32(i)}
		m.byID[i] = p.Text
		m.unknown = min(m.unknown, p.Score)
	}
	m.unknown -= unknownPenalty
	slices.SortFunc(m.sorted, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	for i, e := range m.sorted {
		if i > 0 && m.sorted[i-1].text == e.text {
			return nil, fmt.Errorf("piece %q occurs twice, with ids %d and %d", e.text, min(e.id, m.sorted[i-1].id), max(e.id, m.sorted[i-1].id))
		}
		m.first[int(e.text[0])+1]++
	}
	for b := range 256 {
		m.first[b+1] += m.first[b]
	}
	return m, nil
}

// id gives the id of a piece.
func (m *model) id(text string) (int64, bool) {
	i, ok := slices.BinarySearchFunc(m.sorted, text, func(e entry, text string) int { return cmp.Compare(e.text, text) })
	if !ok {
		return 0, false
	}
	return int64(m.sorted[i].id), true
}

// piece gives the text of an id, "" if there is none.
func (m *model) piece(id int64) string {
	if id < 0 || id >= int64(len(m.byID)) {
		return ""
	}
	return m.byID[id]
}

// hide takes pieces out of the search; they keep their ids.
func (m *model) hide(which func(piece string) bool) {
	m.hidden = map[int32]bool{}
	for _, e := range m.sorted {
		if which(e.text) {
			m.hidden[e.id] = true
		}
	}
}

func (m *model) normalize(s string) string {
	if m.charsmap == nil {
		return s
	}
	return m.charsmap.normalize(s)
}

// viterbi finds the most probable pieces of a word. It keeps its buffers between words.
type viterbi struct{ best []node }

// node is the best way to reach a place in the word.
type node struct {
	score float64
	start int32 // where its last piece starts, -1 if the place is not reached
	id    int32
}

// encode appends the ids of a word. Unknown characters beside each other make a single unknown token. Of equally
// probable ways the one found first counts: the one whose last piece starts earliest.
func (v *viterbi) encode(dst []int64, m *model, word string) []int64 {
	if cap(v.best) < len(word)+1 {
		v.best = make([]node, len(word)+1)
	}
	best := v.best[:len(word)+1]
	for i := range best {
		best[i] = node{start: -1}
	}
	for at := 0; at < len(word); {
		_, size := utf8.DecodeRuneInString(word[at:])
		if !m.extend(best, word, at, at+size) {
			improve(&best[at+size], node{m.unknown + best[at].score, int32(at), unknown})
		}
		at += size
	}
	from := len(dst)
	for at := len(word); at > 0; at = int(best[at].start) {
		id := int64(best[at].id)
		if id == unknown && len(dst) > from && dst[len(dst)-1] == unknown {
			continue
		}
		dst = append(dst, id)
	}
	slices.Reverse(dst[from:])
	return dst
}

func improve(to *node, n node) {
	if to.start < 0 || n.score > to.score {
		*to = n
	}
}

// extend tries all pieces that start at a place. It tells whether one of them is just the character there.
func (m *model) extend(best []node, word string, at, oneChar int) (single bool) {
	lo, hi := m.first[word[at]], m.first[int(word[at])+1]
	so := best[at].score
	for end := at + 1; lo < hi; end++ {
		// All of sorted[lo:hi] start with word[at:end]; the first may be no longer than that.
		depth := end - at
		if e := &m.sorted[lo]; len(e.text) == depth {
			if !m.hidden[e.id] {
				improve(&best[end], node{e.score + so, int32(at), e.id})
				single = single || end == oneChar
			}
			lo++
		}
		if end == len(word) {
			break
		}
		lo, hi = m.narrow(lo, hi, depth, word[end])
	}
	return single
}

// narrow gives the part of sorted[lo:hi] whose text has byte b at the given depth; all are longer than that.
func (m *model) narrow(lo, hi int32, depth int, b byte) (int32, int32) {
	end := hi
	for lo < hi {
		mid := int32(uint32(lo+hi) >> 1)
		if m.sorted[mid].text[depth] < b {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	start := lo
	for hi = end; lo < hi; {
		mid := int32(uint32(lo+hi) >> 1)
		if m.sorted[mid].text[depth] <= b {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return start, lo
}
