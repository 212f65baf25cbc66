package clip

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/internal/goldentest"
	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

func small(t testing.TB) *Tokenizer {
	return load(t, goldentest.Dir(t, "testdata/tokenizer", "vocab.json", "merges.txt", "*_*.json"), tokenizer.Options{})
}

func TestEncodingFrame(t *testing.T) {
	tok := small(t)
	if tok.MaxLength() != 77 || tok.VocabSize() != 1314 {
		t.Errorf("MaxLength %d, VocabSize %d, want 77 and 1314", tok.MaxLength(), tok.VocabSize())
	}
	body, err := tok.Encode("a cat", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := len(body.IDs)
	for _, maxLength := range []int{2, 3, n - 1, n, n + 1, 77} {
		e, err := tok.Encode("a cat", maxLength)
		if err != nil {
			t.Fatal(err)
		}
		real := min(n, maxLength)
		if len(e.IDs) != maxLength || len(e.Mask) != maxLength {
			t.Fatalf("%d ids and %d mask values, want %d", len(e.IDs), len(e.Mask), maxLength)
		}
		if e.IDs[0] != 1312 || e.IDs[real-1] != 1313 || !slices.Equal(e.IDs[:real-1], body.IDs[:real-1]) {
			t.Errorf("maximum %d: ids %v, want the start of %v and the end token", maxLength, e.IDs, body.IDs)
		}
		for i, m := range e.Mask {
			switch {
			case i < real && m != 1:
				t.Errorf("maximum %d: mask %v, want %d ones", maxLength, e.Mask, real)
			case i >= real && (m != 0 || e.IDs[i] != 1313):
				t.Errorf("maximum %d: id %d and mask %d at %d, want padding", maxLength, e.IDs[i], m, i)
			}
		}
		if (e.Truncated != "") != (maxLength < n) {
			t.Errorf("maximum %d of %d: truncated text %q", maxLength, n, e.Truncated)
		}
	}
	for _, maxLength := range []int{-1, 1} {
		if _, err := tok.Encode("a cat", maxLength); err == nil {
			t.Errorf("maximum %d: no error", maxLength)
		}
	}
}

func TestTruncatedTellsWhatWasCut(t *testing.T) {
	tok := small(t)
	// Diffusers warns with the decoded ids that were removed.
	e, err := tok.Encode("one two three FOUR, five", 6)
	if err != nil {
		t.Fatal(err)
	}
	full, _ := tok.Encode("one two three FOUR, five", 0)
	if want := tok.Decode(full.IDs[5 : len(full.IDs)-1]); e.Truncated != want || !strings.HasSuffix(want, "four , five") {
		t.Errorf("Truncated = %q, want %q, ending in the lower-cased end of the text", e.Truncated, want)
	}
}

func TestPaddingAndTruncationSides(t *testing.T) {
	folder := goldentest.Dir(t, "testdata/tokenizer", "vocab.json", "merges.txt")
	folder["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(`{"padding_side": "left", "truncation_side": "left"}`)}
	tok := load(t, folder, tokenizer.Options{})
	full, _ := tok.Encode("a b c d", 0) // start a b c d end
	check(t, tok, "a b c d", 4, []int64{1312, full.IDs[3], full.IDs[4], 1313})
	check(t, tok, "a b c d", 8, append([]int64{1313, 1313}, full.IDs...))
	if e, _ := tok.Encode("a b c d", 8); !slices.Equal(e.Mask, []int64{0, 0, 1, 1, 1, 1, 1, 1}) || e.Truncated != "" {
		t.Errorf("mask %v, truncated %q", e.Mask, e.Truncated)
	}
}

func TestAddedTokensFile(t *testing.T) {
	folder := goldentest.Dir(t, "testdata/tokenizer", "vocab.json", "merges.txt", "special_tokens_map.json")
	folder["added_tokens.json"] = &fstest.MapFile{Data: []byte(`{"<My Cat>": 1314}`)}
	tok := load(t, folder, tokenizer.Options{})
	a, _ := tok.Encode("a", 0)
	// A token that is no special one is looked for in the normalised text, in its own normalised form.
	check(t, tok, "a <MY  CAT>", 0, []int64{1312, a.IDs[1], 1314, 1313})
	if tok.VocabSize() != 1315 {
		t.Errorf("VocabSize %d, want 1315", tok.VocabSize())
	}
	if got := tok.Decode([]int64{a.IDs[1], 1314, 99999, -1}); got != "a <My Cat>" {
		t.Errorf("Decode = %q", got)
	}
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	tok := small(t)
	want, _ := tok.Encode("a\ufffdb \ufffd", 0)
	check(t, tok, "a\xf0\x9f\x98b \xff", 0, want.IDs)
}

// The queue for long words and the scan for short ones must agree, at every length around the switch.
func TestLongWordsMergeLikeShortOnes(t *testing.T) {
	tok := small(t)
	text := strings.Repeat("thestandardininganderstheanditionoverthelittleandthe", 3)
	for n := 1; n <= len(text); n++ {
		var word []int32
		for i := range n - 1 {
			word = append(word, tok.symbols[text[i]])
		}
		word = append(word, tok.last[text[n-1]])
		want := slowMerge(tok, slices.Clone(word))
		if got := tok.model.Merge(slices.Clone(word)); !slices.Equal(got, want) {
			t.Fatalf("%d bytes: got %v, want %v", n, got, want)
		}
	}
}

// slowMerge is byte-pair encoding as its paper writes it: on the strings, rank by rank.
func slowMerge(tok *Tokenizer, word []int32) []int32 {
	merges, err := hf.ReadMerges(os.DirFS("testdata/tokenizer"))
	if err != nil {
		panic(err)
	}
	for _, m := range merges {
		left, _ := tok.model.ID(m.Left)
		right, _ := tok.model.ID(m.Right)
		union, _ := tok.model.ID(m.Left + m.Right)
		for i := 0; i+1 < len(word); i++ {
			if word[i] == left && word[i+1] == right {
				word[i] = union
				word = slices.Delete(word, i+1, i+2)
			}
		}
	}
	return word
}

// A text of 100 kB without a space ends in reasonable time, and gives what its parts give at word boundaries.
func TestVeryLongTexts(t *testing.T) {
	tok := small(t)
	for _, unit := range []string{"a", "ab", "é", "!?", "1", "😀", "e\u0301\u0323", "word ", "<|endoftext|>", "'s"} {
		text := strings.Repeat(unit, 100_000/len(unit))
		e, err := tok.Encode(text, 77)
		if err != nil {
			t.Fatal(err)
		}
		full, err := tok.Encode(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.IDs[:76], full.IDs[:76]) || e.Truncated == "" {
			t.Errorf("%q × many: the cut ids %v are not the start of all", unit, e.IDs)
		}
	}
	one, _ := tok.Encode("word", 0)
	many, _ := tok.Encode(strings.Repeat("word ", 20_000), 0)
	if got, want := len(many.IDs)-2, 20_000*(len(one.IDs)-2); got != want {
		t.Errorf("20,000 words make %d tokens, want %d", got, want)
	}
}

func TestLoadErrors(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const merges = "#version: 0.2\n"
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   []string // parts of the message
		is     error
	}{
		"empty folder": {fstest.MapFS{}, []string{"tokenizer.json", "vocab.json", "merges.txt"}, fs.ErrNotExist},
		"no merges":    {fstest.MapFS{"vocab.json": file(`{"a":0}`)}, []string{"merges.txt"}, fs.ErrNotExist},
		"cut off": {fstest.MapFS{"vocab.json": file(`{"a":0, "b"`), "merges.txt": file(merges)},
			[]string{"vocab.json: corrupt JSON", "/b"}, nil},
		"text after the end": {fstest.MapFS{"vocab.json": file(`{"a":0} x`), "merges.txt": file(merges)}, []string{"vocab.json"}, nil},
		"id is text":         {fstest.MapFS{"vocab.json": file(`{"a":"0"}`), "merges.txt": file(merges)}, []string{"vocab.json", "/a", "want a number"}, nil},
		"id negative":        {fstest.MapFS{"vocab.json": file(`{"a":-1}`), "merges.txt": file(merges)}, []string{"vocab.json", "/a", "out of range", "-1"}, nil},
		"id fraction":        {fstest.MapFS{"vocab.json": file(`{"a":1.5}`), "merges.txt": file(merges)}, []string{"vocab.json", "/a", "out of range", "1.5"}, nil},
		"id huge":            {fstest.MapFS{"vocab.json": file(`{"a":99999999999}`), "merges.txt": file(merges)}, []string{"vocab.json", "/a", "out of range"}, nil},
		"id twice":           {fstest.MapFS{"vocab.json": file(`{"a":0,"b":0}`), "merges.txt": file(merges)}, []string{"id 0", `"a"`, `"b"`}, nil},
		"token twice":        {fstest.MapFS{"vocab.json": file(`{"a":0,"a":1}`), "merges.txt": file(merges)}, []string{`"a"`, "twice"}, nil},
		"merge of unknown": {fstest.MapFS{"vocab.json": file(`{"a":0,"b":1}`), "merges.txt": file("a c\n")},
			[]string{"merge 1", `"c"`, "not in the vocabulary"}, nil},
		"merge to unknown": {fstest.MapFS{"vocab.json": file(`{"a":0,"b":1}`), "merges.txt": file("a b\n")},
			[]string{"merge 1", `"a" + "b"`, "union"}, nil},
		"merge of one": {fstest.MapFS{"vocab.json": file(`{"a":0}`), "merges.txt": file(merges + "a\n")}, []string{"merges.txt: line 2", `"a"`}, nil},
		"other vocabulary": {fstest.MapFS{"vocab.json": file(`{"cat":0}`), "merges.txt": file(merges)},
			[]string{"vocab.json and merges.txt", "not a CLIP vocabulary"}, nil},
		"unigram":  {fstest.MapFS{"tokenizer.json": file(`{"model":{"type":"Unigram","vocab":[["a",0]]}}`)}, []string{"tokenizer.json", "Unigram"}, nil},
		"no model": {fstest.MapFS{"tokenizer.json": file(`{}`)}, []string{"tokenizer.json", "/model/vocab"}, nil},
		"merge is a number": {fstest.MapFS{"tokenizer.json": file(`{"model":{"vocab":{"a":0},"merges":[1]}}`)},
			[]string{"tokenizer.json", "/model/merges/0", "want a string"}, nil},
		"merge of three": {fstest.MapFS{"tokenizer.json": file(`{"model":{"vocab":{"a":0},"merges":[["a","a","a"]]}}`)},
			[]string{"tokenizer.json", "/model/merges/0"}, nil},
		"LFS pointer": {fstest.MapFS{"tokenizer.json": file("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")},
			[]string{"tokenizer.json", "Git LFS pointer"}, hf.ErrLFSPointer},
		"config cut off": {fstest.MapFS{"vocab.json": file(`{"a":0}`), "merges.txt": file(merges), "tokenizer_config.json": file(`{"pad_token": `)},
			[]string{"tokenizer_config.json", "/pad_token"}, nil},
		"config of wrong kind": {fstest.MapFS{"vocab.json": file(`{"a":0}`), "merges.txt": file(merges), "special_tokens_map.json": file(`{"pad_token": 3}`)},
			[]string{"special_tokens_map.json", "/pad_token"}, nil},
		"config side": {fstest.MapFS{"vocab.json": file(`{"a":0}`), "merges.txt": file(merges), "tokenizer_config.json": file(`{"padding_side": "top"}`)},
			[]string{"tokenizer_config.json", "padding_side", "top"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadFS(c.folder, tokenizer.Options{})
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has more than one line", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %q is not %v", err, c.is)
			}
		})
	}
}

func TestLoadNamesTheFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir, tokenizer.Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v does not name %s", err, dir)
	}
	tok, err := Load("testdata/tokenizer", tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, tok, "", 3, []int64{1312, 1313, 1313})
}
