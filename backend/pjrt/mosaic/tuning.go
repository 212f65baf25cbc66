package mosaic

import (
	"fmt"
	"strconv"
	"strings"
)

// Generation is a generation of chips, by the compiler's name for its topologies.
type Generation string

// The generations that the kernels are written for.
const (
	V4    Generation = "v4"
	V5e   Generation = "v5e"
	V5p   Generation = "v5p"
	V6e   Generation = "v6e"
	TPU7x Generation = "tpu7x"
)

// Chip is what is known of a generation, per device of the runtime (a TPU7x chip is two devices).
type Chip struct {
	Generation Generation
	Kind       string  // the runtime's name of a device
	Flops      float64 // of bfloat16 products, per second
	Bandwidth  float64 // of the memory, bytes per second
	Link       float64 // bytes per second that one link sends to a neighbour
	Memory     int64   // bytes that programs may use, as libtpu 0.0.52 states it

	attention tile
	vmem      int // bytes of the chip's own memory that a kernel may take
}

// chips: flops and bandwidth are Google's figures, of these pages' tables as read in December 2026: v5e
// docs.cloud.google.com/tpu/docs/v5e (197 TFLOPs, 819 GBps); v5p, v6e and TPU7x docs.cloud.google.com/tpu/docs/tpu7x (459,
// 918, 2307 TFLOPs; 2765, 1638, 7380 GBps; a TPU7x chip is two devices). Links are the same pages' bandwidth between chips,
// which counts both directions (400, 1200, 800, 1200 GBps), over twice the neighbours of a torus of two or three dimensions.
// Flops, bandwidth and links of v4 are unverified. The tiles had the fewest static instruction bundles in attention of 24
// heads of 128 over 4,608 tokens compiled by libtpu 0.0.52 (in millions, queries/keys of a block, r for rows and c for
// columns):
//
//	        512/512r  768/512r  1152/768c  1536/512c
//	v5e        2.239     2.129      2.269      2.534
//	v5p        2.210     2.194      2.249      2.515
//	v6e        1.804     1.503      1.401      1.314
//	tpu7x      1.701     1.536      1.386      1.267
//
// No chip has run them. The chip's own memory: of v4, libtpu refuses kernels that take more than 16 MiB; of the others no
// public figure was found, so 128 MiB on v5e, v5p and v6e and 64 MiB on tpu7x are unverified, and half of them is left to the
// program around the kernel. libtpu takes kernels of 22 MB on all four, attention over 16,896 tokens.
var chips = []Chip{
	{V4, "TPU v4", 275e12, 1228e9, 50e9, 32745977856, tile{768, 512, false}, 16 << 20},
	{V5e, "TPU v5 lite", 197e12, 819e9, 50e9, 16909336064, tile{768, 512, false}, 64 << 20},
	{V5p, "TPU v5", 459e12, 2765e9, 100e9, 102786661888, tile{768, 512, false}, 64 << 20},
	{V6e, "TPU v6 lite", 918e12, 1638e9, 100e9, 33546042880, tile{1536, 512, true}, 64 << 20},
	{TPU7x, "TPU7x", 2307e12 / 2, 7380e9 / 2, 100e9 / 2, 101724453888, tile{1536, 512, true}, 32 << 20},
}

// ChipOf returns the chip of a generation, or of a device kind as the runtime names it.
func ChipOf(name string) (Chip, bool) {
	for _, c := range chips {
		if string(c.Generation) == name || c.Kind == name {
			return c, true
		}
	}
	return Chip{}, false
}

// ParseTopology checks a topology such as "v6e:2x2" and returns the name that libtpu takes and its chip; v7x is libtpu's
// tpu7x.
func ParseTopology(name string) (string, Chip, error) {
	gen, shape, found := strings.Cut(name, ":")
	if gen == "v7x" || gen == "v7" {
		gen = string(TPU7x)
	}
	c, ok := ChipOf(gen)
	if !ok || gen != string(c.Generation) {
		var known []string
		for _, c := range chips {
			known = append(known, string(c.Generation))
		}
		return "", Chip{}, fmt.Errorf("topology %q: expected GENERATION:AxB or AxBxC with a generation of %s", name, strings.Join(known, ", "))
	}
	parts := strings.Split(shape, "x")
	for _, p := range parts {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 64 || strconv.Itoa(n) != p {
			found = false
		}
	}
	if !found || len(parts) < 2 || len(parts) > 3 {
		return "", Chip{}, fmt.Errorf("topology %q: expected chips after the colon, such as %s:1x1 or %[2]s:2x2x1", name, gen)
	}
	if len(parts) == 2 && (c.Generation == V4 || c.Generation == V5p || c.Generation == TPU7x) {
		shape += "x1" // the chips of these generations stand in three dimensions
	}
	return gen + ":" + shape, c, nil
}

// tileFor fits the generation's tile to the numbers of queries and keys: blocks of queries are equal and nearly full.
func (c Chip) tileFor(queries, keys int) tile {
	t := c.attention
	t.queries = ceil(ceil(queries, ceil(queries, t.queries)), lanes) * lanes
	t.keys = min(t.keys, ceil(keys, lanes)*lanes)
	return t
}

// lanes is the number of columns of a register.
const lanes = 128

func itoa(v int) string { return strconv.Itoa(v) }
