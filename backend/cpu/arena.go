package cpu

import "sort"

// arenaAlign keeps values in the arena apart by whole cache lines.
const arenaAlign = 64

// layOut computes lifetimes, lets results take over the memory of operands that die, and assigns slots and offsets in
// the arena.
func (p *program) layOut() {
	for i := range p.steps {
		for _, st := range p.steps[i].uses {
			if st.first < 0 {
				st.first = i
			}
			st.last = i
		}
	}
	for _, st := range p.storages {
		if st.kind == output {
			st.last = len(p.steps)
		}
	}
	p.findPlain()
	for i := range p.steps {
		for _, t := range p.steps[i].inPlace {
			from, to := t.from.root(), t.to.root()
			if from != to && from.kind == temporary && to.kind != input && to.kind != constant && from.last == i && to.first == i && from.bytes == to.bytes {
				from.inside = to
				to.first = from.first
			}
		}
	}
	p.slots = len(p.inputs)
	for _, st := range p.storages {
		if st.inside != nil || st.kind == input {
			continue
		}
		st.slot = p.slots
		p.slots++
		switch {
		case st.kind == output:
			p.outputs = append(p.outputs, st)
			p.blocks += st.bytes
		case st.kind == temporary && st.first >= 0:
			p.temps = append(p.temps, st)
		}
	}
	for _, st := range p.storages {
		st.slot = st.root().slot
	}
	p.arena = assignOffsets(p.temps)
}

// assignOffsets places storages so that those alive at the same time don't overlap, and returns the bytes needed. The
// largest comes first; each goes into the smallest gap that holds it.
func assignOffsets(temps []*storage) int {
	order := append([]*storage(nil), temps...)
	sort.SliceStable(order, func(i, j int) bool { return order[i].bytes > order[j].bytes })
	var placed []*storage // by offset
	total := 0
	for _, st := range order {
		size := (st.bytes + arenaAlign - 1) &^ (arenaAlign - 1)
		best, bestGap, end := -1, 0, 0
		for _, o := range placed {
			if o.last < st.first || o.first > st.last {
				continue
			}
			if gap := o.offset - end; gap >= size && (best < 0 || gap < bestGap) {
				best, bestGap = end, gap
			}
			end = max(end, (o.offset+o.bytes+arenaAlign-1)&^(arenaAlign-1))
		}
		if best < 0 {
			best = end
		}
		st.offset = best
		total = max(total, best+size)
		i := sort.Search(len(placed), func(i int) bool { return placed[i].offset > st.offset })
		placed = append(placed, nil)
		copy(placed[i+1:], placed[i:])
		placed[i] = st
	}
	return total
}
