package xet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/gesso-go/gesso/hub/internal/wire"
)

// Token lets its bearer read the files of one repository from the store.
type Token struct {
	CAS     string // the store's address
	Access  string
	Expires time.Time // by the local clock
}

// Client downloads files from one content-addressed store. It may be used for many files at once; the limit on parallel
// fetches holds for all of them together.
type Client struct {
	wire    *wire.Client
	renew   func(ctx context.Context) (Token, error)
	fetches *semaphore.Weighted
	session string
	readers sync.Pool // *ChunkReader
	cache   chunkCache
	noV2    atomic.Bool

	mu    sync.Mutex
	token Token
}

// DefaultFetches is how many byte ranges are fetched at the same time.
const DefaultFetches = 16

// NewClient returns a client that gets its tokens from renew, which is called before the first request, shortly before
// a token expires, and once for a token that the store refuses. fetches bounds parallel requests for xorb ranges; 0
// stands for DefaultFetches.
func NewClient(w *wire.Client, fetches int, renew func(ctx context.Context) (Token, error)) *Client {
	if fetches <= 0 {
		fetches = DefaultFetches
	}
	return &Client{
		wire:    w,
		renew:   renew,
		fetches: semaphore.NewWeighted(int64(fetches)),
		session: fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()),
		readers: sync.Pool{New: func() any { return new(ChunkReader) }},
	}
}

// A Sink stores a file's chunks. Its methods are called from several goroutines at once.
type Sink interface {
	// WriteChunk stores the chunk that lies at byte off of the file. The chunk may begin before a missing range or end
	// after one; it is inside the file as a whole. A chunk may come more than once.
	WriteChunk(off int64, chunk []byte, hash Hash) error
	// Missing returns the byte ranges that are not stored yet, in order.
	Missing() []Range
	// ReadAt reads back what was stored. It must go on working after the download for as long as the client is used;
	// after an error the chunk is fetched again.
	ReadAt(p []byte, off int64) (int, error)
}

// tokenMargin is how long before its end a token is not used any more.
const tokenMargin = 30 * time.Second

// current returns a token that is valid and not the refused one.
func (c *Client) current(ctx context.Context, refused string) (Token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token.Access != "" && c.token.Access != refused && c.wire.Clock.Now().Before(c.token.Expires.Add(-tokenMargin)) {
		return c.token, nil
	}
	t, err := c.renew(ctx)
	if err != nil {
		return Token{}, fmt.Errorf("xet token: %w", err)
	}
	c.token = t
	return t, nil
}

// segment is the most bytes of a file that one reconstruction query covers. It bounds the size of the answer.
const segment = 256 << 20

// Download fetches what the sink misses of the file. Size is the file's length in bytes. When it returns nil the sink
// misses nothing, but the caller has yet to compare the hash of the whole. What was stored before an error remains.
func (c *Client) Download(ctx context.Context, file Hash, size int64, sink Sink) error {
	best := int64(-1)
	for try := 0; ; try++ {
		missing := sink.Missing()
		if len(missing) == 0 {
			return nil
		}
		var left int64
		for _, m := range missing {
			left += m.Len()
		}
		if best < 0 || left < best {
			best, try = left, 0 // something came: all tries again
		}
		err := c.pass(ctx, file, size, missing, sink)
		if err == nil && len(sink.Missing()) > 0 {
			err = &wire.Broken{Err: errors.New("the reconstruction leaves gaps")}
		}
		if err == nil {
			return nil
		}
		if err := c.wire.Pause(ctx, try, err); err != nil {
			return fmt.Errorf("xet file %s: %w", file, err)
		}
	}
}

// pass tries once to fetch all missing ranges.
func (c *Client) pass(ctx context.Context, file Hash, size int64, missing []Range, sink Sink) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2) // the next segment's query runs while this one's ranges come in
	for _, m := range missing {
		for first := m.First; first < m.End && ctx.Err() == nil; first += segment {
			r := Range{first, min(first+segment, m.End)}
			g.Go(func() error { return c.segment(ctx, file, size, r, sink) })
		}
	}
	return g.Wait()
}

// segment fetches one range of the file.
func (c *Client) segment(ctx context.Context, file Hash, size int64, r Range, sink Sink) error {
	rec, err := c.Reconstruct(ctx, file, r)
	if err != nil {
		return err
	}
	if got := rec.Size(); got < r.Len() {
		return &wire.Broken{Err: fmt.Errorf("the reconstruction of bytes %d to %d holds %d bytes, expected %d", r.First, r.End, got, r.Len())}
	}
	uses := make([][]use, len(rec.Parts))
	at := r.First - rec.Skip
	for _, t := range rec.Terms {
		if at >= r.End {
			break
		}
		if at < 0 || at+t.Size > size {
			return &wire.Broken{Err: fmt.Errorf("the reconstruction goes beyond the file's %d bytes", size)}
		}
		uses[t.Part] = append(uses[t.Part], use{chunks: t.Chunks, at: at, end: at + t.Size})
		at += t.Size
	}
	g, gctx := errgroup.WithContext(ctx)
	var failed firstError
	for _, i := range inFileOrder(uses) {
		if err := c.fetches.Acquire(gctx, 1); err != nil {
			break
		}
		g.Go(func() error {
			defer c.fetches.Release(1)
			err := c.fetch(gctx, rec.Parts[i], uses[i], sink)
			if wire.Transient(err) {
				failed.set(err) // the other ranges are still worth fetching
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := failed.get(); err != nil {
		return err
	}
	return ctx.Err()
}

// inFileOrder returns the indices of the parts that are used, sorted by where the file uses them first, so that what is
// stored grows from the front.
func inFileOrder(uses [][]use) []int {
	var order []int
	for i, u := range uses {
		if len(u) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(uses[a][0].at, uses[b][0].at) })
	return order
}

type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Reconstruct asks how the range of the file is put together. Ranges must not be empty.
func (c *Client) Reconstruct(ctx context.Context, file Hash, r Range) (*Reconstruction, error) {
	refused, refreshed := "", false
	for {
		token, err := c.current(ctx, refused)
		if err != nil {
			return nil, err
		}
		version := "v2"
		if c.noV2.Load() {
			version = "v1"
		}
		data, _, err := c.wire.Bytes(ctx, wire.Request{
			URL:    strings.TrimRight(token.CAS, "/") + "/" + version + "/reconstructions/" + file.String(),
			Bearer: token.Access,
			Header: http.Header{
				"Range":            {fmt.Sprintf("bytes=%d-%d", r.First, r.End-1)},
				"X-Xet-Session-Id": {c.session},
			},
		})
		var status *wire.StatusError
		if errors.As(err, &status) {
			switch {
			case status.Status == http.StatusUnauthorized && !refreshed:
				refused, refreshed = token.Access, true
				continue
			case (status.Status == http.StatusNotFound || status.Status == http.StatusNotImplemented) && version == "v2":
				c.noV2.Store(true)
				continue
			case status.Status == http.StatusRequestedRangeNotSatisfiable:
				return nil, fmt.Errorf("the store says that the file ends before byte %d: %w", r.First, err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reconstruction query: %w", err)
		}
		rec, err := ParseReconstruction(data)
		if err != nil {
			return nil, &wire.Broken{Err: err}
		}
		return rec, nil
	}
}
