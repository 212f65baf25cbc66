// Package hf reads tokenizer folders in the layout that Hugging Face libraries save: tokenizer.json, tokenizer_config.json,
// special_tokens_map.json, added_tokens.json, vocab.json and merges.txt. It knows the files and their conventions, not
// what any model does with text.
package hf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
)

const lfsHeader = "version https://git-lfs.github.com/spec/"

// ErrLFSPointer reports a file whose content was never fetched: it holds the few lines that Git LFS leaves in its place.
var ErrLFSPointer = errors.New("is a Git LFS pointer, not the file itself: fetch it with git lfs pull or download it again")

// Read gives the content of a file of the folder. The error names the file; errors.Is(err, fs.ErrNotExist) tells an
// absent file from others.
func Read(folder fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(folder, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if bytes.HasPrefix(data, []byte(lfsHeader)) {
		return nil, fmt.Errorf("%s %w", name, ErrLFSPointer)
	}
	return data, nil
}

// ReadOptional is Read, but an absent file is nil without an error.
func ReadOptional(folder fs.FS, name string) ([]byte, error) {
	data, err := Read(folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
