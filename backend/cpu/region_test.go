package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// held returns a region of n bytes.
func held(n int) region {
	mem := make([]byte, n+slab)
	return newRegion(mem[-uintptr(unsafe.Pointer(&mem[0]))&(slab-1):][:n])
}

// wrong says what contradicts itself in r, whose blocks are given; "" if nothing does.
func (r *region) wrong(blocks [][]byte) string {
	all := slices.Clone(r.gaps)
	for i, g := range r.gaps {
		if g.size <= 0 || i > 0 && r.gaps[i-1].end() >= g.at {
			return fmt.Sprintf("gaps %v", r.gaps)
		}
	}
	used, backed := 0, 0
	for _, b := range blocks {
		g := gap{int(uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&r.mem[0]))), len(b)}
		if all, used = append(all, g), used+g.size; r.missing(g.at, g.size) != 0 {
			return fmt.Sprintf("block %v has no memory", g)
		}
	}
	slices.SortFunc(all, func(a, b gap) int { return a.at - b.at })
	end := 0
	for _, g := range all {
		if g.at != end {
			return fmt.Sprintf("blocks and gaps %v", all)
		}
		end = g.end()
	}
	for c, step := range r.last {
		if step > 0 {
			backed += slab
			if c*slab >= r.top {
				return fmt.Sprintf("memory at %d beyond %d", c*slab, r.top)
			}
		}
	}
	if end != len(r.mem) || used != r.used || backed != r.backed {
		return fmt.Sprintf("blocks and gaps to %d of %d, %d bytes used of %d, %d with memory of %d", end, len(r.mem), r.used, used, r.backed, backed)
	}
	return ""
}

// TestRegionKeepsBlocksApart cuts and joins at random: blocks and gaps always cover the region once, and a block's memory is
// nobody else's.
func TestRegionKeepsBlocksApart(t *testing.T) {
	r := held(64 * slab)
	rnd := rand.New(rand.NewPCG(1, 2))
	var blocks [][]byte
	refused := 0
	for i := range 3000 {
		switch n := len(blocks); {
		case n > 0 && rnd.IntN(2) == 0:
			k := rnd.IntN(n)
			b := blocks[k]
			if b[0] != b[len(b)-1] || b[0] != b[len(b)/2] {
				t.Fatalf("operation %d: a block was overwritten", i)
			}
			blocks = slices.Delete(blocks, k, k+1)
			r.give(b)
		default:
			b, _ := r.take(1 + rnd.IntN(1+rnd.IntN(10*slab)))
			if b == nil {
				refused++
				break
			}
			b[0], b[len(b)/2], b[len(b)-1] = byte(i), byte(i), byte(i)
			blocks = append(blocks, b)
		}
		if rnd.IntN(10) == 0 {
			r.turn(16 * slab)
		}
		if w := r.wrong(blocks); w != "" {
			t.Fatalf("operation %d: %s", i, w)
		}
	}
	if refused == 0 {
		t.Error("the region was never full")
	}
	for _, b := range blocks {
		r.give(b)
	}
	if len(r.gaps) != 1 {
		t.Errorf("gaps %v without blocks", r.gaps)
	}
	if r.forget(r.step + 1); r.backed != 0 || r.top != 0 {
		t.Errorf("%d bytes have memory up to %d after all was given back", r.backed, r.top)
	}
}

func TestRegionIsFull(t *testing.T) {
	r := held(4 * slab)
	if b, _ := r.take(4*slab + 1); b != nil {
		t.Error("more than all was given")
	}
	all, fresh := r.take(4 * slab)
	if len(all) != 4*slab || fresh != 4*slab {
		t.Errorf("%d bytes, of which %d from the system", len(all), fresh)
	}
	if b, _ := r.take(1); b != nil {
		t.Error("a block of a full region")
	}
	var none region
	if b, _ := none.take(1); b != nil {
		t.Error("a block of a region without memory")
	}
	none.turn(0)
	none.close()
}

// TestRegionForgets: the memory that the latest steps used stays, what they did not use goes back if there is more than the
// limit.
func TestRegionForgets(t *testing.T) {
	for _, limit := range []int{0, 100 * slab} {
		r := held(32 * slab)
		step := func(n int) (fresh int) {
			b, fresh := r.take(n * slab)
			r.give(b)
			r.turn(limit)
			return fresh
		}
		if fresh := step(20); fresh != 20*slab {
			t.Errorf("the first step took %d bytes", fresh)
		}
		for range stretches - 1 {
			if fresh := step(5); fresh != 0 || r.backed != 20*slab {
				t.Errorf("a small step took %d bytes, and then %d have memory", fresh, r.backed)
			}
		}
		step(5)
		want := 5 * slab
		if limit > 0 {
			want = 20 * slab
		}
		if r.backed != want {
			t.Errorf("%d bytes have memory after small steps with a limit of %d, expected %d", r.backed, limit, want)
		}
		if fresh := step(20); fresh != 20*slab-want {
			t.Errorf("a large step took %d bytes, expected %d", fresh, 20*slab-want)
		}
	}
}

// TestRegionGrows: a large gap that is too small for what comes doesn't keep its memory, unless a step has shown that it is of
// use.
func TestRegionGrows(t *testing.T) {
	r := held(256 * slab)
	for step, want := range []int{10 + 80, 40 + 10 + 80, 40 + 10 + 80} {
		first, _ := r.take(40 * slab)
		second, _ := r.take(10 * slab)
		r.give(first)
		third, _ := r.take(80 * slab)
		if r.backed != want*slab {
			t.Errorf("step %d: %d slabs have memory, expected %d", step, r.backed/slab, want)
		}
		r.give(second)
		r.give(third)
		r.turn(0)
	}
}

// TestStepsOfManySizes: after the first step nothing is taken from the system by steps whose sizes, together, are far beyond
// what they need at once, and not much more than that is held.
func TestStepsOfManySizes(t *testing.T) {
	// What a decoder of 1024×1024 pixels needs, in 64 MB: a program's results, and while it runs its intermediate values.
	type program struct{ result, work float64 }
	decoder := []program{{1, 0}, {1, 2}, {1, 2}, {1, 2}, {4, 0}, {2, 6}, {2, 4}, {2, 4}, {8, 0}, {4, 12}, {4, 8}, {4, 8}, {0.1, 4.1}}
	// And what the operations of a transformer do with two pictures, in 25 MB: a stream, modulated, projected to three, attended,
	// projected, added; modulated, widened and narrowed, added; and the prompt's.
	var transformer []program
	for range 8 {
		for _, size := range []float64{1, 3, 1, 1, 1, 1, 0.09, 0.25, 0.09, 0.34, 1, 4, 4, 1, 1} {
			transformer = append(transformer, program{result: size})
		}
	}
	for _, c := range []struct {
		name     string
		unit     int
		programs []program
		late     int // a result is given back when so many more have been made
		more     float64
	}{
		{"decoder, piece by piece", 64 << 20, decoder, 2, 1.15},
		{"transformer, operation by operation", 24 << 20, transformer, 3, 1.35},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPool()
			defer p.close()
			if p.region.mem == nil {
				t.Skip("no addresses for a region")
			}
			p.collect = func() {}
			most := 0
			for step := range 6 {
				before := p.mapped
				var results []*block
				get := func(size float64) *block {
					b := mustGet(t, p, int(size*float64(c.unit)))
					most = max(most, p.live)
					return b
				}
				for _, x := range c.programs {
					results = append(results, get(x.result))
					if x.work > 0 {
						p.release(get(x.work))
					}
					if len(results) > c.late {
						p.release(results[0])
						results = results[1:]
					}
				}
				for _, b := range results {
					p.release(b)
				}
				p.turn()
				if took := p.mapped - before; step > 0 && took != 0 {
					t.Errorf("step %d took %d bytes from the system", step, took)
				}
			}
			if held := idleBytes(p); float64(held) > c.more*float64(most) {
				t.Errorf("%d bytes are held for steps that need %d at once", held, most)
			}
		})
	}
}
