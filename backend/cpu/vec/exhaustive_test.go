package vec

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
)

// TestUnaryExhaustive runs the functions of one operand on float32 inputs by their bits: with GESSO_EXHAUSTIVE=1 on all
// 2³² of them, with GESSO_EXHAUSTIVE=N on every Nth, with K/N on every Nth from the Kth on, without on a sample. The error
// is that of the portable level, whose bits the others must have.
func TestUnaryExhaustive(t *testing.T) {
	first, stride := uint64(0), uint64(40_009) // odd, so that every low bit occurs
	if s := os.Getenv("GESSO_EXHAUSTIVE"); s != "" {
		from, every, ok := strings.Cut(s, "/")
		if !ok {
			from, every = "0", s
		}
		k, err := strconv.ParseUint(from, 10, 32)
		n, err2 := strconv.ParseUint(every, 10, 32)
		if err != nil || err2 != nil || k >= n {
			t.Fatalf("GESSO_EXHAUSTIVE=%q: expected N for every Nth input, or K/N with K below N", s)
		}
		first, stride = k, n
	}
	var others []*Funcs
	for _, l := range isa.Available() {
		if f := For(l); f.Level() == l && l != isa.Portable {
			others = append(others, f)
		}
	}
	total := (1<<32 - first + stride - 1) / stride
	for _, c := range unaries {
		t.Run(c.name, func(t *testing.T) {
			const chunk = 1 << 14
			var next atomic.Uint64
			var wg sync.WaitGroup
			var mu sync.Mutex
			var worst excess
			for range runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					x, got, same := make([]float32, chunk), make([]float32, chunk), make([]float32, chunk)
					var mine excess
					for {
						lo := next.Add(chunk) - chunk
						if lo >= total || t.Failed() {
							break
						}
						n := int(min(chunk, total-lo))
						for i := range n {
							x[i] = float(uint32(first + (lo+uint64(i))*stride))
						}
						c.f(&goFuncs)(got[:n], x[:n])
						for _, f := range others {
							c.f(f)(same[:n], x[:n])
							if i := sameBits(got[:n], same[:n]); i >= 0 {
								t.Errorf("%v: %s(%g [%#x]) = %g, portable %g", f.Level(), c.name, x[i], bits(x[i]), same[i], got[i])
							}
						}
						for i, v := range x[:n] {
							mine.add(&c, v, got[i])
						}
					}
					mu.Lock()
					defer mu.Unlock()
					worst.merge(mine)
				})
			}
			wg.Wait()
			t.Logf("%d inputs, levels as portable: %d; %.4f ulp at %g; %.4f of the absolute bound at %g",
				total, len(others), worst.ulps, worst.at, worst.share, worst.shareAt)
			if worst.ulps > c.ulps {
				t.Errorf("%s(%g): %g ulp, above %g", c.name, worst.at, worst.ulps, c.ulps)
			}
		})
	}
}

// excess is the largest error of a function: in units of the last place where it is above the absolute bound, and as a
// share of that bound where it is below.
type excess struct {
	ulps, share float64
	at, shareAt float32
}

func (e *excess) add(c *unaryCase, x, got float32) {
	want := c.want(float64(x))
	if c.abs != nil {
		if s := math.Abs(float64(got)-want) / c.abs(float64(x)); s <= 1 {
			if s > e.share {
				e.share, e.shareAt = s, x
			}
			return
		}
	}
	if u := ulps(got, want); u > e.ulps {
		e.ulps, e.at = u, x
	}
}

func (e *excess) merge(o excess) {
	if o.ulps > e.ulps {
		e.ulps, e.at = o.ulps, o.at
	}
	if o.share > e.share {
		e.share, e.shareAt = o.share, o.shareAt
	}
}
