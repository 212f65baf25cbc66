package hf

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
)

// ReadVocab reads vocab.json, an object of token to id.
func ReadVocab(folder fs.FS) ([]Entry, error) {
	data, err := Read(folder, "vocab.json")
	if err != nil {
		return nil, err
	}
	s := newScanner(data)
	vocab, err := readVocab(s)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, fmt.Errorf("vocab.json: %w", jsonError(err))
	}
	return vocab, nil
}

func readVocab(s scanner) ([]Entry, error) {
	vocab := []Entry{}
	err := s.object(func(token string) error {
		id, err := s.id()
		vocab = append(vocab, Entry{token, id})
		return err
	})
	return vocab, err
}

// ReadMerges reads merges.txt: one pair a line, the most frequent first.
func ReadMerges(folder fs.FS) ([]Merge, error) {
	data, err := Read(folder, "merges.txt")
	if err != nil {
		return nil, err
	}
	merges, err := parseMerges(data)
	if err != nil {
		return nil, fmt.Errorf("merges.txt: %w", err)
	}
	return merges, nil
}

func parseMerges(data []byte) ([]Merge, error) {
	merges := make([]Merge, 0, bytes.Count(data, []byte{'\n'})+1)
	text := string(data)
	for n := 1; text != ""; n++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		line = strings.TrimSuffix(line, "\r")
		if line == "" && text == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		merge, err := parseMerge(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		merges = append(merges, merge)
	}
	return merges, nil
}

func parseMerge(line string) (Merge, error) {
	left, right, ok := strings.Cut(line, " ")
	if !ok || left == "" || right == "" || strings.Contains(right, " ") {
		return Merge{}, fmt.Errorf("want two tokens with a space between, got %q", line)
	}
	return Merge{left, right}, nil
}
