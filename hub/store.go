package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// A store is the cache folder, in the layout that huggingface_hub made the standard:
//
//	models--org--name/refs/main             the commit that main was at last
//	models--org--name/blobs/<etag>          contents, named by sha256 or git's sha1
//	models--org--name/snapshots/<commit>/…  links to blobs
//	models--org--name/trees/<commit>.json   the listing of that commit
//	.locks/models--org--name/<etag>.lock    held while a blob is made
//	blobs/<xx>/<xet hash>                   contents that several repositories share
type store struct {
	dir        string
	symlink    func(target, link string) error
	warn       func(string)
	noSymlinks bool

	probe sync.Once
	links bool
}

// folder returns the repository's own folder.
func (s *store) folder(ref Ref) string {
	return filepath.Join(s.dir, ref.Kind.plural()+"--"+strings.ReplaceAll(ref.Repo, "/", "--"))
}

func (s *store) blob(ref Ref, etag string) string { return filepath.Join(s.folder(ref), "blobs", etag) }

func (s *store) snapshot(ref Ref, commit string) string {
	return filepath.Join(s.folder(ref), "snapshots", commit)
}

// pointer returns where the snapshot has the file. Path is checked to be safe when a listing is read.
func (s *store) pointer(ref Ref, commit, path string) string {
	return filepath.Join(s.snapshot(ref, commit), filepath.FromSlash(path))
}

func (s *store) lock(ref Ref, etag string) string {
	return filepath.Join(s.dir, ".locks", filepath.Base(s.folder(ref)), etag+".lock")
}

// cachedCommit returns what the revision pointed to when the Hub was last asked.
func (s *store) cachedCommit(ref Ref) (string, bool) {
	if commitName.MatchString(ref.revision()) {
		return ref.revision(), true
	}
	data, err := os.ReadFile(filepath.Join(s.folder(ref), "refs", filepath.FromSlash(ref.revision())))
	commit := strings.TrimSpace(string(data))
	return commit, err == nil && commitName.MatchString(commit)
}

// setRef records that the revision points to the commit.
func (s *store) setRef(ref Ref, commit string) error {
	if ref.revision() == commit {
		return nil
	}
	path := filepath.Join(s.folder(ref), "refs", filepath.FromSlash(ref.revision()))
	if old, err := os.ReadFile(path); err == nil && string(old) == commit {
		return nil
	}
	return writeFile(path, []byte(commit), 0o644)
}

// setAbsent records that the commit has no such file, as huggingface_hub does.
func (s *store) setAbsent(ref Ref, commit, path string) {
	path = filepath.Join(s.folder(ref), ".no_exist", commit, filepath.FromSlash(path))
	if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			f.Close()
		}
	}
}

// tag marks the cache folder for backup programs, see bford.info/cachedir.
func (s *store) tag() {
	path := filepath.Join(s.dir, "CACHEDIR.TAG")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		writeFile(path, []byte("Signature: 8a477f597d28d172789f06886806bc55\n# This file is a cache directory tag created by Gesso.\n# For information about cache directory tags see https://bford.info/cachedir/\n"), 0o644)
	}
}

// writeFile writes beside the path and renames, so that readers see the old file or the new one.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := temporary(path)
	if err := os.WriteFile(tmp, data, mode); err != nil {
		os.Remove(tmp)
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}

func temporary(path string) string { return fmt.Sprintf("%s.%08x.tmp", path, rand.Uint32()) }

// canLink reports whether the cache folder can hold symbolic links. It tries once.
func (s *store) canLink() bool {
	s.probe.Do(func() {
		if s.noSymlinks {
			return
		}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			s.warn(fmt.Sprintf("cache folder: %v", err))
			return
		}
		// A name of its own, so that processes that try at the same time don't meet.
		link := temporary(filepath.Join(s.dir, "link"))
		defer os.Remove(link)
		if err := s.symlink("nowhere", link); err != nil {
			s.warn(fmt.Sprintf("%s can't hold symbolic links (%v): files are stored in the snapshots themselves, and several revisions of a model take more space", s.dir, err))
			return
		}
		s.links = true
	})
	return s.links
}

// place makes the snapshot's file lead to the blob. Where links don't work, a fresh blob is moved into the snapshot, and
// one that was there before is linked hard or copied.
func (s *store) place(ref Ref, commit, path, etag string, fresh bool) error {
	pointer, blob := s.pointer(ref, commit, path), s.blob(ref, etag)
	if err := os.MkdirAll(filepath.Dir(pointer), 0o755); err != nil {
		return err
	}
	if s.canLink() {
		up := strings.Repeat("../", strings.Count(path, "/")+2)
		return s.replaceLink(filepath.FromSlash(up+"blobs/"+etag), pointer)
	}
	if fresh {
		return rename(blob, pointer)
	}
	return linkOrCopy(blob, pointer)
}

// replaceLink puts a symbolic link at path, whatever is there now.
func (s *store) replaceLink(target, path string) error {
	if old, err := os.Readlink(path); err == nil && old == target {
		return nil
	}
	tmp := temporary(path)
	if err := s.symlink(target, tmp); err != nil {
		return err
	}
	if err := rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}

// rename replaces to. On Windows a file that somebody has open can't be replaced; if it has the same size it will do.
func rename(from, to string) error {
	err := os.Rename(from, to)
	if err != nil && runtime.GOOS == "windows" {
		a, err1 := os.Stat(from)
		b, err2 := os.Stat(to)
		if err1 == nil && err2 == nil && a.Size() == b.Size() {
			return os.Remove(from)
		}
	}
	return err
}

// linkOrCopy gives a file a second name without a second copy where the file system can do that.
func linkOrCopy(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	tmp := temporary(to)
	defer os.Remove(tmp)
	if os.Link(from, tmp) != nil {
		if err := copyFile(from, tmp); err != nil {
			return err
		}
	}
	return rename(tmp, to)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// namesIn returns the paths of a folder's files whose names begin and end so. Unlike filepath.Glob it takes the folder's
// name as it is.
func namesIn(dir, prefix, suffix string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// regular reports whether path leads to a whole file: of that size, or of any if size is negative.
func regular(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (size < 0 || info.Size() == size)
}

// repositories returns what the cache folder holds, by folder name.
func (s *store) repositories() []Ref {
	entries, _ := os.ReadDir(s.dir)
	var refs []Ref
	for _, e := range entries {
		if ref, ok := refOfFolder(e.Name()); ok && e.IsDir() {
			refs = append(refs, ref)
		}
	}
	return refs
}

func refOfFolder(name string) (Ref, bool) {
	kind, repo, ok := strings.Cut(name, "--")
	k, known := kindOf[kind]
	if !ok || !known || repo == "" {
		return Ref{}, false
	}
	return Ref{Kind: k, Repo: strings.Replace(repo, "--", "/", 1)}, true
}

// nearest returns the name in the cache that is most like ref's, or "" if none is close.
func (s *store) nearest(ref Ref) string {
	best, found := len(ref.Repo)/3+1, ""
	for _, r := range s.repositories() {
		if d := distance(strings.ToLower(r.Repo), strings.ToLower(ref.Repo)); r.Kind == ref.Kind && d < best && r.Repo != ref.Repo {
			best, found = d, r.Repo
		}
	}
	return found
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
