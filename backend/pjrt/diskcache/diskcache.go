// Package diskcache keeps compiled programs in a folder that processes share, so that a program is compiled once on a
// machine and not once in every process.
//
//	c := diskcache.New(dir, 0)
//	hit, err := c.Get(ctx, key, load, compile)
//
// Get calls load with what the folder has under the key; when it has nothing, or load refuses it, it calls compile and
// keeps the result. Among concurrent processes one compiles a key and the others wait for it. An entry is written beside
// its place and renamed, and carries a checksum: one that is damaged, cut short or of another version is a miss, never a
// failure. So is a folder that can't be written, unless the cache is strict ([Cache.Strict]). The entries that have not been used for the longest
// time go when the folder grows over its limit.
package diskcache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gesso-go/gesso/internal/outfile"
)

// DefaultLimit is the size of a cache for which nothing else is said: some hundred pictures' worth of large programs.
const DefaultLimit = 4 << 30

// Cache is a folder of compiled programs. Its methods may be called from several goroutines and processes.
type Cache struct {
	dir   string
	limit int64
	must  bool // Get fails where it can't keep an entry
	now   func() time.Time

	mu   sync.Mutex
	size int64 // of all entries, as of the last scan and what was written since
	puts int   // since the last scan
}

// New returns the cache in dir, which is made when something is to be kept. limit is in bytes; 0 means DefaultLimit.
func New(dir string, limit int64) *Cache {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Cache{dir: dir, limit: limit, now: time.Now}
}

// ErrNotKept is wrapped by the errors of a strict cache's Get where a program was compiled, or could be, but not kept.
var ErrNotKept = errors.New("not kept")

// Bundle returns a strict cache without a limit.
func Bundle(dir string) (*Cache, error) { return New(dir, math.MaxInt64).Strict() }

// Strict makes c a cache whose Get fails where a program can't be kept, and returns it. It makes the folder, and fails where
// nothing can be written to it.
func (c *Cache) Strict() (*Cache, error) {
	if info, err := os.Stat(c.dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", c.dir)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder %s cannot be made: %w", c.dir, outfile.Cause(err))
	}
	tmp, err := os.CreateTemp(c.dir, tmpPrefix)
	if err != nil {
		return nil, fmt.Errorf("folder %s cannot be written to: %w", c.dir, outfile.Cause(err))
	}
	tmp.Close()
	c.must = true
	return c, os.Remove(tmp.Name())
}

// Dir returns the folder.
func (c *Cache) Dir() string { return c.dir }

// Limit returns the size in bytes that the folder may have.
func (c *Cache) Limit() int64 { return c.limit }

// Key is everything that a compiled program depends on.
type Key struct {
	Platform string // such as "tpu"
	Version  string // of the plugin, its compiler included
	Topology string // the devices that the program is for
	Options  []byte // of the compiler
	Program  []byte // the program's text
}

// String returns the hexadecimal hash under which the program is kept.
func (k Key) String() string {
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(k.Platform), []byte(k.Version), []byte(k.Topology), k.Options, k.Program} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// suffix ends the names of entries; locks and unfinished entries have others.
const (
	suffix     = ".program"
	lockSuffix = ".lock"
	tmpPrefix  = ".tmp-"
)

func (c *Cache) path(key string) string { return filepath.Join(c.dir, key+suffix) }

// Get calls load with the entry of k, and reports true if load took it. Otherwise it calls compile, which returns the
// entry to be kept, or nil if there is nothing to keep; its Key, Platform, Version, Topology and Created are filled in. An
// error is compile's, ctx's while another process compiles, or in a strict cache that the entry could not be kept.
func (c *Cache) Get(ctx context.Context, k Key, load func(*Entry) error, compile func() (*Entry, error)) (hit bool, err error) {
	key := k.String()
	if c.load(key, load) {
		return true, nil
	}
	unlock, err := c.lock(ctx, key)
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil && c.must {
		return false, fmt.Errorf("%s: %w: %w", c.dir, ErrNotKept, outfile.Cause(err))
	}
	if err == nil {
		defer unlock()
		if c.load(key, load) { // another process has been faster
			return true, nil
		}
	}
	start := c.now()
	e, cerr := compile()
	if cerr != nil || e == nil || err != nil {
		return false, cerr
	}
	e.Key, e.Platform, e.Version, e.Topology, e.Created = key, k.Platform, k.Version, k.Topology, start.UTC().Truncate(time.Second)
	if e.CompileSeconds == 0 {
		e.CompileSeconds = c.now().Sub(start).Seconds()
	}
	if err := c.put(e); err != nil && c.must {
		return false, err
	}
	return false, nil
}

// Lookup returns the entry of k, if there is a good one. It counts as a use.
func (c *Cache) Lookup(k Key) (*Entry, bool) {
	var found *Entry
	ok := c.load(k.String(), func(e *Entry) error { found = e; return nil })
	return found, ok
}

// load reads an entry and offers it. What is no good is removed, so that the next process needn't read it.
func (c *Cache) load(key string, load func(*Entry) error) bool {
	path := c.path(key)
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	e, err := parse(b)
	if err != nil || e.Key != key || load(e) != nil {
		os.Remove(path)
		return false
	}
	now := c.now()
	_ = os.Chtimes(path, now, now) // eviction goes by it
	return true
}

// put keeps e. When that fails there is no entry.
func (c *Cache) put(e *Entry) error {
	b, err := e.bytes()
	if err == nil && int64(len(b)) > c.limit {
		err = fmt.Errorf("%d bytes are more than the cache's limit of %d", len(b), c.limit)
	}
	if err == nil {
		err = c.write(c.path(e.Key), b)
	}
	if err != nil {
		return fmt.Errorf("%s: program %.12s (%s): %w: %w", c.dir, e.Key, e.Name, ErrNotKept, outfile.Cause(err))
	}
	c.grown(int64(len(b)))
	return nil
}

// write writes a file whole or not at all.
func (c *Cache) write(path string, b []byte) error {
	tmp, err := os.CreateTemp(c.dir, tmpPrefix)
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
