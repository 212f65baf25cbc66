// Package demo holds the small model that ships with Gesso, inside the binary: a FLUX.1 architecture trained by this
// project on emoji. MODEL_CARD.md says what it can draw.
package demo

import (
	"embed"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed all:model
var files embed.FS

// Name is what pictures made with the model say about it.
const Name = "gesso-demo"

// Folder returns a Diffusers folder with the model, which it writes below cache the first time.
func Folder(cache string) (string, error) {
	model, err := fs.Sub(files, "model")
	if err != nil {
		return "", err
	}
	key, err := fingerprint(model)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, Name+"-"+key)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil // it was renamed into place whole
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("unpack the built-in model: %w", err)
	}
	temp, err := os.MkdirTemp(cache, ".unpack-*")
	if err != nil {
		return "", fmt.Errorf("unpack the built-in model: %w", err)
	}
	defer os.RemoveAll(temp)
	if err := os.CopyFS(filepath.Join(temp, "model"), model); err != nil {
		return "", fmt.Errorf("unpack the built-in model: %w", err)
	}
	if err := os.Rename(filepath.Join(temp, "model"), dir); err != nil {
		if _, serr := os.Stat(dir); serr == nil {
			return dir, nil // another process was faster
		}
		return "", fmt.Errorf("unpack the built-in model: %w", err)
	}
	return dir, nil
}

// fingerprint tells two versions of the model apart. It is made at every start, so it is a checksum that costs
// milliseconds; nobody forges it.
func fingerprint(model fs.FS) (string, error) {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	err := fs.WalkDir(model, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(model, path)
		fmt.Fprintln(h, path, len(b))
		h.Write(b)
		return err
	})
	return fmt.Sprintf("%08x", h.Sum32()), err
}
