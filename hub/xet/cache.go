package xet

import "sync"

// chunkCache remembers where on disk the chunks of earlier fetches lie, so that a chunk which several files, or distant
// parts of one, have in common is fetched once. It holds places, not bytes: no second copy of anything.
type chunkCache struct {
	mu     sync.Mutex
	places map[chunkName]location
}

type chunkName struct {
	xorb  Hash
	chunk int64
}

type location struct {
	sink Sink
	off  int64
	size int
	hash Hash
}

// maxPlaces bounds the memory of the cache to a few megabytes, or some 2 GiB of remembered content.
const maxPlaces = 32 << 10

func (c *chunkCache) add(xorb Hash, chunk int64, l location) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places == nil {
		c.places = map[chunkName]location{}
	}
	if len(c.places) >= maxPlaces {
		for name := range c.places { // an arbitrary one
			delete(c.places, name)
			break
		}
	}
	c.places[chunkName{xorb, chunk}] = l
}

func (c *chunkCache) get(xorb Hash, chunk int64) (location, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.places[chunkName{xorb, chunk}]
	return l, ok
}

// fromCache stores all chunks of the uses from earlier fetches. If one is not known, or not as it was, it reports false
// and leaves the uses as they were; chunks that it stored by then are right and stay.
func (c *Client) fromCache(p Part, uses []use, sink Sink) bool {
	known := map[int64]location{}
	for _, u := range uses {
		total := int64(0)
		for i := u.chunks.First; i < u.chunks.End; i++ {
			l, ok := c.cache.get(p.Xorb, i)
			if !ok {
				return false
			}
			known[i] = l
			total += int64(l.size)
		}
		if total != u.end-u.at {
			return false
		}
	}
	buf := make([]byte, MaxChunk)
	for _, u := range uses {
		at := u.at
		for i := u.chunks.First; i < u.chunks.End; i++ {
			l := known[i]
			chunk := buf[:l.size]
			if n, _ := l.sink.ReadAt(chunk, l.off); n != len(chunk) || HashChunk(chunk) != l.hash {
				return false
			}
			if sink.WriteChunk(at, chunk, l.hash) != nil {
				return false
			}
			at += int64(l.size)
		}
	}
	return true
}
