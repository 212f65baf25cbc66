package engine

import (
	"hash/maphash"

	"github.com/gesso-go/gesso/graph"
)

// Periods that the tail of a recording is searched for, in operations: a loop body of this length that has been recorded
// twice becomes one program, which later rounds find in the cache.
const (
	minPeriod = 3
	maxPeriod = 127
)

// tail finds repetition. Each recorded operation is hashed with what it does and how far back its operands were
// recorded, so two rounds of a loop hash alike wherever they stand and whether or not the previous round has run.
type tail struct {
	seed   maphash.Seed
	hashes [256]uint64          // ring over the last operations
	match  [maxPeriod + 1]int64 // match[p]: so many operations in a row equal the one p before
	outs   map[int]map[int]bool // for a period: offsets in the body that a later round takes
}

// deferValue appends v to the recording and cuts it where the tail repeats.
func (e *Engine) deferValue(v *value) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.rec
	r.seq++
	v.seq = r.seq
	for _, c := range v.in {
		c.used = true
	}
	r.pending = append(r.pending, v)
	if p := r.tail.add(v); p > 0 && len(r.pending) >= p && r.blocks == 0 {
		return e.cutRounds(p)
	}
	if len(r.pending) >= maxPending {
		return e.flushLocked()
	}
	return nil
}

// add notes one operation and returns the shortest period with which the tail repeats, or 0.
func (t *tail) add(v *value) int {
	if t.outs == nil {
		t.outs = map[int]map[int]bool{}
		t.seed = maphash.MakeSeed()
	}
	b := make([]byte, 0, 128)
	b = graph.AppendOpKey(b, v.op, v.attr)
	for _, c := range v.in {
		switch {
		case c.isVirtual():
			b = graph.AppendOpKey(append(b, 'c'), c.op, c.attr)
		case c.seq > 0 && v.seq-c.seq <= maxPeriod:
			b = append(b, 'r', byte(v.seq-c.seq))
		default:
			b = c.typ.AppendKey(append(b, 'i'))
		}
	}
	h := maphash.Bytes(t.seed, b)
	at := func(seq int64) *uint64 { return &t.hashes[uint64(seq)%uint64(len(t.hashes))] }
	*at(v.seq) = h
	found := 0
	for p := minPeriod; p <= maxPeriod; p++ {
		if v.seq > int64(p) && *at(v.seq - int64(p)) == h {
			t.match[p]++
			if found == 0 && t.match[p] >= int64(p) {
				found = p
			}
		} else {
			t.match[p] = 0
			delete(t.outs, p)
		}
	}
	return found
}

// forget begins anew: what was recorded before is no round of what comes.
func (t *tail) forget() {
	clear(t.match[:])
	clear(t.outs)
}

// cutRounds cuts the last p operations, which repeat the p before them: what came before the two rounds (if it hasn't
// run), then each round by itself. The rounds get the same outputs, so that they are the same program. e.mu is held.
func (e *Engine) cutRounds(p int) error {
	pending := append([]*value(nil), e.rec.pending...)
	n := len(pending)
	first := pending[n-1].seq - int64(p) + 1 // of the last round
	offset := func(v *value) int { return int(v.seq-first+int64(p)) % p }
	outs := e.rec.tail.outs[p]
	if outs == nil {
		outs = map[int]bool{}
		e.rec.tail.outs[p] = outs
		for _, v := range pending { // what the last round takes from the one before it
			if v.seq < first {
				continue
			}
			for _, c := range v.in {
				if c.seq > 0 && c.seq < first && c.seq >= first-int64(p) {
					outs[offset(c)] = true
				}
			}
		}
	}
	for _, v := range pending {
		if v.seq >= first && !v.used {
			outs[offset(v)] = true
		}
	}
	var before, round, last []*value
	for _, v := range pending {
		switch {
		case v.seq >= first:
			if outs[offset(v)] {
				last = append(last, v)
			}
		case v.seq >= first-int64(p):
			if outs[offset(v)] {
				round = append(round, v)
			}
		case !v.used || takenFrom(pending, v, first-int64(p)):
			before = append(before, v)
		}
	}
	for _, part := range [][]*value{before, round, last} {
		if err := e.cut("fused", part, nil); err != nil {
			return err
		}
	}
	e.rec.pending = e.rec.pending[:0] // the rest was passed over; it is still recorded in whatever holds it
	return nil
}

// takenFrom reports whether an operation recorded at or after seq takes v.
func takenFrom(pending []*value, v *value, seq int64) bool {
	for _, w := range pending {
		if w.seq < seq {
			continue
		}
		for _, c := range w.in {
			if c == v {
				return true
			}
		}
	}
	return false
}
