package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/hub"
)

// localPath tells a path from a repository's name: it exists, or it can't be such a name. A path that leads nowhere is an
// error.
func localPath(model string) (bool, error) {
	if _, err := os.Stat(model); err == nil {
		return true, nil
	}
	if !isPath(model) {
		return false, nil
	}
	hint := "a repository on the Hub is org/name"
	if strings.HasPrefix(model, "~") {
		hint = "the shell has not put your home folder in place of ~: leave out the quotes or the = before it"
	}
	return false, fmt.Errorf("%s: no such file or folder (%s)", model, hint)
}

// isPath tells by the name alone.
func isPath(name string) bool {
	if strings.Contains(name, "://") {
		return false
	}
	repo, _, _ := strings.Cut(name, "@")
	return filepath.IsAbs(name) || strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~") ||
		strings.Contains(repo, "\\") || strings.HasSuffix(repo, "/") || strings.Count(repo, "/") > 1 ||
		slices.Contains([]string{".safetensors", ".gguf", ".ckpt", ".png"}, strings.ToLower(filepath.Ext(repo)))
}

// orFolder adds to what the Hub says of org/name that there is no such folder either, which may have been meant.
func orFolder(model string, err error) error {
	for _, is := range []error{hub.ErrNotFound, hub.ErrUnauthorized, hub.ErrOffline, hub.ErrNotCached} {
		if errors.Is(err, is) && !strings.Contains(model, "://") {
			return fmt.Errorf("%w; nor is there a folder %s here", err, model)
		}
	}
	return err
}
