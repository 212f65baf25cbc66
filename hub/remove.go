package hub

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

// Removed is what Remove took out of the cache.
type Removed struct {
	Ref     Ref
	Commits []string
	Freed   int64 // bytes that nothing uses any more
}

// Remove takes a repository out of the cache, or with a revision that revision alone: a branch, a tag, a commit, or the
// first six or more digits of one. Contents that another revision or repository uses stay.
func Remove(cfg Config, reference string) (*Removed, error) {
	s, err := newSession(cfg, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ref, err := ParseRef(reference, s.Endpoint)
	if err != nil {
		return nil, err
	}
	if ref.Path != "" {
		return nil, fmt.Errorf("%s names a part of a repository: only a whole repository, or a revision of one, can be removed", reference)
	}
	folder := s.store.folder(ref)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		msg := fmt.Sprintf("%s is not in the cache %s", ref, s.CacheDir)
		if near := s.store.nearest(ref); near != "" {
			msg += "; did you mean " + near + "?"
		}
		return nil, errorf(ErrNotCached, nil, "%s", msg)
	}
	var all []string
	snapshots, _ := os.ReadDir(filepath.Join(folder, "snapshots"))
	for _, d := range snapshots {
		all = append(all, d.Name())
	}
	gone := all
	if ref.Revision != "" {
		commit, err := s.store.revision(ref, all)
		if err != nil {
			return nil, err
		}
		gone = []string{commit}
	}
	if file := s.store.busy(ref); file != "" {
		return nil, fmt.Errorf("%s is being downloaded by another process (%s is locked): wait for it, or stop it", ref.Repo, file)
	}
	r := reaper{store: &s.store}
	if len(gone) == len(all) {
		r.repository(ref)
	} else {
		r.revisions(ref, gone)
	}
	r.sweep()
	if r.err != nil {
		return nil, fmt.Errorf("remove %s: %w", ref, r.err)
	}
	return &Removed{Ref: ref, Commits: gone, Freed: r.freed}, nil
}

// revision returns the cached commit that ref's revision means.
func (s *store) revision(ref Ref, commits []string) (string, error) {
	if commit, ok := s.cachedCommit(ref); ok && slices.Contains(commits, commit) {
		return commit, nil
	}
	var found []string
	for _, c := range commits {
		if len(ref.Revision) >= 6 && strings.HasPrefix(c, ref.Revision) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", errorf(ErrNotCached, nil, "%s has no revision %s in the cache (gesso list shows what is there)", ref.Repo, ref.Revision)
	}
	return "", fmt.Errorf("%s: several cached commits begin with %s: give more digits", ref.Repo, ref.Revision)
}

// busy returns the name of a lock file that somebody holds.
func (s *store) busy(ref Ref) string {
	for _, path := range namesIn(filepath.Join(s.dir, ".locks", filepath.Base(s.folder(ref))), "", ".lock") {
		l := flock.New(path)
		if ok, err := l.TryLock(); err == nil && !ok {
			return filepath.Base(path)
		}
		l.Close()
	}
	return ""
}

// A reaper deletes files and counts what contents that frees. Names go before what they lead to, so that whoever looks in
// between, or after a kill, finds a revision that isn't there rather than one that is broken.
type reaper struct {
	*store
	shared []string // contents of the cache-wide store that lost a reference
	freed  int64
	err    error // the first one
}

func (r *reaper) fail(err error) {
	if r.err == nil && err != nil && !os.IsNotExist(err) {
		r.err = err
	}
}

// file deletes one name. The bytes are free when it was the last one.
func (r *reaper) file(path string) {
	info, err := os.Lstat(path)
	if err != nil {
		r.fail(err)
		return
	}
	if target, ok := r.sharedTarget(path); ok {
		r.shared = append(r.shared, target)
	}
	facts := factsOf(info)
	if err := os.Remove(path); err != nil {
		r.fail(err)
		return
	}
	if info.Mode().IsRegular() && facts.links <= 1 {
		r.freed += min(info.Size(), facts.allocated)
	}
}

// tree deletes a folder.
func (r *reaper) tree(dir string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			r.file(path)
		}
		return nil
	})
	r.fail(os.RemoveAll(dir))
}

func (r *reaper) repository(ref Ref) {
	folder := r.folder(ref)
	r.fail(os.RemoveAll(filepath.Join(folder, "refs")))
	r.tree(filepath.Join(folder, "snapshots"))
	r.tree(filepath.Join(folder, "blobs"))
	r.fail(os.RemoveAll(folder))
	r.fail(os.RemoveAll(filepath.Join(r.dir, ".locks", filepath.Base(folder))))
}

func (r *reaper) revisions(ref Ref, gone []string) {
	folder := r.folder(ref)
	for name, commit := range r.refs(ref) {
		if slices.Contains(gone, commit) {
			r.fail(os.Remove(filepath.Join(folder, "refs", filepath.FromSlash(name))))
		}
	}
	lost, used := map[string]bool{}, map[string]bool{}
	r.eachFile(ref, func(commit, path string, d fs.DirEntry) {
		target, err := os.Readlink(path)
		if err != nil {
			return
		}
		if blob := filepath.Base(target); slices.Contains(gone, commit) {
			lost[blob] = true
		} else {
			used[blob] = true
		}
	})
	for _, commit := range gone {
		r.tree(r.snapshot(ref, commit))
		r.fail(os.RemoveAll(filepath.Join(folder, ".no_exist", commit)))
	}
	for blob := range lost {
		if !used[blob] && etagName.MatchString(blob) {
			r.file(r.blob(ref, blob))
		}
	}
	for _, commit := range gone {
		r.fail(os.Remove(r.treePath(ref, commit)))
	}
}

// sweep deletes contents of the cache-wide store that nobody leads to any more.
func (r *reaper) sweep() {
	for _, path := range r.shared {
		n, err := r.sweepShared(path)
		r.freed += n
		r.fail(err)
	}
}
