package hub

import (
	"cmp"
	"slices"

	"github.com/gesso-go/gesso/hub/xet"
)

// spans is a set of byte positions: sorted ranges that neither overlap nor touch.
type spans []xet.Range

// add puts the range into the set and returns how many positions are new.
func (s *spans) add(first, end int64) (added int64) {
	if first >= end {
		return 0
	}
	old := *s
	added = end - first
	// From i to j lie the ranges that join the new one.
	i := old.search(first)
	j := i
	for ; j < len(old) && old[j].First <= end; j++ {
		added -= max(min(end, old[j].End)-max(first, old[j].First), 0)
	}
	if i < j {
		first, end = min(first, old[i].First), max(end, old[j-1].End)
	}
	*s = slices.Replace(old, i, j, xet.Range{First: first, End: end})
	return added
}

// search returns the index of the first range that ends at or behind the position.
func (s spans) search(at int64) int {
	i, _ := slices.BinarySearchFunc(s, at, func(r xet.Range, at int64) int { return cmp.Compare(r.End, at) })
	return i
}

// prefix returns up to where all positions from 0 on are in the set.
func (s spans) prefix() int64 {
	if len(s) == 0 || s[0].First > 0 {
		return 0
	}
	return s[0].End
}

// missing returns the ranges of [0, size) that are not in the set.
func (s spans) missing(size int64) []xet.Range {
	var out []xet.Range
	at := int64(0)
	for _, r := range s {
		if r.First >= size {
			break
		}
		if r.First > at {
			out = append(out, xet.Range{First: at, End: r.First})
		}
		at = r.End
	}
	if at < size {
		out = append(out, xet.Range{First: at, End: size})
	}
	return out
}

// overlaps reports whether a position of [first, end) is in the set.
func (s spans) overlaps(first, end int64) bool {
	i := s.search(first + 1)
	return i < len(s) && s[i].First < end
}
