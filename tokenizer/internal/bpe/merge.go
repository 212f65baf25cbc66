package bpe

import "math"

// short is the length up to which a scan for the best pair after every merge is faster than keeping a queue. The scan
// is quadratic, so a text without spaces must not come to it.
const short = 24

// Merge joins the symbols of one word until no listed pair is left: always the pair of lowest rank, of equal ones the
// leftmost. It works in place and gives the shortened slice; its time is n log n.
func (m *Model) Merge(word []int32) []int32 {
	if len(word) > short {
		return m.mergeLong(word)
	}
	for len(word) > 1 {
		best, place := merge{rank: math.MaxInt32}, -1
		for i := 0; i+1 < len(word); i++ {
			if next, ok := m.merges[pairOf(word[i], word[i+1])]; ok && next.rank < best.rank {
				best, place = next, i
			}
		}
		if place < 0 {
			break
		}
		word[place] = best.id
		word = append(word[:place+1], word[place+2:]...)
	}
	return word
}

// candidate is a pair that could be joined: the symbol at place with the one after it.
type candidate struct {
	merge
	place int32
	both  pair // the symbols when it was queued; other ones now mean that it is out of date
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.place < d.place
}

const gone = math.MinInt32 // symbol that was joined to the one before it

func (m *Model) mergeLong(word []int32) []int32 {
	n := int32(len(word))
	next, prev := make([]int32, n), make([]int32, n)
	for i := range n {
		next[i], prev[i] = i+1, i-1
	}
	var q queue
	add := func(i int32) {
		if i < 0 || next[i] >= n {
			return
		}
		both := pairOf(word[i], word[next[i]])
		if found, ok := m.merges[both]; ok {
			q.push(candidate{found, i, both})
		}
	}
	for i := range n {
		add(i)
	}
	for len(q) > 0 {
		c := q.pop()
		i := c.place
		if word[i] == gone || next[i] >= n || pairOf(word[i], word[next[i]]) != c.both {
			continue
		}
		j := next[i]
		word[i], word[j] = c.id, gone
		next[i] = next[j]
		if next[j] < n {
			prev[next[j]] = i
		}
		add(prev[i])
		add(i)
	}
	kept := word[:0]
	for _, symbol := range word {
		if symbol != gone {
			kept = append(kept, symbol)
		}
	}
	return kept
}

// queue is a binary heap with the best candidate at its root. container/heap would put each one in an interface.
type queue []candidate

func (q *queue) push(c candidate) {
	*q = append(*q, c)
	h := *q
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
}

func (q *queue) pop() candidate {
	h := *q
	root, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return root
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return root
}
