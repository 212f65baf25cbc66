// Package auto opens a tokenizer folder with the tokenizer that it was saved for.
//
// Example:
//
//	tok, err := auto.Load("FLUX.1-schnell/tokenizer_2", tokenizer.Options{}) // a *unigram.Tokenizer
package auto

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/clip"
	"github.com/gesso-go/gesso/tokenizer/internal/hf"
	"github.com/gesso-go/gesso/tokenizer/unigram"
)

// Load opens a folder by the tokenizer_class that its tokenizer_config.json names, or by its files if it names none.
func Load(dir string, o tokenizer.Options) (tokenizer.Tokenizer, error) {
	t, err := LoadFS(os.DirFS(dir), o)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", dir, err)
	}
	return t, nil
}

// LoadFS is Load for a folder of any file system.
func LoadFS(folder fs.FS, o tokenizer.Options) (tokenizer.Tokenizer, error) {
	config, err := hf.ReadConfig(folder, nil)
	if err != nil {
		return nil, err
	}
	class := config.Class
	if class == "" {
		if class, err = guess(folder); err != nil {
			return nil, err
		}
	}
	switch strings.TrimSuffix(class, "Fast") {
	case "CLIPTokenizer":
		return clip.LoadFS(folder, o)
	case "T5Tokenizer":
		return unigram.LoadFS(folder, o)
	}
	return nil, fmt.Errorf("tokenizer_config.json: tokenizer_class %s is not supported: want CLIPTokenizer or T5Tokenizer", class)
}

// guess tells the class of a folder without settings from its files.
func guess(folder fs.FS) (string, error) {
	exists := func(name string) bool {
		_, err := fs.Stat(folder, name)
		return !errors.Is(err, fs.ErrNotExist)
	}
	switch {
	case exists("tokenizer.json"):
		file, err := hf.ReadTokenizerJSON(folder)
		switch {
		case err != nil:
			return "", err
		case file.Model.Pieces != nil:
			return "T5Tokenizer", nil
		case file.Model.EndOfWordSuffix == "</w>":
			return "CLIPTokenizer", nil
		}
		return "", fmt.Errorf("tokenizer.json: its %s model is not supported: want CLIP's byte-pair encoding or T5's unigram model", file.Model.Type)
	case exists("spiece.model"):
		return "T5Tokenizer", nil
	case exists("vocab.json"):
		return "CLIPTokenizer", nil
	}
	return "", fmt.Errorf("no tokenizer here: want tokenizer.json, vocab.json with merges.txt, or spiece.model: %w", fs.ErrNotExist)
}
