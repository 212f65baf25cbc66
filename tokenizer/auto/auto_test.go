package auto

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/clip"
	"github.com/gesso-go/gesso/tokenizer/internal/goldentest"
	"github.com/gesso-go/gesso/tokenizer/unigram"
)

func kind(t tokenizer.Tokenizer) string {
	switch t.(type) {
	case *clip.Tokenizer:
		return "clip"
	case *unigram.Tokenizer:
		return "unigram"
	}
	return "none"
}

func TestLoadByClassOrFiles(t *testing.T) {
	const clipData, t5Data = "../clip/testdata/tokenizer", "../unigram/testdata"
	for name, c := range map[string]struct {
		folder fstest.MapFS
		config string
		want   string
	}{
		"CLIP by class":          {goldentest.Dir(t, clipData, "vocab.json", "merges.txt"), `{"tokenizer_class": "CLIPTokenizer"}`, "clip"},
		"CLIP by old class":      {goldentest.Dir(t, clipData, "tokenizer.json.gz"), `{"tokenizer_class": "CLIPTokenizerFast"}`, "clip"},
		"CLIP by vocab.json":     {goldentest.Dir(t, clipData, "vocab.json", "merges.txt"), "", "clip"},
		"CLIP by tokenizer.json": {goldentest.Dir(t, clipData, "tokenizer.json.gz"), `{}`, "clip"},
		"T5 by class":            {goldentest.Dir(t, t5Data, "spiece.model.gz"), `{"tokenizer_class": "T5Tokenizer"}`, "unigram"},
		"T5 by old class":        {goldentest.Dir(t, t5Data, "tokenizer.json.gz"), `{"tokenizer_class": "T5TokenizerFast"}`, "unigram"},
		"T5 by spiece.model":     {goldentest.Dir(t, t5Data, "spiece.model.gz"), "", "unigram"},
		"T5 by tokenizer.json":   {goldentest.Dir(t, t5Data, "tokenizer.json.gz"), `{}`, "unigram"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.config != "" {
				c.folder["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(c.config)}
			}
			tok, err := LoadFS(c.folder, tokenizer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := kind(tok); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		folder fstest.MapFS
		want   []string
	}{
		"empty":               {fstest.MapFS{}, []string{"tokenizer.json", "vocab.json", "spiece.model"}},
		"other class":         {fstest.MapFS{"tokenizer_config.json": file(`{"tokenizer_class": "BertTokenizer"}`)}, []string{"BertTokenizer", "CLIPTokenizer"}},
		"other model":         {fstest.MapFS{"tokenizer.json": file(`{"model": {"type": "WordPiece", "vocab": {"a": 0}}}`)}, []string{"WordPiece"}},
		"corrupt":             {fstest.MapFS{"tokenizer.json": file(`{"model": {"vocab": `)}, []string{"tokenizer.json", "/model/vocab"}},
		"corrupt class":       {fstest.MapFS{"tokenizer_config.json": file(`{"tokenizer_class": 1}`)}, []string{"tokenizer_config.json", "/tokenizer_class"}},
		"class without files": {fstest.MapFS{"tokenizer_config.json": file(`{"tokenizer_class": "T5Tokenizer"}`)}, []string{"spiece.model"}},
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
		})
	}
	dir := filepath.Join(t.TempDir(), "absent")
	if _, err := Load(dir, tokenizer.Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v, want one that names %s", err, dir)
	}
}

func TestCheckpoints(t *testing.T) {
	checkpoints := shareddata.Dir(t, "golden", "checkpoints")
	for dir, want := range map[string]string{
		"flux_schnell/tokenizer": "clip", "flux_schnell/tokenizer_2": "unigram",
		"flux_dev/tokenizer": "clip", "flux_dev/tokenizer_2": "unigram",
		"sd3/tokenizer": "clip", "sd3/tokenizer_2": "clip", "sd3/tokenizer_3": "unigram",
		"sd35/tokenizer": "clip", "sd35/tokenizer_2": "clip", "sd35/tokenizer_3": "unigram",
	} {
		tok, err := Load(filepath.Join(checkpoints, dir), tokenizer.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := kind(tok); got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
		e, err := tok.Encode("hi!", 20)
		if err != nil || !slices.Contains(e.Mask, 0) {
			t.Errorf("%s: %v, %v", dir, e, err)
		}
	}
}
