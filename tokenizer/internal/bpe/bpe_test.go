package bpe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// letters is a model of single letters a to e and the given merges, whose tokens get the next ids in order.
func letters(t testing.TB, merges ...hf.Merge) *Model {
	t.Helper()
	var vocab []hf.Entry
	for _, l := range "abcde" {
		vocab = append(vocab, hf.Entry{Token: string(l), ID: len(vocab)})
	}
	for _, m := range merges {
		if union := m.Left + m.Right; !slices.ContainsFunc(vocab, func(e hf.Entry) bool { return e.Token == union }) {
			vocab = append(vocab, hf.Entry{Token: union, ID: len(vocab)})
		}
	}
	m, err := New(vocab, merges)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func split(m *Model, word string) []int32 {
	var ids []int32
	for _, r := range word {
		id, _ := m.ID(string(r))
		ids = append(ids, id)
	}
	return ids
}

func join(m *Model, ids []int32) (tokens []string) {
	for _, id := range ids {
		tokens = append(tokens, m.Token(int64(id)))
	}
	return tokens
}

func TestMergeOrder(t *testing.T) {
	m := letters(t, hf.Merge{Left: "b", Right: "c"}, hf.Merge{Left: "a", Right: "b"}, hf.Merge{Left: "a", Right: "a"}, hf.Merge{Left: "bc", Right: "d"})
	for word, want := range map[string][]string{
		"":      nil,
		"a":     {"a"},
		"abc":   {"a", "bc"},       // the earlier merge goes first, not the leftmost pair
		"abcd":  {"a", "bcd"},      //
		"aaa":   {"aa", "a"},       // of equal pairs the leftmost
		"aaaab": {"aa", "a", "ab"}, //
		"ed":    {"e", "d"},        // no merge
		"bcbcd": {"bc", "bcd"},     //
		"ababc": {"ab", "a", "bc"}, //
		"aabcd": {"aa", "bcd"},     //
		"dcba":  {"d", "c", "b", "a"},
	} {
		if got := join(m, m.Merge(split(m, word))); !slices.Equal(got, want) {
			t.Errorf("Merge(%s) = %q, want %q", word, got, want)
		}
		if word == "" {
			continue
		}
		if got := join(m, m.mergeLong(split(m, word))); !slices.Equal(got, want) {
			t.Errorf("mergeLong(%s) = %q, want %q", word, got, want)
		}
	}
}

func TestLaterOfTwoEqualMergesCounts(t *testing.T) {
	m := letters(t, hf.Merge{Left: "a", Right: "b"}, hf.Merge{Left: "b", Right: "c"}, hf.Merge{Left: "a", Right: "b"})
	if got, want := join(m, m.Merge(split(m, "abc"))), []string{"a", "bc"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Random models and words: the queue gives what repeated scanning gives.
func TestLongAndShortAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		tokens := []string{"a", "b", "c", "d", "e"}
		var merges []hf.Merge
		for range 30 {
			p := hf.Merge{Left: tokens[r.IntN(len(tokens))], Right: tokens[r.IntN(len(tokens))]}
			if slices.Contains(tokens, p.Left+p.Right) {
				continue
			}
			tokens = append(tokens, p.Left+p.Right)
			merges = append(merges, p)
		}
		m := letters(t, merges...)
		for range 20 {
			word := make([]int32, r.IntN(short)+1)
			for i := range word {
				word[i] = int32(r.IntN(5))
			}
			scan, queue := m.Merge(slices.Clone(word)), m.mergeLong(slices.Clone(word))
			if !slices.Equal(scan, queue) {
				t.Fatalf("merges %v, word %v: scan %v, queue %v", merges, word, scan, queue)
			}
		}
	}
}

func TestTokensOutsideOfTheVocabulary(t *testing.T) {
	m, err := New([]hf.Entry{{Token: "a", ID: 0}, {Token: "b", ID: 3}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Token(2) != "" || m.Token(-1) != "" || m.Token(4) != "" || m.Token(3) != "b" {
		t.Error("Token gives text for ids without one")
	}
	if m.Top() != 4 || m.Len() != 2 {
		t.Errorf("Top %d, Len %d, want 4 and 2", m.Top(), m.Len())
	}
	if _, err := New([]hf.Entry{{Token: "", ID: 0}}, nil); err == nil {
		t.Error("no error for an empty token")
	}
}
