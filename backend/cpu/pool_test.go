package cpu

import (
	"strings"
	"testing"
	"unsafe"
)

func mustGet(t *testing.T, p *pool, n int) *block {
	t.Helper()
	b, err := p.get(n)
	if err != nil {
		t.Fatal(err)
	}
	b.refs.Add(1)
	return b
}

func TestPoolReusesMemory(t *testing.T) {
	p := newPool()
	defer p.close()
	for _, n := range []int{0, 1, heapLimit - 1, heapLimit, heapLimit + 1, 100_000, 3 << 20} {
		b := mustGet(t, p, n)
		if len(b.mem) != n {
			t.Fatalf("get(%d) gave %d bytes", n, len(b.mem))
		}
		if n > 0 && uintptr(unsafe.Pointer(&b.mem[0]))%64 != 0 {
			t.Errorf("get(%d) is not aligned to 64 bytes", n)
		}
		for i := range b.mem {
			b.mem[i] = 1 // all of it can be written
		}
		p.release(b)
		if p.used() != 0 {
			t.Fatalf("%d bytes in use after the release of %d", p.used(), n)
		}
		if n < heapLimit {
			continue
		}
		again := mustGet(t, p, n)
		if &again.mem[0] != &b.mem[0] {
			t.Errorf("memory of %d bytes was not used again", n)
		}
		p.release(again)
	}
}

func TestPoolSharedBlock(t *testing.T) {
	p := newPool()
	defer p.close()
	b := mustGet(t, p, 1<<20)
	b.refs.Add(1)
	p.release(b)
	if p.used() == 0 {
		t.Fatal("a block with a holder was taken back")
	}
	p.release(b)
	if p.used() != 0 {
		t.Fatal("a block without a holder was not taken back")
	}
}

func TestPoolCollects(t *testing.T) {
	p := newPool()
	defer p.close()
	collections := 0
	p.collect = func() { collections++ }
	var held []*block
	const size = 16 << 20
	grow := func(n int) {
		for range n {
			held = append(held, mustGet(t, p, size))
		}
	}
	grow(4) // 64 MB
	if collections != 0 {
		t.Fatalf("%d collections after %d bytes, expected none", collections, p.used())
	}
	grow(1)
	if collections != 1 {
		t.Fatalf("%d collections after %d bytes, expected 1", collections, p.used())
	}
	grow(3)
	if collections != 1 {
		t.Fatalf("%d collections after %d bytes, expected still 1", collections, p.used())
	}
	// Steady use within the growth allowed never collects.
	for range 50 {
		p.release(held[len(held)-1])
		held = held[:len(held)-1]
		grow(1)
	}
	if collections != 1 {
		t.Fatalf("%d collections with steady use, expected still 1", collections)
	}
	// Growth is bounded by itself, not by what is held already: gigabytes of weights excuse no garbage.
	grow(60)
	before := collections
	grow(5)
	if collections == before {
		t.Errorf("no collection while %d bytes became %d", p.used()-5*size, p.used())
	}
	for _, b := range held {
		p.release(b)
	}
	held, before = nil, collections
	grow(5) // growth from nothing counts as at first
	if collections == before {
		t.Errorf("no collection while nothing became %d bytes", p.used())
	}
	for _, b := range held {
		p.release(b)
	}
}

// idleBytes is what p holds that nobody uses.
func idleBytes(p *pool) int { return p.idle + p.region.backed - p.region.used }

// TestPoolBoundsIdleMemory: what steps need stays for the next one, and goes back when the steps that follow need less.
func TestPoolBoundsIdleMemory(t *testing.T) {
	p := newPool()
	defer p.close()
	p.collect = func() {}
	const size = 64 << 20
	step := func(blocks int) {
		var held []*block
		for range blocks {
			held = append(held, mustGet(t, p, size))
		}
		for _, b := range held {
			p.release(b)
		}
		p.turn()
	}
	for range 10 {
		step(10)
		step(1) // as a preview between steps
	}
	if p.mapped != 10*size || idleBytes(p) != p.mapped {
		t.Errorf("%d bytes were mapped and %d are idle, expected the %d that a step needs", p.mapped, idleBytes(p), 10*size)
	}
	for range stretches {
		if p.turn(); idleBytes(p) != p.mapped {
			t.Fatal("results that are read without a step between them made the pool forget what a step needs")
		}
	}
	for range stretches {
		step(1)
	}
	idle := idleBytes(p)
	if idle > heldLimit {
		t.Errorf("%d bytes idle after small steps, expected at most %d", idle, heldLimit)
	}
	// Memory that lasts isn't what a step needs again.
	var held []*block
	for range 10 {
		b, err := p.keep(size)
		if err != nil {
			t.Fatal(err)
		}
		b.refs.Add(1)
		held = append(held, b)
	}
	for _, b := range held {
		p.release(b)
	}
	if now := idleBytes(p); now != idle {
		t.Errorf("%d bytes idle after lasting memory was given back, expected %d as before", now, idle)
	}
	if p.live != 0 || p.kept != 0 {
		t.Errorf("%d bytes live and %d kept, expected none", p.live, p.kept)
	}
}

// TestPoolTakesLarger: where the system has no addresses for a region, a block may be up to a quarter larger than needed. One
// that lasts may not.
func TestPoolTakesLarger(t *testing.T) {
	p := newPool()
	defer p.close()
	p.region.close()
	p.release(mustGet(t, p, 10<<20))
	p.release(mustGet(t, p, 9<<20))
	if p.mapped != 10<<20 {
		t.Errorf("%d bytes mapped, expected 10 MB for both", p.mapped)
	}
	if b, err := p.keep(9 << 20); err != nil || b.size != 9<<20 {
		t.Errorf("got %v, %v, expected a block of 9 MB", b, err)
	}
	if p.mapped != 19<<20 || p.live != 9<<20 {
		t.Errorf("%d bytes mapped and %d live, expected 19 and 9 MB", p.mapped, p.live)
	}
	p.release(mustGet(t, p, 7<<20))
	if p.mapped != 26<<20 {
		t.Errorf("%d bytes mapped, expected 26 MB", p.mapped)
	}
}

func TestPoolRefusesTheImpossible(t *testing.T) {
	p := newPool()
	defer p.close()
	for _, n := range []int{1 << 46, 1 << 50, 1 << 62} {
		if n == 1<<46 && maxBlock > 1<<46 {
			continue // the system decides
		}
		if _, err := p.get(n); err == nil || !strings.Contains(err.Error(), "out of memory") {
			t.Errorf("get(%d) gave %v", n, err)
		}
	}
	if p.used() != 0 {
		t.Errorf("%d bytes in use after failures", p.used())
	}
}

func TestPoolAfterClose(t *testing.T) {
	for _, n := range []int{1 << 20, 9 << 20} {
		p := newPool()
		b := mustGet(t, p, n)
		p.release(mustGet(t, p, n))
		p.close()
		b.mem[0], b.mem[n-1] = 1, 1 // still there for its holder
		p.release(b)
		if idle := idleBytes(p); idle != 0 || p.region.mapped != nil {
			t.Errorf("a closed pool keeps %d bytes", idle)
		}
	}
}
