package cpu

import (
	"iter"
	"math"
	"slices"
	"unsafe"
)

const (
	slab  = hugeLimit // bytes that the system gives and takes at once: a huge page
	notch = 64 << 10  // sizes of blocks are multiples
)

// region is the arena of large blocks: a range of addresses from which they are cut, and in which what is given back joins
// with the gaps beside it. So a step finds room in what the steps before it had, whatever the sizes of its blocks and their
// order. Slabs get memory when they become part of a block for the first time, and lose it when no step uses them any more.
// The zero region has no room.
type region struct {
	mapped []byte
	mem    []byte // of mapped, whole slabs
	gaps   []gap  // in order; there is a block between two of them
	last   []int  // by slab: the step that used it last; 0 where there is no memory
	top    int    // slabs that begin here or beyond have no memory
	backed int    // bytes of slabs with memory
	used   int    // bytes of blocks
	most   int    // backed at its most
	need   int    // used at its most
	step   int    // from 1 on
}

// gap is a range of a region that belongs to no block, in bytes.
type gap struct{ at, size int }

func (g gap) end() int { return g.at + g.size }

// newRegion returns a region in mapped.
func newRegion(mapped []byte) region {
	if len(mapped) < 2*slab {
		return region{mapped: mapped}
	}
	mem := mapped[-uintptr(unsafe.Pointer(&mapped[0]))&(slab-1):]
	mem = mem[:len(mem)&^(slab-1)]
	return region{mapped: mapped, mem: mem, gaps: []gap{{0, len(mem)}}, last: make([]int, len(mem)/slab), step: 1}
}

// take cuts a block of n bytes, of which the system had to give fresh; nil if there is no gap for it. Of the gaps it takes
// one where the fewest slabs lack memory, and among these the smallest. A block of a third of all goes to the gap's end and
// others to its beginning: so the few largest blocks, which are hard to place, don't find smaller ones in their middle.
func (r *region) take(n int) (mem []byte, fresh int) {
	size := (n + notch - 1) &^ (notch - 1)
	best, at, room := -1, 0, 0
	for i, g := range r.gaps {
		if g.size < size {
			continue
		}
		end := min(g.end(), max(r.top, g.at+size))
		from := g.at
		if 3*size >= r.top {
			from = end - size
		}
		if need := r.missing(from, size); best < 0 || need < fresh || need == fresh && end-g.at < room {
			best, at, room, fresh = i, from, end-g.at, need
		}
	}
	if best < 0 {
		return nil, 0
	}
	g := r.gaps[best]
	r.gaps = slices.Delete(r.gaps, best, best+1)
	if rest := (gap{at + size, g.end() - at - size}); rest.size > 0 {
		r.gaps = slices.Insert(r.gaps, best, rest)
	}
	if rest := (gap{g.at, at - g.at}); rest.size > 0 {
		r.gaps = slices.Insert(r.gaps, best, rest)
	}
	r.touch(at, size)
	r.backed += fresh
	r.used += size
	r.top = max(r.top, at+size)
	r.need = max(r.need, r.used)
	if r.backed > r.most {
		r.most = r.backed
		r.shed(r.need + max(growthStep, r.need/3))
	}
	return r.mem[at : at+size : at+size], fresh
}

// missing returns the bytes of slabs without memory for a block.
func (r *region) missing(at, size int) int {
	n := 0
	for _, step := range r.last[at/slab : (at+size+slab-1)/slab] {
		if step == 0 {
			n += slab
		}
	}
	return n
}

// touch notes that a block's slabs are used in this step.
func (r *region) touch(at, size int) {
	for c := at / slab; c < (at+size+slab-1)/slab; c++ {
		r.last[c] = r.step
	}
}

// give takes a block back.
func (r *region) give(mem []byte) {
	g := gap{int(uintptr(unsafe.Pointer(&mem[0])) - uintptr(unsafe.Pointer(&r.mem[0]))), len(mem)}
	r.used -= g.size
	r.touch(g.at, g.size)
	i, _ := slices.BinarySearchFunc(r.gaps, g, func(a, b gap) int { return a.at - b.at })
	if i < len(r.gaps) && r.gaps[i].at == g.end() {
		g.size += r.gaps[i].size
		r.gaps = slices.Delete(r.gaps, i, i+1)
	}
	if i > 0 && r.gaps[i-1].end() == g.at {
		r.gaps[i-1].size += g.size
		return
	}
	r.gaps = slices.Insert(r.gaps, i, g)
}

// turn ends a step. If the region has more than limit bytes of memory, slabs lose theirs that were last used before the latest
// steps.
func (r *region) turn(limit int) {
	r.step++
	if r.backed > limit {
		r.forget(r.step - stretches)
	}
}

// shed gives the memory of the largest gaps back until no more than limit bytes are backed. It is for a region that grows as
// never before, whose gaps may be of no use to the steps to come; those that are get memory once more.
func (r *region) shed(limit int) {
	for r.backed > limit {
		largest, most := gap{}, 0
		for _, g := range r.gaps {
			n := 0
			for range r.idle(g, math.MaxInt) {
				n++
			}
			if n > most {
				largest, most = g, n
			}
		}
		if most == 0 {
			return
		}
		r.discard(largest, math.MaxInt)
	}
}

// forget gives the memory of free slabs back that were last used before the given step.
func (r *region) forget(before int) {
	for _, g := range r.gaps {
		r.discard(g, before)
	}
}

// discard gives the memory of a gap's slabs back that were last used before the given step.
func (r *region) discard(g gap, before int) {
	for c := range r.idle(g, before) {
		discardMemory(r.mem[c*slab:][:slab])
		r.last[c] = 0
		r.backed -= slab
	}
	for r.top > 0 && r.last[(r.top-1)/slab] == 0 {
		r.top = (r.top - 1) / slab * slab
	}
}

// idle returns the slabs of a gap that have memory and were last used before the given step.
func (r *region) idle(g gap, before int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for c := (g.at + slab - 1) / slab; (c+1)*slab <= g.end() && c*slab < r.top; c++ {
			if r.last[c] > 0 && r.last[c] < before && !yield(c) {
				return
			}
		}
	}
}

// close gives back all memory that no block needs, and the addresses with the last block.
func (r *region) close() {
	r.forget(math.MaxInt)
	if r.used == 0 && r.mapped != nil {
		unmapMemory(r.mapped)
		*r = region{}
	}
}
