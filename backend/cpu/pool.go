package cpu

import (
	"fmt"
	"math/bits"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"
)

const (
	heapLimit  = 4 << 10   // smaller values are ordinary Go memory
	hugeLimit  = 2 << 20   // a huge page: larger values ask for them
	growthStep = 64 << 20  // live bytes may grow by this much before a collection is asked for
	idleLimit  = 192 << 20 // bytes kept for later
	dropLimit  = 128 << 20 // bytes of packed weights between collections
)

// pool hands out memory from outside the Go heap and takes it back. See the package comment for its two rules.
type pool struct {
	mu      sync.Mutex
	free    map[int][]*block // by class size
	idle    int              // bytes in free
	live    int              // bytes handed out
	mapped  int              // bytes ever taken from the system
	floor   int              // the lowest live since the last collection
	need    int              // what the last program took at once
	closed  bool
	dropped int    // bytes of the caller's memory that were let go since they were last given back to the system
	collect func() // runtime.GC, or a test's
}

func newPool() *pool {
	return &pool{free: make(map[int][]*block), collect: runtime.GC}
}

// class rounds a size up so that few different sizes occur: to an eighth of its power of two, and to whole pages.
func class(n int) int {
	step := max(1<<(bits.Len(uint(n-1))-4), 4<<10)
	return (n + step - 1) &^ (step - 1)
}

// get returns n bytes with unknown contents, 64-byte aligned, held by nobody.
func (p *pool) get(n int) (*block, error) {
	if n < heapLimit {
		return &block{mem: heapBytes(n)}, nil
	}
	if n > maxBlock {
		return nil, fmt.Errorf("out of memory: %d bytes needed", n)
	}
	size := class(n)
	p.mu.Lock()
	if p.live+size > p.floor+growthStep && p.live > p.floor {
		p.floor = p.live
		p.mu.Unlock()
		p.collect()
		p.mu.Lock()
	}
	p.live += size
	if list := p.free[size]; len(list) > 0 {
		b := list[len(list)-1]
		list[len(list)-1] = nil
		p.free[size] = list[:len(list)-1]
		p.idle -= size
		p.mu.Unlock()
		b.mem = b.mem[:n]
		return b, nil
	}
	p.mu.Unlock()
	mem, err := mapMemory(size, n)
	if err != nil {
		p.trim(0) // what is idle may be what is missing
		if mem, err = mapMemory(size, n); err != nil {
			p.mu.Lock()
			p.live -= size
			p.mu.Unlock()
			return nil, fmt.Errorf("out of memory: %d bytes needed: %w", n, err)
		}
	}
	p.mu.Lock()
	p.mapped += size
	p.mu.Unlock()
	return &block{mem: mem[:n], size: size}, nil
}

// keep is get for memory that lasts: it is no reason for a collection.
func (p *pool) keep(n int) (*block, error) {
	size := 0
	if n >= heapLimit && n <= maxBlock {
		size = class(n)
	}
	p.mu.Lock()
	p.floor += size
	p.mu.Unlock()
	b, err := p.get(n)
	if err != nil {
		p.mu.Lock()
		p.floor = min(p.floor, p.live)
		p.mu.Unlock()
	}
	return b, err
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

// expect says how much the program that runs next takes at once: so much may stay idle after it.
func (p *pool) expect(bytes int) {
	p.mu.Lock()
	p.need = bytes
	p.mu.Unlock()
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
	p.live -= b.size
	p.floor = min(p.floor, p.live)
	keep := !p.closed
	if keep {
		p.free[b.size] = append(p.free[b.size], b)
		p.idle += b.size
	}
	over := p.idle > max(idleLimit, p.need)
	p.mu.Unlock()
	switch {
	case !keep:
		unmapMemory(b.mem[:b.size])
	case over:
		p.trim(max(idleLimit, p.need))
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
