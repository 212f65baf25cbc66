package added

import (
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

func none(string) (int64, bool) { return 0, false }

func set(t *testing.T, asText bool, tokens ...hf.Token) *Set {
	t.Helper()
	for i := range tokens {
		tokens[i].ID = -1
	}
	return New(&hf.Config{}, tokens, none, 100, strings.ToLower, asText)
}

func TestSplit(t *testing.T) {
	text := func(s string) Segment { return Segment{s, -1} }
	for name, c := range map[string]struct {
		tokens []hf.Token
		text   string
		want   []Segment
	}{
		"empty":               {[]hf.Token{{Content: "<x>"}}, "", nil},
		"no token":            {nil, "Abc", []Segment{text("abc")}},
		"between text":        {[]hf.Token{{Content: "<x>"}}, "A<x>B", []Segment{text("a"), {"<x>", 100}, text("b")}},
		"alone, twice":        {[]hf.Token{{Content: "<x>"}}, "<x><x>", []Segment{{"<x>", 100}, {"<x>", 100}}},
		"raw keeps case":      {[]hf.Token{{Content: "<x>"}}, "<X>", []Segment{text("<x>")}},
		"normalised does not": {[]hf.Token{{Content: "<X>", Normalized: true}}, "A<x>", []Segment{text("a"), {"<x>", 100}}},
		"longest":             {[]hf.Token{{Content: "<x"}, {Content: "<x>y"}, {Content: "<x>"}}, "<x>z<x>y", []Segment{{"<x>", 102}, text("z"), {"<x>y", 101}}},
		"leftmost":            {[]hf.Token{{Content: "bcd"}, {Content: "ab"}}, "abcd", []Segment{{"ab", 101}, text("cd")}},
		"raw first":           {[]hf.Token{{Content: "abc", Normalized: true}, {Content: "b"}}, "abc", []Segment{text("a"), {"b", 101}, text("c")}},
		"eats spaces": {[]hf.Token{{Content: "<x>", LStrip: true, RStrip: true}}, "a \u3000<x>\n b<x> <x>",
			[]Segment{text("a"), {" \u3000<x>\n ", 100}, text("b"), {"<x> ", 100}, {"<x>", 100}}},
		"single word": {[]hf.Token{{Content: "cat", SingleWord: true}}, "cat cats éacat (cat)",
			[]Segment{{"cat", 100}, text(" cats éacat ("), {"cat", 100}, text(")")}},
		"of two the last": {[]hf.Token{{Content: "<x>"}, {Content: "<x>", LStrip: true}}, " <x>", []Segment{{" <x>", 100}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := set(t, false, c.tokens...).Split(c.text); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSpecialAsText(t *testing.T) {
	s := set(t, true, hf.Token{Content: "</s>", Special: true}, hf.Token{Content: "<x>"})
	if got, want := s.Split("</s><x>"), []Segment{{"</s>", -1}, {"<x>", 101}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if id, ok := s.ID("</s>"); !ok || id != 100 {
		t.Errorf("ID = %d, %v, want 100: the token itself stays", id, ok)
	}
}

// A token that the configuration gives an id keeps its flags, whatever role it has besides; only it becomes special.
func TestFlags(t *testing.T) {
	c := &hf.Config{
		Added: []hf.Token{{Content: "<x>", LStrip: true}},
		Names: []hf.NamedToken{{Role: "pad_token", Token: hf.Special("<x>")}},
	}
	extra := []hf.Token{{Content: "<x>", RStrip: true}}
	if got, want := New(c, extra, none, 100, strings.ToLower, false).Split(" <x> "), []Segment{{" <x>", 100}, {" ", -1}}; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := New(c, nil, none, 100, strings.ToLower, true).Split("<x>"), []Segment{{"<x>", -1}}; !slices.Equal(got, want) {
		t.Errorf("special tokens as text: got %+v, want %+v", got, want)
	}
}

// Tokens come from three places; one that the vocabulary has keeps its id, others get the next, whatever the configuration says.
func TestIDs(t *testing.T) {
	c := &hf.Config{
		Added: []hf.Token{{Content: "a", ID: 8}, {Content: "new", ID: 20}},
		Names: []hf.NamedToken{{Role: "pad_token", Token: hf.Special("pad")}},
	}
	lookup := func(s string) (int64, bool) { return 7, s == "a" }
	s := New(c, []hf.Token{hf.Special("more"), hf.Special("a")}, lookup, 10, strings.ToLower, false)
	for content, want := range map[string]int64{"a": 7, "new": 10, "pad": 11, "more": 12} {
		if got, ok := s.ID(content); got != want || !ok {
			t.Errorf("ID(%s) = %d, %v, want %d", content, got, ok, want)
		}
		if got, ok := s.Content(want); got != content || !ok {
			t.Errorf("Content(%d) = %q, %v, want %q", want, got, ok, content)
		}
	}
	if s.Top() != 13 {
		t.Errorf("Top = %d, want 13", s.Top())
	}
}
