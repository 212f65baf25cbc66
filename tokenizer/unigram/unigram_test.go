package unigram

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/internal/goldentest"
	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

func small(t testing.TB) *Tokenizer {
	return load(t, goldentest.Dir(t, "testdata", "spiece.model.gz", "tokenizer_config.json"), tokenizer.Options{})
}

func TestEncodingFrame(t *testing.T) {
	tok := small(t)
	full, err := tok.Encode("a golden retriever", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := len(full.IDs)
	for _, maxLength := range []int{1, 2, n - 1, n, n + 1, 512} {
		e, err := tok.Encode("a golden retriever", maxLength)
		if err != nil {
			t.Fatal(err)
		}
		real := min(n, maxLength)
		want := append(slices.Clone(full.IDs[:real-1]), 1)
		want = append(want, make([]int64, maxLength-real)...)
		mask := append(slices.Repeat([]int64{1}, real), make([]int64, maxLength-real)...)
		if !slices.Equal(e.IDs, want) || !slices.Equal(e.Mask, mask) {
			t.Errorf("maximum %d: ids %v, mask %v, want %v and %v", maxLength, e.IDs, e.Mask, want, mask)
		}
		if (e.Truncated != "") != (maxLength < n) {
			t.Errorf("maximum %d of %d: truncated text %q", maxLength, n, e.Truncated)
		}
	}
	if _, err := tok.Encode("a", -1); err == nil {
		t.Error("maximum -1: no error")
	}
	if e, _ := tok.Encode("a photo of a golden retriever", 4); !strings.HasSuffix(e.Truncated, "golden retriever") {
		t.Errorf("Truncated = %q, want the end of the text", e.Truncated)
	}
}

func TestSpecialAsText(t *testing.T) {
	folder := goldentest.Dir(t, "testdata", "tokenizer.json.gz", "tokenizer_config.json")
	tok := load(t, folder, tokenizer.Options{})
	text := load(t, folder, tokenizer.Options{SpecialAsText: true})
	// The full-width form becomes "</s>" only when it is normalised; there is a piece of that name, too.
	const prompt = "x </s> <extra_id_7> ＜pad＞ y"
	control := func(ids []int64) (n int) {
		for _, id := range ids {
			if id < 2 || id >= 1000 {
				n++
			}
		}
		return n
	}
	e, _ := tok.Encode(prompt, 0)
	if got := control(e.IDs); got != 4 { // three in the prompt, one at its end
		t.Errorf("%d control tokens in %v, want 4", got, e.IDs)
	}
	e, _ = text.Encode(prompt, 0)
	if got := control(e.IDs); got != 1 || e.IDs[len(e.IDs)-1] != 1 {
		t.Errorf("as text: %d control tokens in %v, want one at the end", got, e.IDs)
	}
}

// tiny builds a model with the first three pieces of every T5 vocabulary and some more.
func tiny(t *testing.T, more ...hf.Piece) *model {
	t.Helper()
	m, err := newModel(append([]hf.Piece{{Text: "<pad>"}, {Text: "</s>"}, {Text: "<unk>"}}, more...))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestViterbi(t *testing.T) {
	m := tiny(t, hf.Piece{Text: "▁", Score: -2}, hf.Piece{Text: "▁ab", Score: -5}, hf.Piece{Text: "a", Score: -1}, hf.Piece{Text: "b", Score: -1},
		hf.Piece{Text: "bc", Score: -3}, hf.Piece{Text: "abc", Score: -2.5})
	const space, a, b, bc, abc = 3, 5, 6, 7, 8 // 4 is ▁ab
	for _, c := range []struct {
		word string
		want []int64
	}{
		{"▁", []int64{space}},
		{"▁ab", []int64{space, a, b}}, // -4 beats -5
		{"▁abc", []int64{space, abc}}, // -4.5 beats ▁ a bc, -6
		{"▁x", []int64{space, unknown}},
		{"▁xyz", []int64{space, unknown}},             // unknown characters are one token
		{"▁xay", []int64{space, unknown, a, unknown}}, // unless a known one stands between them
		{"▁é日", []int64{space, unknown}},
		{"abab", []int64{a, b, a, b}},
		{"<unk>x", []int64{unknown}},                   // the piece of that name is unknown, too
		{"\xff\xfe", []int64{unknown}},                 // bytes that are no UTF-8 do not disturb
		{"c", []int64{unknown}},                        // part of a piece, but none itself
		{strings.Repeat("bc", 3), []int64{bc, bc, bc}}, // b c would need an unknown c
		{strings.Repeat("q", 70_000), []int64{unknown}},
		{"", nil},
	} {
		var v viterbi
		if got := v.encode(nil, m, c.word); !slices.Equal(got, c.want) {
			t.Errorf("%.20q: got %v, want %v", c.word, got, c.want)
		}
	}
	if m.unknown != -15 {
		t.Errorf("an unknown character scores %v, want the least score, -5, less 10", m.unknown)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":               nil,
		" \t\u3000":      nil,
		"a  b\n":         {"▁a", "▁b"},
		"▁a":             {"▁a"},
		"a▁b":            {"▁a", "▁b"},
		"▁▁a▁":           {"▁", "▁a", "▁"},
		"\u00a0x\u2028y": {"▁x", "▁y"},
	} {
		if got := slices.Collect(words(text)); !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestVeryLongTexts(t *testing.T) {
	tok := small(t)
	for _, unit := range []string{"a", "é", "日", "!?", "😀", "e\u0301\u0323", "\u0301", "\r\n", "word ", "</s>", "▁", "🇺🇳", "क्"} {
		text := strings.Repeat(unit, 100_000/len(unit))
		e, err := tok.Encode(text, 48)
		if err != nil {
			t.Fatal(err)
		}
		full, err := tok.Encode(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := min(47, len(full.IDs)-1)
		if !slices.Equal(e.IDs[:n], full.IDs[:n]) || (e.Truncated != "") != (len(full.IDs) > 48) {
			t.Errorf("%q × many: the cut ids %v are not the start of all, or the wrong text was cut: %.20q", unit, e.IDs, e.Truncated)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	vocab := func(pieces string) *fstest.MapFile {
		return file(`{"model":{"type":"Unigram","vocab":[["<pad>",0],["</s>",0],["<unk>",0]` + pieces + `]}}`)
	}
	charsmap := func(blob string) *fstest.MapFile {
		return file(`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"` + blob + `"},"model":{"vocab":[["<pad>",0],["</s>",0],["<unk>",0]]}}`)
	}
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   []string // parts of the message
		is     error
	}{
		"empty folder":        {fstest.MapFS{}, []string{"tokenizer.json", "spiece.model"}, fs.ErrNotExist},
		"cut off":             {fstest.MapFS{"tokenizer.json": file(`{"model":{"vocab":[["<pad>",0],["</s>"`)}, []string{"tokenizer.json: corrupt JSON", "/model/vocab/1"}, nil},
		"score is text":       {fstest.MapFS{"tokenizer.json": vocab(`,["a","b"]`)}, []string{"tokenizer.json", "/model/vocab/3/1", "want a number"}, nil},
		"piece of three":      {fstest.MapFS{"tokenizer.json": vocab(`,["a",1,2]`)}, []string{"tokenizer.json", "/model/vocab/3", "end of the piece"}, nil},
		"piece twice":         {fstest.MapFS{"tokenizer.json": vocab(`,["a",1],["a",2]`)}, []string{"tokenizer.json", `"a"`, "twice", "3 and 4"}, nil},
		"empty piece":         {fstest.MapFS{"tokenizer.json": vocab(`,["",1]`)}, []string{"tokenizer.json", "piece 3"}, nil},
		"too few":             {fstest.MapFS{"tokenizer.json": file(`{"model":{"vocab":[["<unk>",0]]}}`)}, []string{"tokenizer.json", "at least 3"}, nil},
		"byte pairs":          {fstest.MapFS{"tokenizer.json": file(`{"model":{"type":"BPE","vocab":{"a":0}}}`)}, []string{"tokenizer.json", "BPE"}, nil},
		"charsmap no base64":  {fstest.MapFS{"tokenizer.json": charsmap("!")}, []string{"tokenizer.json", "precompiled_charsmap", "base64"}, nil},
		"charsmap short":      {fstest.MapFS{"tokenizer.json": charsmap("AAE=")}, []string{"tokenizer.json", "precompiled_charsmap", "truncated"}, nil},
		"charsmap overlong":   {fstest.MapFS{"tokenizer.json": charsmap("/////w==")}, []string{"precompiled_charsmap", "truncated"}, nil},
		"no SentencePiece":    {fstest.MapFS{"spiece.model": file("hello")}, []string{"spiece.model", "not a SentencePiece model"}, nil},
		"empty SentencePiece": {fstest.MapFS{"spiece.model": file("")}, []string{"spiece.model", "no pieces"}, nil},
		"BPE SentencePiece":   {fstest.MapFS{"spiece.model": file("\x12\x02\x18\x02")}, []string{"spiece.model", "BPE"}, nil},
		"LFS pointer":         {fstest.MapFS{"spiece.model": file("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")}, []string{"spiece.model", "Git LFS pointer"}, hf.ErrLFSPointer},
		"extra ids":           {fstest.MapFS{"tokenizer.json": vocab(""), "tokenizer_config.json": file(`{"extra_ids": -1}`)}, []string{"tokenizer_config.json", "extra_ids"}, nil},
		"decoder key":         {fstest.MapFS{"tokenizer.json": vocab(""), "tokenizer_config.json": file(`{"added_tokens_decoder": {"x": {"content": "a"}}}`)}, []string{"tokenizer_config.json", "added_tokens_decoder", `"x"`}, nil},
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

func TestNonFiniteScoresAreRefused(t *testing.T) {
	for _, score := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if _, err := newModel([]hf.Piece{{Text: "a"}, {Text: "b"}, {Text: "c", Score: score}}); err == nil {
			t.Errorf("score %v: no error", score)
		}
	}
}

func TestRealLFSPointer(t *testing.T) {
	dir := shareddata.Dir(t, "data", "lfs_pointer")
	folder := goldentest.Folder(t, map[string]string{"spiece.model": filepath.Join(dir, "spiece.model")})
	if _, err := LoadFS(folder, tokenizer.Options{}); !errors.Is(err, hf.ErrLFSPointer) {
		t.Errorf("error %v, want one about a Git LFS pointer", err)
	}
}
