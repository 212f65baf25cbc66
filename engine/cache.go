package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/graph"
)

// cache keeps compiled programs by their structure and types. Concurrent requests for one key compile once; a failed
// compile is not kept.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]*cacheEntry
}

type cacheKey [sha256.Size]byte

type cacheEntry struct {
	ready chan struct{}
	exe   backend.Executable
	err   error
}

func newCache() *cache { return &cache{entries: map[cacheKey]*cacheEntry{}} }

// executable returns the program for key, compiling what build returns when there is none.
func (e *Engine) executable(key cacheKey, build func() (*graph.Graph, error)) (backend.Executable, error) {
	c := e.cache
	c.mu.Lock()
	entry, ok := c.entries[key]
	if !ok {
		entry = &cacheEntry{ready: make(chan struct{})}
		c.entries[key] = entry
	}
	c.mu.Unlock()
	if ok {
		<-entry.ready
		if entry.err == nil {
			e.stats.addHit()
		}
		return entry.exe, entry.err
	}
	g, err := build()
	if err == nil {
		start := time.Now()
		entry.exe, err = e.client.Compile(context.Background(), g, e.device)
		e.trace.Add(timeline.Compile, g.Name, start, 0)
		stored, ok := entry.exe.(backend.Stored)
		switch {
		case err == nil && ok && stored.FromDisk():
			e.stats.addDiskHit()
		case err == nil:
			e.stats.addCompile(g.Name, time.Since(start))
		default:
			err = fmt.Errorf("compile %s for %s: %w", g.Name, e.client.Platform(), err)
		}
	}
	if entry.err = err; err != nil {
		c.mu.Lock()
		delete(c.entries, key)
		c.mu.Unlock()
	}
	close(entry.ready)
	return entry.exe, err
}
