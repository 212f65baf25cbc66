package cpu

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"
)

const (
	heapLimit  = 4 << 10   // smaller values are ordinary Go memory
	hugeLimit  = 2 << 20   // a huge page: larger values ask for them
	growthStep = 64 << 20  // live bytes may grow by this much before a collection is asked for, and what is held beyond them
	heldLimit  = 256 << 20 // bytes of either kind, idle or in use by programs, that stay in any case; see limit
	dropLimit  = 128 << 20 // bytes of packed weights between collections
	stretches  = 4         // for so many steps it is remembered what they needed
)

// pool hands out memory from outside the Go heap and takes it back. See the package comment for its rules.
type pool struct {
	mu      sync.Mutex
	region  region           // large blocks, for as long as it has room
	free    map[int][]*block // others, by class size
	idle    int              // bytes in free
	live    int              // bytes handed out
	kept    int              // of these, bytes of memory that lasts
	busy    bool             // something that doesn't last was taken since the last turn
	most    [stretches]int   // the most that was passing at once, from one turn to the next; the latest first
	mapped  int              // bytes ever taken from the system
	floor   int              // the lowest live since the last collection
	closed  bool
	dropped int    // bytes of the caller's memory that were let go since they were last given back to the system
	collect func() // runtime.GC, or a test's
}

func newPool() *pool {
	return &pool{region: newRegion(reserveMemory()), free: make(map[int][]*block), collect: runtime.GC}
}

// class rounds a size up so that few different sizes occur: to an eighth of its power of two, and to whole pages.
func class(n int) int {
	step := max(1<<(bits.Len(uint(n-1))-4), 4<<10)
	return (n + step - 1) &^ (step - 1)
}

// get returns n bytes with unknown contents, 64-byte aligned, held by nobody.
func (p *pool) get(n int) (*block, error) { return p.take(n, false) }

// keep is get for memory that lasts: it is no reason for a collection, and goes back to the system when it is released.
func (p *pool) keep(n int) (*block, error) { return p.take(n, true) }

func (p *pool) take(n int, lasts bool) (*block, error) {
	if n < heapLimit {
		return &block{mem: heapBytes(n)}, nil
	}
	if n > maxBlock {
		return nil, fmt.Errorf("out of memory: %d bytes needed", n)
	}
	size := class(n)
	p.mu.Lock()
	if !lasts && p.live+size > p.floor+growthStep && p.live > p.floor {
		p.floor = p.live
		p.mu.Unlock()
		p.collect()
		p.mu.Lock()
	}
	var b *block
	if !lasts {
		p.busy = true
		if b = p.cut(n); b == nil {
			b = p.reuse(size)
		}
	}
	if b != nil {
		size = b.size
		b.mem = b.mem[:n]
	}
	p.live += size
	if lasts {
		p.kept += size
		p.floor += size
	}
	p.most[0] = max(p.most[0], p.passing())
	limit := p.limit()
	p.mu.Unlock()
	if b != nil {
		return b, nil
	}
	p.trim(limit)
	mem, err := mapMemory(size, n)
	if err != nil {
		p.mu.Lock()
		p.region.forget(math.MaxInt) // what is idle may be what is missing
		p.mu.Unlock()
		p.trim(0)
		mem, err = mapMemory(size, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.forget(size, lasts)
		return nil, fmt.Errorf("out of memory: %d bytes needed: %w", n, err)
	}
	p.mapped += size
	return &block{mem: mem[:n], size: size, lasts: lasts}, nil
}

// cut returns a large block of the region; nil if n is small or the region has no room. p.mu is held.
func (p *pool) cut(n int) *block {
	if n < hugeLimit {
		return nil
	}
	mem, fresh := p.region.take(n)
	if mem == nil {
		return nil
	}
	p.mapped += fresh
	return &block{mem: mem, size: len(mem), cut: true}
}

// reuse returns an idle block of size bytes, or a large one with up to a quarter more; nil if there is none. p.mu is held.
func (p *pool) reuse(size int) *block {
	best := size
	if len(p.free[size]) == 0 && size >= hugeLimit {
		best = math.MaxInt
		for s, list := range p.free {
			if len(list) > 0 && s > size && s <= size+size/4 {
				best = min(best, s)
			}
		}
	}
	list := p.free[best]
	if len(list) == 0 {
		return nil
	}
	b := list[len(list)-1]
	list[len(list)-1] = nil
	p.free[best] = list[:len(list)-1]
	p.idle -= best
	return b
}

// forget counts size bytes as handed out no longer. p.mu is held.
func (p *pool) forget(size int, lasted bool) {
	p.live -= size
	if lasted {
		p.kept -= size
	}
	p.floor = min(p.floor, p.live)
}

// drop counts n bytes of Go memory that only the collector can give back, and lets it do so every dropLimit bytes: packed
// weights take their place outside the heap, which doesn't make it run.
func (p *pool) drop(n int) {
	p.mu.Lock()
	p.dropped += n
	due := p.dropped >= dropLimit
	if due {
		p.dropped = 0
	}
	p.mu.Unlock()
	if due {
		debug.FreeOSMemory()
	}
}

// passing returns the bytes handed out that neither last nor belong to the region. p.mu is held.
func (p *pool) passing() int { return p.live - p.kept - p.region.used }

// limit returns how much may be idle outside of the region: with what is passing it makes growthStep more than the latest
// steps had at once, or heldLimit. p.mu is held.
func (p *pool) limit() int {
	return max(0, max(heldLimit, slices.Max(p.most[:])+growthStep)-p.passing())
}

// turn is called when a result was read, as it is at the end of each step. What the step needed is forgotten some steps
// later; those that took nothing don't count.
func (p *pool) turn() {
	p.mu.Lock()
	if p.busy {
		p.busy = false
		p.region.turn(heldLimit)
		copy(p.most[1:], p.most[:])
		p.most[0] = 0
	}
	limit := p.limit()
	p.mu.Unlock()
	p.trim(limit)
}

// release drops one reference to b.
func (p *pool) release(b *block) {
	if b.refs.Add(-1) > 0 || b.size == 0 {
		return
	}
	p.put(b)
}

// put takes back a block that nobody refers to.
func (p *pool) put(b *block) {
	if b.size == 0 {
		return
	}
	p.mu.Lock()
	p.forget(b.size, b.lasts)
	idle := !b.cut && !b.lasts && !p.closed
	switch {
	case idle:
		p.free[b.size] = append(p.free[b.size], b)
		p.idle += b.size
	case b.cut:
		p.region.give(b.mem[:b.size])
		if p.closed {
			p.region.close()
		}
	}
	limit := p.limit()
	p.mu.Unlock()
	switch {
	case idle:
		p.trim(limit)
	case !b.cut:
		unmapMemory(b.mem[:b.size])
	}
}

// trim gives idle blocks back to the system, largest first, until at most limit bytes are idle.
func (p *pool) trim(limit int) {
	p.mu.Lock()
	var gone []*block
	for p.idle > limit {
		largest := 0
		for size, list := range p.free {
			if len(list) > 0 {
				largest = max(largest, size)
			}
		}
		list := p.free[largest]
		gone = append(gone, list[len(list)-1])
		p.free[largest] = list[:len(list)-1]
		p.idle -= largest
	}
	p.mu.Unlock()
	for _, b := range gone {
		unmapMemory(b.mem[:b.size])
	}
}

// close frees what is idle now, and everything else when it is released.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.region.close()
	p.mu.Unlock()
	p.trim(0)
}

// used returns the bytes handed out.
func (p *pool) used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// heapBytes returns n bytes of Go memory, 64-byte aligned.
func heapBytes(n int) []byte {
	if n == 0 {
		return []byte{}
	}
	b := make([]byte, n+63)
	off := -uintptr(unsafe.Pointer(&b[0])) & 63
	return b[off : int(off)+n : int(off)+n]
}
