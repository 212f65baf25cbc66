package hub

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gesso-go/gesso/hub/internal/wire"
)

// Options say what of a repository is wanted. The zero value means: what the pipeline needs, of the main branch.
type Options struct {
	Revision string   // branch, tag or commit, unless the reference names one
	Variant  string   // of the weights, such as fp16
	Include  []string // shell patterns: these files, in place of what the pipeline needs
	Exclude  []string // shell patterns: not these
	DryRun   bool     // find out what would be fetched, and fetch nothing
	Progress func(Event)
}

// Result is what Pull found or made.
type Result struct {
	Ref    Ref
	Commit string
	Dir    string // the snapshot's folder
	Files  []File
}

// File is one file of a Result.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`   // bytes, -1 if unknown
	Cached bool   `json:"cached"` // it was there before
}

// Resolve returns the local folder, or file, that a reference means. A folder or file that exists is itself; what a
// repository reference names is taken from the cache, and what is missing there is downloaded.
func Resolve(ctx context.Context, cfg Config, ref string, opt Options) (string, error) {
	if _, err := os.Stat(ref); err == nil {
		return filepath.Abs(ref)
	}
	if filepath.IsAbs(ref) || strings.HasPrefix(ref, ".") || strings.HasPrefix(ref, "~") {
		return "", fmt.Errorf("%s: no such folder", ref)
	}
	r, err := Pull(ctx, cfg, ref, opt)
	if err != nil {
		return "", err
	}
	return filepath.Join(r.Dir, filepath.FromSlash(r.Ref.Path)), nil
}

// Pull brings what a reference means into the cache. One request tells that a cached branch is up to date, and none is
// sent for a commit that is cached. When the Hub can't be reached, what the cache has whole is used.
func Pull(ctx context.Context, cfg Config, reference string, opt Options) (*Result, error) {
	s, err := newSession(cfg, opt.Progress)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ref, err := ParseRef(reference, s.Endpoint)
	if err != nil {
		return nil, err
	}
	if ref, err = ref.At(opt.Revision); err != nil {
		return nil, err
	}
	r, err := s.pull(ctx, ref, opt)
	if err == nil && !opt.DryRun {
		s.store.sweepPartials(ref)
	}
	return r, err
}

func (s *session) pull(ctx context.Context, ref Ref, opt Options) (*Result, error) {
	commit, known := s.store.cachedCommit(ref)
	var local *Result
	var localErr error
	certain := false
	if known {
		local, certain, localErr = s.fromCache(ref, commit, opt)
	} else {
		localErr = s.notCached(ref, opt)
	}
	if localErr == nil && certain && ref.Kind != Bucket && ref.revision() == commit {
		return local, nil // a commit never changes
	}
	r, err := s.fromHub(ctx, ref, opt, localErr == nil)
	switch {
	case err == nil || ctx.Err() != nil:
		return r, err
	case localErr == nil && refused(err): // a token ran out, a model was taken down: what is here stays usable
	case !unreachable(err):
		return nil, err
	}
	if known && localErr != nil && !opt.DryRun {
		local, localErr = s.relink(ctx, ref, commit, opt, localErr)
	}
	var fetching *fetchError
	switch {
	case localErr == nil:
		s.Warn(fmt.Sprintf("%v: using what the cache has of %s (commit %.7s)", err, ref, commit))
		return local, nil
	case errors.As(err, &fetching):
		return nil, err // it was reached, and broke off later
	}
	return nil, neither(localErr, err)
}

// neither joins what the cache lacks with why the Hub can't give it.
func neither(localErr, err error) error {
	if errors.Is(err, ErrOffline) {
		return errorf(ErrOffline, localErr, "%v, and %v", localErr, ErrOffline)
	}
	kind := ErrNotCached
	if errors.Is(localErr, ErrIncomplete) {
		kind = ErrIncomplete
	}
	return errorf(kind, err, "%v, and the Hub can't be reached: %v", localErr, err)
}

// A fetchError comes from the download, after the Hub said what there is.
type fetchError struct{ err error }

func (e *fetchError) Error() string { return e.err.Error() }
func (e *fetchError) Unwrap() error { return e.err }

// fromHub asks the Hub what the reference means, and downloads what isn't cached.
func (s *session) fromHub(ctx context.Context, ref Ref, opt Options, quick bool) (*Result, error) {
	commit := ref.revision()
	var info repoInfo
	var entries []Entry
	var err error
	switch {
	case ref.Kind == Bucket:
		w := s.meta
		if quick {
			q := *w
			q.Tries = 1
			s.meta = &q
		}
		entries, err = s.tree(ctx, ref, "")
		s.meta = w
		if err != nil {
			return nil, err
		}
		commit = listingName(entries)
		if err := s.store.setTree(ref, commit, entries); err != nil {
			s.Warn(fmt.Sprintf("listing of %s: %v", ref, err))
		}
	case !commitName.MatchString(commit):
		if info, err = s.info(ctx, ref, quick); err != nil {
			return nil, err
		}
		commit = info.SHA
	}
	if ref.Kind != Bucket {
		r, certain, err := s.fromCache(ref, commit, opt)
		if err == nil && (certain || s.hasSiblings(ref, commit, info, opt)) {
			if !opt.DryRun {
				s.remember(ref, commit)
			}
			return r, nil
		}
		if entries, err = s.listing(ctx, ref, commit, &info, opt.DryRun); err != nil {
			return nil, err
		}
	}
	chosen, err := s.choose(ctx, ref, commit, entries, opt)
	if err != nil {
		return nil, err
	}
	if chosen, err = s.identify(ctx, ref, commit, chosen); err != nil {
		return nil, err
	}
	r := s.result(ref, commit, chosen)
	if opt.DryRun {
		return r, nil
	}
	if err := s.fetchAll(ctx, ref, commit, chosen); err != nil {
		return nil, &fetchError{err}
	}
	s.remember(ref, commit)
	return r, nil
}

// hasSiblings reports whether the cache has all wanted files that the Hub names, for want of a listing.
func (s *session) hasSiblings(ref Ref, commit string, info repoInfo, opt Options) bool {
	entries := siblings(info)
	if len(entries) == 0 {
		return false
	}
	chosen, err := chooseListed(ref, entries, opt, func(e Entry) ([]byte, error) {
		return os.ReadFile(s.store.pointer(ref, commit, e.Path))
	})
	return err == nil && !slices.ContainsFunc(chosen, func(e Entry) bool { return !s.cached(ref, commit, e) })
}

// siblings returns the files that the Hub names along with the commit: names only.
func siblings(info repoInfo) (entries []Entry) {
	for _, f := range info.Siblings {
		entries = append(entries, Entry{Path: f.Name, Size: -1})
	}
	sortEntries(entries)
	return entries
}

// remember notes what the revision points to, now that all of it is there.
func (s *session) remember(ref Ref, commit string) {
	if err := s.store.setRef(ref, commit); err != nil {
		s.Warn(fmt.Sprintf("revision of %s: %v", ref, err))
	}
}

// listingName gives a bucket's listing a name in the place of a commit: buckets have no versions, but a snapshot of the
// cache must never change.
func listingName(entries []Entry) string {
	h := sha1.New()
	for _, e := range entries {
		fmt.Fprintf(h, "%s\x00%s\x00", e.Path, e.etag())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// listing returns the commit's files, from the cache or the Hub. A Hub without listings, as some mirrors are, still
// tells names; then the entries have no identity yet.
func (s *session) listing(ctx context.Context, ref Ref, commit string, info *repoInfo, dry bool) ([]Entry, error) {
	if entries, ok := s.store.cachedTree(ref, commit); ok {
		return entries, nil
	}
	entries, err := s.tree(ctx, ref, commit)
	var status *wire.StatusError
	switch {
	case err == nil:
		if !dry {
			if err := s.store.setTree(ref, commit, entries); err != nil {
				return nil, writeError(s.store.treePath(ref, commit), err)
			}
		}
		return entries, nil
	case !errors.As(err, &status) || status.Header.Get("X-Error-Code") != "" ||
		status.Status != 404 && status.Status != 405 && status.Status != 501:
		return nil, err
	}
	if info.SHA == "" {
		if *info, err = s.info(ctx, ref, false); err != nil {
			return nil, err
		}
	}
	return siblings(*info), nil
}

// identify asks for what a listing doesn't tell about files, one by one.
func (s *session) identify(ctx context.Context, ref Ref, commit string, entries []Entry) ([]Entry, error) {
	entries = slices.Clone(entries)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.Workers)
	for i := range entries {
		if entries[i].etag() != "" {
			continue
		}
		g.Go(func() (err error) {
			var route string
			if entries[i], _, route, err = s.metadata(ctx, ref, commit, entries[i].Path); err != nil {
				return err
			}
			if route != "" {
				s.routes.Store(entries[i].Path, route)
			}
			return nil
		})
	}
	return entries, g.Wait()
}

// choose picks what is wanted. For a pipeline it reads model_index.json, and downloads it before if need be.
func (s *session) choose(ctx context.Context, ref Ref, commit string, entries []Entry, opt Options) ([]Entry, error) {
	return chooseListed(ref, entries, opt, func(e Entry) ([]byte, error) {
		one, err := s.identify(ctx, ref, commit, []Entry{e})
		if err != nil {
			return nil, err
		}
		if opt.DryRun && !s.cached(ref, commit, one[0]) {
			data, _, err := s.meta.Bytes(ctx, wire.Request{URL: s.fileURL(ref, commit, e.Path)})
			return data, s.explain(ref, err)
		}
		if err := s.job(ref, commit, one[0]).run(ctx); err != nil {
			return nil, err
		}
		return os.ReadFile(s.store.pointer(ref, commit, e.Path))
	})
}

// chooseListed is choose for a listing that came from the Hub. It refuses what is wanted under a name that no file can
// have here.
func chooseListed(ref Ref, entries []Entry, opt Options, read func(Entry) ([]byte, error)) ([]Entry, error) {
	chosen, err := choose(ref, entries, opt, read)
	for _, e := range chosen {
		if err := safePath(e.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
	}
	return chosen, err
}

// choose picks the entries that are wanted; read returns the content of model_index.json.
func choose(ref Ref, entries []Entry, opt Options, read func(Entry) ([]byte, error)) ([]Entry, error) {
	include := opt.Include
	if ref.Path != "" {
		within := []string{ref.Path, ref.Path + "/"}
		if len(include) > 0 {
			within = nil
			for _, p := range include {
				within = append(within, ref.Path+"/"+p)
			}
		}
		include = within
	}
	var names []string
	var index *Entry
	for i, e := range entries {
		names = append(names, e.Path)
		if e.Path == "model_index.json" {
			index = &entries[i]
		}
	}
	switch {
	case len(include) > 0:
		in := compile(include)
		names = slices.DeleteFunc(names, func(n string) bool { return !in.match(n) })
	case index != nil:
		data, err := read(*index)
		if err != nil {
			return nil, err
		}
		m, err := parseModelIndex(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		if names, err = selectPipeline(names, m, opt.Variant); err != nil {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
	case ref.Kind != Model:
	default:
		names = selectPlain(names)
	}
	out := compile(opt.Exclude)
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = !out.match(n)
	}
	var chosen []Entry
	for _, e := range entries {
		if wanted[e.Path] {
			chosen = append(chosen, e)
		}
	}
	switch {
	case len(chosen) > 0:
		return chosen, nil
	case ref.Path != "":
		return nil, errorf(ErrNotFound, nil, "%s has no file %s at revision %s", ref.Repo, ref.Path, ref.revision())
	case len(entries) == 0:
		return nil, errorf(ErrNotFound, nil, "%s has no files", ref)
	}
	return nil, errorf(ErrNotFound, nil, "%s has no file that --include and --exclude leave over", ref)
}

func (s *session) result(ref Ref, commit string, entries []Entry) *Result {
	r := &Result{Ref: ref, Commit: commit, Dir: s.store.snapshot(ref, commit)}
	for _, e := range entries {
		r.Files = append(r.Files, File{Path: e.Path, Size: e.Size, Cached: s.cached(ref, commit, e)})
	}
	return r
}

func (s *session) job(ref Ref, commit string, e Entry) *job {
	route, _ := s.routes.Load(e.Path)
	r, _ := route.(string)
	return &job{session: s, ref: ref, commit: commit, entry: e, route: r}
}

// fetchAll downloads what isn't cached, the largest files first, several at a time.
func (s *session) fetchAll(ctx context.Context, ref Ref, commit string, entries []Entry) error {
	missing := 0
	contents := map[string][]Entry{} // what is missing, by etag: files with equal content are fetched once
	var need, left int64
	for _, e := range entries {
		if s.cached(ref, commit, e) {
			continue
		}
		missing++
		same := contents[e.etag()]
		contents[e.etag()] = append(same, e)
		if len(same) > 0 && s.store.canLink() {
			continue
		}
		if e.Size < 0 || regular(s.store.blob(ref, e.etag()), e.Size) || s.store.sharedHas(e) || s.store.elsewhere(ref, e) != "" {
			continue
		}
		need += e.Size
		left += partialBytes(s.store.blob(ref, e.etag()), e)
	}
	if missing == 0 {
		return nil
	}
	if err := os.MkdirAll(s.CacheDir, 0o755); err != nil {
		return fmt.Errorf("cache folder: %w", err)
	}
	s.store.tag()
	s.store.sweepPartials(ref)
	if free, err := s.FreeSpace(s.CacheDir); err == nil && need-left > free {
		return errorf(ErrDiskFull, nil, "%s needs %s more in %s and %s are free: make room, or set HF_HOME to a folder on another disk",
			ref, bytesText(need-left), s.CacheDir, bytesText(free))
	}
	s.report.send(Event{Kind: Planned, Size: need, Done: left})
	order := slices.SortedFunc(maps.Values(contents), func(a, b []Entry) int {
		return cmp.Or(cmp.Compare(b[0].Size, a[0].Size), cmp.Compare(a[0].Path, b[0].Path))
	})
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.Workers)
	for _, same := range order {
		g.Go(func() error {
			for _, e := range same {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := s.job(ref, commit, e).run(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// bytesText prints a size with both what scripts and what people read.
func bytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB (%d bytes)", float64(n)/1e9, n)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB (%d bytes)", float64(n)/1e6, n)
	}
	return fmt.Sprintf("%d bytes", n)
}
