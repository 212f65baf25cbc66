package clip

import (
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

func TestSmallVocabularyGoldens(t *testing.T) {
	type line struct {
		Text  string  `json:"text"`
		IDs   []int64 `json:"ids"`
		IDs77 []int64 `json:"ids_len77"`
	}
	lines := goldentest.Lines[line](t, "testdata/clip_small.jsonl.gz")
	for name, folder := range map[string]fstest.MapFS{
		"tokenizer.json":            goldentest.Dir(t, "testdata/tokenizer", "tokenizer.json.gz", "*_*.json"),
		"vocab.json and merges.txt": goldentest.Dir(t, "testdata/tokenizer", "vocab.json", "merges.txt", "*_*.json"),
	} {
		t.Run(name, func(t *testing.T) {
			tok := load(t, folder, tokenizer.Options{})
			for _, l := range lines {
				check(t, tok, l.Text, 0, l.IDs)
				check(t, tok, l.Text, 77, l.IDs77)
			}
		})
	}
}

// Folders with other settings, and hard texts; see ../testdata/make.py.
func TestOtherSettingsGoldens(t *testing.T) {
	lines := goldentest.Lines[struct {
		Text       string  `json:"text"`
		Tokenizer  []int64 `json:"tokenizer"`
		Tokenizer2 []int64 `json:"tokenizer_2"`
		Bare       []int64 `json:"bare"`
		Normalized []int64 `json:"normalized"`
		AsText     []int64 `json:"as_text"`
		Cut        []int64 `json:"cut"`
		Decoded    string  `json:"decoded"`
	}](t, "testdata/more.jsonl.gz")
	first := load(t, goldentest.Dir(t, "testdata/tokenizer", "tokenizer.json.gz", "*_*.json"), tokenizer.Options{})
	secondFolder := goldentest.Dir(t, "testdata/tokenizer_2", "tokenizer.json.gz", "*_*.json")
	second := load(t, secondFolder, tokenizer.Options{})
	asText := load(t, secondFolder, tokenizer.Options{SpecialAsText: true})
	bareFolder := goldentest.Dir(t, "testdata/tokenizer", "vocab.json", "merges.txt")
	bare := load(t, bareFolder, tokenizer.Options{})
	bareFolder["tokenizer_config.json"] = &fstest.MapFile{Data: goldentest.File(t, "testdata/normalized_config.json")}
	normalized := load(t, bareFolder, tokenizer.Options{})
	for _, l := range lines {
		check(t, first, l.Text, 0, l.Tokenizer)
		check(t, second, l.Text, 0, l.Tokenizer2)
		check(t, asText, l.Text, 0, l.AsText)
		check(t, bare, l.Text, 0, l.Bare)
		check(t, normalized, l.Text, 0, l.Normalized)
		check(t, second, l.Text, 12, l.Cut)
		if got := second.Decode(l.Tokenizer2); got != l.Decoded {
			t.Errorf("Decode of %+q = %+q, want %+q", l.Text, got, l.Decoded)
		}
	}
}

// Random settings, and texts full of the tokens that they name.
func TestSettingsGoldens(t *testing.T) {
	for i, l := range goldentest.Lines[goldentest.Settings](t, "testdata/settings.jsonl.gz") {
		t.Run(strconv.Itoa(i+1), func(t *testing.T) {
			folder := goldentest.Dir(t, "testdata/tokenizer", "tokenizer.json.gz")
			if l.Files["tokenizer.json"] == nil {
				folder = goldentest.Dir(t, "testdata/tokenizer", "vocab.json", "merges.txt")
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

func TestFullVocabularyGoldens(t *testing.T) {
	golden := shareddata.Dir(t, "golden", "tokenizers")
	lines := goldentest.Lines[struct {
		Text  string  `json:"text"`
		IDs   []int64 `json:"ids"`
		IDs77 []int64 `json:"ids_len77"`
		JSON  []int64 `json:"tokenizer_json_ids"`
	}](t, filepath.Join(golden, "clip_full.jsonl"))
	full := filepath.Join(golden, "clip_full")
	for name, folder := range map[string]fstest.MapFS{
		"tokenizer.json":            goldentest.Dir(t, full, "tokenizer.json.gz", "*_*.json"),
		"vocab.json and merges.txt": goldentest.Dir(t, full, "vocab.json.gz", "merges.txt.gz", "*_*.json"),
	} {
		t.Run(name, func(t *testing.T) {
			tok := load(t, folder, tokenizer.Options{})
			for _, l := range lines {
				check(t, tok, l.Text, 0, l.IDs)
				check(t, tok, l.Text, 77, l.IDs77)
				check(t, tok, l.Text, 0, l.JSON)
			}
		})
	}
}

// realFolder is a tokenizer folder with the real vocabulary and the real settings of a repository.
func realFolder(t testing.TB, settings string) fstest.MapFS {
	data := shareddata.Dir(t, "data", "clip")
	files := map[string]string{
		"vocab.json":            filepath.Join(data, "vocab.json"),
		"merges.txt":            filepath.Join(data, "merges.txt"),
		"tokenizer_config.json": filepath.Join(data, settings+"tokenizer_config.json"),
	}
	if settings != "sd3_tokenizer_1_" { // not among the collected files; the same as FLUX.1's
		files["special_tokens_map.json"] = filepath.Join(data, settings+"special_tokens_map.json")
	}
	return goldentest.Folder(t, files)
}

func TestRealPrompts(t *testing.T) {
	lines := goldentest.Lines[struct {
		Text string  `json:"text"`
		CLIP []int64 `json:"clip"`
		SD3  []int64 `json:"clip_sd3_tokenizer_2"` // only where it differs
	}](t, filepath.Join(shareddata.Dir(t, "data", "golden_tokens"), "golden.jsonl.gz"))
	differing := 0
	for _, l := range lines {
		if l.SD3 != nil {
			differing++
		}
	}
	if differing != 11 {
		t.Errorf("%d lines have ids of their own for tokenizer_2, want 11", differing)
	}
	for _, settings := range []string{"flux_", "sd3_tokenizer_1_", "sd3_tokenizer_2_"} {
		t.Run(settings, func(t *testing.T) {
			tok := load(t, realFolder(t, settings), tokenizer.Options{})
			for _, l := range lines {
				want := l.CLIP
				if settings == "sd3_tokenizer_2_" && l.SD3 != nil {
					want = l.SD3
				}
				check(t, tok, l.Text, 0, want)
			}
		})
	}
}
