package hub

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

// The cache-wide store of Xet files, which huggingface_hub 2.x keeps beside the repositories (utils/_shared_blobs.py):
// blobs/<xx>/<hash> holds a content, <hash>.refs the repository blobs that lead to it, and <hash>.lock guards both. A
// marker says that the folder is such a store. Gesso uses what is there and takes itself out of it; it adds no content.
const (
	sharedMarker = ".huggingface-shared-blobs"
	sharedLayout = "1\n"
)

func (s *store) sharedDir() string { return filepath.Join(s.dir, "blobs") }

func (s *store) hasShared() bool {
	marker := filepath.Join(s.sharedDir(), sharedMarker)
	info, err := os.Lstat(marker)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	data, err := os.ReadFile(marker)
	return err == nil && string(data) == sharedLayout
}

func (s *store) sharedPath(xetHash string) string {
	return filepath.Join(s.sharedDir(), xetHash[:2], xetHash)
}

// sharedHas reports whether the store has the content.
func (s *store) sharedHas(e Entry) bool {
	if e.Xet == "" || e.Size < 0 || !s.hasShared() {
		return false
	}
	info, err := os.Lstat(s.sharedPath(e.Xet))
	return err == nil && info.Mode().IsRegular() && info.Size() == e.Size
}

// linkShared makes the repository's blob a link to the store's content, if the store has it. The reference is on disk
// before the link is, so that nobody deletes what is in use.
func (s *store) linkShared(ref Ref, e Entry) bool {
	if !s.sharedHas(e) {
		return false
	}
	path, blob := s.sharedPath(e.Xet), s.blob(ref, e.etag())
	unlock, err := lockShared(path)
	if err != nil {
		return false
	}
	defer unlock()
	if !s.sharedHas(e) || os.MkdirAll(filepath.Dir(blob), 0o755) != nil {
		return false
	}
	f, err := os.OpenFile(path+".refs", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return false
	}
	_, err = f.WriteString(s.relative(blob) + "\n")
	if e := f.Sync(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	target := filepath.Join("..", "..", "blobs", e.Xet[:2], e.Xet)
	return err == nil && s.replaceLink(target, blob) == nil
}

func (s *store) relative(blob string) string {
	rel, err := filepath.Rel(s.dir, blob)
	if err != nil {
		return blob
	}
	return filepath.ToSlash(rel)
}

func lockShared(path string) (func(), error) {
	l := flock.New(path+".lock", flock.SetPermissions(0o666))
	if err := l.Lock(); err != nil {
		return nil, err
	}
	return func() { l.Close() }, nil
}

// sharedTarget returns the store's file that a repository blob is a link to.
func (s *store) sharedTarget(blob string) (string, bool) {
	target, err := os.Readlink(blob)
	if err != nil {
		return "", false
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(blob), target)
	}
	name := filepath.Base(target)
	if !sha256Name.MatchString(name) || target != s.sharedPath(name) {
		return "", false
	}
	return target, true
}

var blobReference = regexp.MustCompile(`^(models|datasets|spaces|kernels)--[^/\x00]+/blobs/[^/\x00]+$`)

// sweepShared deletes a content of the store that no repository leads to any more and returns its size. Where the
// references can't be read nothing is deleted.
func (s *store) sweepShared(path string) (freed int64, err error) {
	if !s.hasShared() {
		return 0, nil
	}
	unlock, err := lockShared(path)
	if err != nil {
		return 0, err
	}
	defer unlock()
	data, err := os.ReadFile(path + ".refs")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var used []string
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		name := strings.TrimRight(string(line), "\r")
		if !blobReference.MatchString(name) || safePath(name) != nil {
			continue
		}
		if target, ok := s.sharedTarget(filepath.Join(s.dir, filepath.FromSlash(name))); ok && target == path && !slices.Contains(used, name) {
			used = append(used, name)
		}
	}
	if len(used) > 0 {
		slices.Sort(used)
		return 0, writeFile(path+".refs", []byte(strings.Join(used, "\n")+"\n"), 0o666)
	}
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	if err := os.Remove(path); err != nil {
		return 0, fmt.Errorf("shared blob: %w", err)
	}
	os.Remove(path + ".refs")
	return info.Size(), nil
}

// elsewhere returns a file with the entry's content in another repository or snapshot, or "".
func (s *store) elsewhere(ref Ref, e Entry) string {
	etag := e.etag()
	if !sha256Name.MatchString(etag) {
		return "" // small files aren't worth a search
	}
	if !s.canLink() {
		commits, _ := os.ReadDir(filepath.Join(s.folder(ref), "snapshots"))
		for _, c := range commits {
			tree, _ := s.cachedTree(ref, c.Name())
			for _, other := range tree {
				if path := s.pointer(ref, c.Name(), other.Path); other.etag() == etag && safePath(other.Path) == nil && regular(path, e.Size) {
					return path
				}
			}
		}
	}
	for _, other := range s.repositories() {
		path := s.blob(other, etag)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == e.Size && (other.Kind != ref.Kind || other.Repo != ref.Repo) {
			return path
		}
	}
	return ""
}
