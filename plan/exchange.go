package plan

import (
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/hlo"
)

// links is how many neighbours a chip of the topology can send to: one along an axis of two chips, two along a longer one.
func (t *Target) links() (n int) {
	_, shape, _ := strings.Cut(t.Name, ":")
	for axis := range strings.SplitSeq(shape, "x") {
		switch axis {
		case "1":
		case "2":
			n++
		default:
			n += 2
		}
	}
	return max(n, 1) // the two devices of one TPU7x chip
}

// exchange returns the bytes that a program's exchanges among n devices result in, and the seconds that a device needs to
// send its part while nothing else runs: of a ring's exchanges of results of R bytes, R·(n-1)/n for all-gather and
// all-to-all, twice that for all-reduce, R·(n-1) for reduce-scatter and R for a permutation, over all links.
func (t *Target) exchange(c *hlo.Cost, n int64) (results int64, seconds float64) {
	sent := 0.0
	for op, bytes := range c.Collectives {
		results += bytes
		share := float64(n-1) / float64(n)
		switch op {
		case "all-reduce":
			share *= 2
		case "reduce-scatter":
			share *= float64(n)
		case "collective-permute":
			share = 1
		}
		sent += float64(bytes) * share
	}
	return results, sent / (float64(t.links()) * t.Chip.Link)
}
