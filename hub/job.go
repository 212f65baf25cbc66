package hub

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"

	"github.com/gesso-go/gesso/hub/xet"
)

// A job brings one file into the cache.
type job struct {
	*session
	ref        Ref
	commit     string
	entry      Entry
	route      string // of the Xet token, empty for the usual one
	serverTag  string // the content server's ETag
	tagChanged bool
	plainOnly  bool // Xet has been tried
	localOnly  bool // the Hub can't be asked
}

// cached reports whether the snapshot has the file.
func (s *session) cached(ref Ref, commit string, e Entry) bool {
	return regular(s.store.pointer(ref, commit, e.Path), e.Size)
}

// run returns when the snapshot has the file, verified.
func (j *job) run(ctx context.Context) error {
	s, e := j.session, j.entry
	if s.cached(j.ref, j.commit, e) {
		return nil
	}
	unlock, err := s.lockBlob(ctx, j.ref, e.etag(), e.Path)
	if err != nil {
		return err
	}
	defer unlock()
	if s.cached(j.ref, j.commit, e) { // another process was quicker
		return nil
	}
	if ok, fresh := j.local(); ok {
		return j.finish(fresh)
	}
	if j.localOnly {
		return errorf(ErrNotCached, nil, "%s is not in the cache", e.Path)
	}
	blob := s.store.blob(j.ref, e.etag())
	if _, err := os.Lstat(blob); err == nil {
		// It has the wrong length or leads nowhere, else it would be local. What a link leads to isn't ours.
		if err := os.Remove(blob); err != nil {
			return fmt.Errorf("remove damaged %s: %w", blob, err)
		}
	}
	fresh := 0 // tries that owe nothing to an earlier run
	for {
		p, err := openPartial(blob, e.etag(), e.Size)
		if err != nil {
			return writeError(blob, err)
		}
		if p.resumed == 0 {
			fresh++
		}
		err = j.fill(ctx, p)
		if err == nil {
			if err := p.publish(blob); err != nil {
				p.discard()
				return writeError(blob, err)
			}
			break
		}
		switch {
		case errors.Is(err, ErrChecksum):
			p.discard()
			if fresh >= 2 {
				return fmt.Errorf("%w; twice, so the file on the Hub itself, or something in between, is damaged", err)
			}
			j.plainOnly = true
			s.report.wait(err.Error() + ": fetching it once more")
		case outOfSpace(err), tooLarge(err):
			p.discard()
			return writeError(blob, err)
		default:
			p.close()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return writeError(blob, err)
		}
	}
	return j.finish(true)
}

// finish makes the snapshot's file lead to the blob.
func (j *job) finish(fresh bool) error {
	s, e := j.session, j.entry
	if err := s.store.place(j.ref, j.commit, e.Path, e.etag(), fresh); err != nil {
		return writeError(s.store.pointer(j.ref, j.commit, e.Path), err)
	}
	s.report.send(Event{Kind: Finished, File: e.Path, Size: e.Size, Done: e.Size})
	return nil
}

// local makes the blob from what is on this machine already, if it can: the blob itself, the cache-wide store, another
// repository, or another snapshot where files lie in snapshots. Fresh means that nothing else uses the blob.
func (j *job) local() (ok, fresh bool) {
	s, e := j.session, j.entry
	blob := s.store.blob(j.ref, e.etag())
	if e.Size < 0 {
		return sha256Name.MatchString(e.etag()) && regular(blob, -1), false
	}
	if regular(blob, e.Size) {
		return true, false
	}
	if e.Xet != "" && !s.DisableSharedBlobs && !s.DisableXet && s.store.canLink() && s.store.linkShared(j.ref, e) {
		return true, false
	}
	from := s.store.elsewhere(j.ref, e)
	if from == "" || os.MkdirAll(filepath.Dir(blob), 0o755) != nil {
		return false, false
	}
	os.Remove(blob)
	if os.Link(from, blob) == nil {
		return true, true
	}
	// A copy takes as much space as a download would, but less time.
	return linkOrCopy(from, blob) == nil, true
}

// fill brings all bytes into the partial file and verifies them.
func (j *job) fill(ctx context.Context, p *partial) error {
	e := j.entry
	p.onWrite = func(total int64) {
		j.report.send(Event{Kind: Advanced, File: e.Path, Size: e.Size, Done: total})
	}
	j.report.send(Event{Kind: Started, File: e.Path, Size: e.Size, Done: p.resumed})
	var start func() hash.Hash = digester(e)
	if start == nil {
		if err := j.transfer(ctx, p); err != nil {
			return err
		}
		return p.verify(e, "")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	type result struct {
		digest string
		err    error
	}
	out := make(chan result, 1)
	go func() {
		digest, err := p.digest(ctx, start, done)
		out <- result{digest, err}
	}()
	err := j.transfer(ctx, p)
	if err != nil {
		cancel()
		<-out
		return err
	}
	close(done)
	r := <-out
	if r.err != nil {
		return r.err
	}
	return p.verify(e, r.digest)
}

// transfer brings the bytes: from the Xet store if the file is there, else, or if that fails, by plain HTTP.
func (j *job) transfer(ctx context.Context, p *partial) error {
	s, e := j.session, j.entry
	if e.Xet == "" || e.Size <= 0 || j.plainOnly || s.DisableXet || s.xetBroken.Load() {
		return j.fetchPlain(ctx, p)
	}
	hash, err := xet.ParseHash(e.Xet)
	if err != nil {
		return err
	}
	err = s.xetClient(j.ref, j.commit, j.route).Download(ctx, hash, e.Size, p)
	if err == nil || onDisk(err) || ctx.Err() != nil || errors.Is(err, ErrOffline) {
		return err
	}
	var t *tokenError
	if errors.As(err, &t) {
		s.xetBroken.Store(true) // a mirror without Xet
	}
	j.plainOnly = true
	s.report.wait(fmt.Sprintf("%s: %v: going on by plain HTTP", e.Path, err))
	if perr := j.fetchPlain(ctx, p); perr != nil {
		return fmt.Errorf("%w (by Xet before: %v)", perr, err)
	}
	return nil
}

// tokenError means that the Hub gives no token for the Xet store.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// xetClient returns the client for the repository's files in the store.
func (s *session) xetClient(ref Ref, commit, route string) *xet.Client {
	s.xetOnce.Do(func() {
		w := *s.data
		w.Token = "" // the store has its own, and signed addresses get none, even on the Hub's own host
		s.xet = xet.NewClient(&w, s.Fetches, func(ctx context.Context) (xet.Token, error) {
			t, err := s.xetToken(ctx, ref, commit, route)
			if err != nil {
				err = &tokenError{err}
			}
			return t, err
		})
	})
	return s.xet
}
