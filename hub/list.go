package hub

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Cached is a repository in the cache.
type Cached struct {
	Ref       Ref
	Size      int64 // bytes on the disk; what several revisions share counts once
	Partial   int64 // bytes of unfinished downloads
	Revisions []CachedRevision
}

// CachedRevision is one commit of a cached repository.
type CachedRevision struct {
	Commit   string
	Names    []string // branches and tags that were this commit when the Hub was last asked
	Files    int
	Size     int64 // bytes of its files
	Modified time.Time
}

// List returns what the cache holds, by name, and how many bytes all of it takes: a content that several repositories
// share counts for each of them, and once in the total. Nothing is sent to the Hub.
func List(cfg Config) (repos []Cached, total int64, err error) {
	s, err := newSession(cfg, nil)
	if err != nil {
		return nil, 0, err
	}
	defer s.close()
	var all tally
	for _, ref := range s.store.repositories() {
		c := Cached{Ref: ref, Revisions: s.store.revisions(ref)}
		var own tally
		blobs, _ := os.ReadDir(filepath.Join(s.store.folder(ref), "blobs"))
		for _, b := range blobs {
			path := s.store.blob(ref, b.Name())
			if strings.HasSuffix(b.Name(), ".incomplete") {
				if info, err := os.Lstat(path); err == nil && !strings.HasSuffix(b.Name(), ".journal.incomplete") {
					c.Partial += min(factsOf(info).allocated, info.Size())
				}
				continue
			}
			own.add(path)
			all.add(path)
		}
		s.store.eachFile(ref, func(_, path string, d fs.DirEntry) {
			if d.Type().IsRegular() { // no link to a blob: where links don't work
				own.add(path)
				all.add(path)
			}
		})
		c.Size = own.bytes
		if len(c.Revisions) > 0 || c.Size+c.Partial > 0 {
			repos = append(repos, c)
		}
	}
	slices.SortFunc(repos, func(a, b Cached) int { return cmp.Compare(a.Ref.String(), b.Ref.String()) })
	return repos, all.bytes, nil
}

// revisions returns the commits of which the cache has a snapshot, the latest first.
func (s *store) revisions(ref Ref) []CachedRevision {
	names := map[string][]string{}
	for name, commit := range s.refs(ref) {
		names[commit] = append(names[commit], name)
	}
	found := map[string]*CachedRevision{}
	s.eachFile(ref, func(commit, path string, _ fs.DirEntry) {
		r := found[commit]
		if r == nil {
			r = &CachedRevision{Commit: commit, Names: names[commit]}
			slices.Sort(r.Names)
			found[commit] = r
		}
		if info, err := os.Stat(path); err == nil {
			r.Files++
			r.Size += info.Size()
			if info.ModTime().After(r.Modified) {
				r.Modified = info.ModTime()
			}
		}
	})
	out := []CachedRevision{}
	for _, r := range found {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b CachedRevision) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.Commit, b.Commit))
	})
	return out
}

// refs returns what branches and tags pointed to.
func (s *store) refs(ref Ref) map[string]string {
	refs := map[string]string{}
	dir := filepath.Join(s.folder(ref), "refs")
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		data, readErr := os.ReadFile(path)
		if commit := strings.TrimSpace(string(data)); err == nil && readErr == nil && commitName.MatchString(commit) {
			refs[filepath.ToSlash(rel)] = commit
		}
		return nil
	})
	return refs
}

// eachFile calls fn for every file of every snapshot, links as they are.
func (s *store) eachFile(ref Ref, fn func(commit, path string, d fs.DirEntry)) {
	dir := filepath.Join(s.folder(ref), "snapshots")
	commits, _ := os.ReadDir(dir)
	for _, c := range commits {
		if !commitName.MatchString(c.Name()) {
			continue
		}
		filepath.WalkDir(filepath.Join(dir, c.Name()), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				fn(c.Name(), path, d)
			}
			return nil
		})
	}
}

// fileID is the same for all names of a file; zero where the system doesn't tell.
type fileID struct{ device, file uint64 }

type fileFacts struct {
	id        fileID
	links     uint64 // names that the file has
	allocated int64  // bytes on the disk, holes left out
}

// A tally sums up the sizes of files, each once however many names and links lead to it.
type tally struct {
	seen  map[fileID]bool
	bytes int64
}

func (t *tally) add(path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if id := factsOf(info).id; id != (fileID{}) {
		if t.seen[id] {
			return
		}
		if t.seen == nil {
			t.seen = map[fileID]bool{}
		}
		t.seen[id] = true
	}
	t.bytes += info.Size()
}
