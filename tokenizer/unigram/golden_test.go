package unigram

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/internal/goldentest"
)

func load(t testing.TB, folder fstest.MapFS, o tokenizer.Options) *Tokenizer {
	t.Helper()
	tok, err := LoadFS(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// check compares the ids of a text with the reference.
func check(t *testing.T, tok *Tokenizer, text string, maxLength int, want []int64) {
	t.Helper()
	got, err := tok.Encode(text, maxLength)
	if err != nil {
		t.Fatalf("Encode(%+q, %d): %v", text, maxLength, err)
	}
	if !slices.Equal(got.IDs, want) {
		t.Errorf("Encode(%+q, %d)\n got %v\nwant %v", text, maxLength, got.IDs, want)
	}
}

// hubLayout writes the small tokenizer.json as the repositories on the Hub have it: with a normaliser in three steps, and
// with a pre-tokeniser that does not split at white space.
func hubLayout(t testing.TB, folder fstest.MapFS) fstest.MapFS {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(folder["tokenizer.json"].Data, &file); err != nil {
		t.Fatal(err)
	}
	file["normalizer"] = json.RawMessage(`{"type":"Sequence","normalizers":[` + string(file["normalizer"]) +
		`,{"type":"Strip","strip_left":false,"strip_right":true},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}]}`)
	file["pre_tokenizer"] = json.RawMessage(`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`)
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"tokenizer.json": {Data: data}, "tokenizer_config.json": folder["tokenizer_config.json"]}
}

func TestSmallVocabularyGoldens(t *testing.T) {
	lines := goldentest.Lines[struct {
		Text       string  `json:"text"`
		IDs        []int64 `json:"ids"`
		IDs48      []int64 `json:"ids_len48"`
		JSON       []int64 `json:"tokenizer_json_ids"`
		Normalized string  `json:"normalized"`
	}](t, "testdata/t5_small.jsonl.gz")
	saved := goldentest.Dir(t, "testdata", "tokenizer.json.gz", "tokenizer_config.json")
	for name, folder := range map[string]fstest.MapFS{
		"tokenizer.json":                saved,
		"tokenizer.json of the Hub":     hubLayout(t, saved),
		"spiece.model":                  goldentest.Dir(t, "testdata", "spiece.model.gz", "tokenizer_config.json"),
		"spiece.model without settings": goldentest.Dir(t, "testdata", "spiece.model.gz"),
	} {
		t.Run(name, func(t *testing.T) {
			tok := load(t, folder, tokenizer.Options{})
			for _, l := range lines {
				check(t, tok, l.Text, 0, l.IDs)
				check(t, tok, l.Text, 48, l.IDs48)
				check(t, tok, l.Text, 0, l.JSON)
				if got := tok.model.normalize(l.Text); got != l.Normalized {
					t.Errorf("normalize(%+q) = %+q, want %+q", l.Text, got, l.Normalized)
				}
			}
		})
	}
}

// Random settings, and texts full of the tokens that they name.
func TestSettingsGoldens(t *testing.T) {
	for i, l := range goldentest.Lines[goldentest.Settings](t, "testdata/settings.jsonl.gz") {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) {
			folder := goldentest.Dir(t, "testdata", "tokenizer.json.gz")
			if l.Files["tokenizer.json"] == nil {
				folder = goldentest.Dir(t, "testdata", "spiece.model.gz")
			}
			l.Apply(t, folder)
			tok := load(t, folder, tokenizer.Options{})
			for i, text := range l.Texts {
				check(t, tok, text, 0, l.IDs[i][0])
				check(t, tok, text, l.Length, l.IDs[i][1])
			}
			if t.Failed() {
				for name, file := range l.Files {
					t.Logf("%s: %s", name, file)
				}
			}
		})
	}
}

// Folders with other settings, and hard texts; see ../testdata/make.py.
func TestOtherSettingsGoldens(t *testing.T) {
	lines := goldentest.Lines[struct {
		Text      string  `json:"text"`
		Tokenizer []int64 `json:"tokenizer"`
		Strip     []int64 `json:"strip"`
		Spiece    []int64 `json:"spiece"`
		Cut       []int64 `json:"cut"`
		Decoded   string  `json:"decoded"`
	}](t, "testdata/more.jsonl.gz")
	saved := load(t, goldentest.Dir(t, "testdata", "tokenizer.json.gz", "tokenizer_config.json"), tokenizer.Options{})
	spiece := load(t, goldentest.Dir(t, "testdata", "spiece.model.gz"), tokenizer.Options{})
	strip := load(t, goldentest.Folder(t, map[string]string{
		"tokenizer.json":        "testdata/tokenizer.json.gz",
		"tokenizer_config.json": "testdata/strip_config.json",
	}), tokenizer.Options{})
	for _, l := range lines {
		check(t, saved, l.Text, 0, l.Tokenizer)
		check(t, strip, l.Text, 0, l.Strip)
		check(t, spiece, l.Text, 0, l.Spiece)
		check(t, saved, l.Text, 12, l.Cut)
		if got := saved.Decode(l.Tokenizer); got != l.Decoded {
			t.Errorf("Decode of %+q = %+q, want %+q", l.Text, got, l.Decoded)
		}
	}
}

func TestCheckpointGoldens(t *testing.T) {
	golden := shareddata.Dir(t, "golden")
	lines := goldentest.Lines[struct {
		Text string  `json:"text"`
		IDs  []int64 `json:"ids"`
	}](t, filepath.Join(golden, "tokenizers", "t5_small.jsonl"))
	for _, dir := range []string{"checkpoints/flux_schnell/tokenizer_2", "checkpoints/flux_dev/tokenizer_2", "checkpoints/sd3/tokenizer_3",
		"checkpoints/sd35/tokenizer_3", "tokenizers/t5_legacy"} {
		t.Run(dir, func(t *testing.T) {
			tok, err := Load(filepath.Join(golden, dir), tokenizer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				check(t, tok, l.Text, 0, l.IDs)
			}
		})
	}
}

// realFolder is a tokenizer folder with the real vocabulary.
func realFolder(t testing.TB, vocabulary, settings string) fstest.MapFS {
	data := shareddata.Dir(t, "data", "t5")
	return goldentest.Folder(t, map[string]string{
		vocabulary:                filepath.Join(data, vocabulary),
		"tokenizer_config.json":   filepath.Join(data, settings),
		"special_tokens_map.json": filepath.Join(data, "special_tokens_map.json"),
	})
}

func TestRealPrompts(t *testing.T) {
	lines := goldentest.Lines[struct {
		Text string  `json:"text"`
		T5   []int64 `json:"t5"`
	}](t, filepath.Join(shareddata.Dir(t, "data", "golden_tokens"), "golden.jsonl.gz"))
	for _, vocabulary := range []string{"tokenizer.json", "spiece.model"} {
		for _, settings := range []string{"tokenizer_config.json", "sd3_tokenizer_3_tokenizer_config.json"} {
			t.Run(vocabulary+" "+settings, func(t *testing.T) {
				tok := load(t, realFolder(t, vocabulary, settings), tokenizer.Options{})
				if tok.VocabSize() != 32100 || tok.MaxLength() != 512 {
					t.Errorf("VocabSize %d, MaxLength %d, want 32100 and 512", tok.VocabSize(), tok.MaxLength())
				}
				for _, l := range lines {
					check(t, tok, l.Text, 0, l.T5)
				}
			})
		}
	}
}
