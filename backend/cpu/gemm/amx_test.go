package gemm

import (
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// TestAMXUnderSignals multiplies on many goroutines while the collector runs, the profiler sends signals to every thread
// and the scheduler preempts them: tile state must never leak from one call to another.
func TestAMXUnderSignals(t *testing.T) {
	t.Run("amx", func(t *testing.T) { // named like the other tests of this level
		levels := isa.Available()
		if levels[len(levels)-1] != isa.AMX {
			t.Skip("no AMX here")
		}
		const m, n, k = 35, 40, 70
		a, _ := randomOperand(rand.New(rand.NewPCG(1, 2)), tensor.BF16, m, k, k)
		b, _ := randomOperand(rand.New(rand.NewPCG(3, 4)), tensor.BF16, n, k, k)
		q8, scale, err := PackInt8(nil, isa.AMX, b, n, k, tensor.BF16)
		if err != nil {
			t.Fatal(err)
		}
		problems := []Problem{{M: m, N: n, K: k, A: a, B: b}, {M: m - 20, N: n, K: k, A: a, B: b}, {M: m, N: n, K: k, A: a, Packed: q8, Scale: scale}}
		multiply := func(p Problem) []float32 {
			c := newCollect(p.M, n)
			if err := Run(nil, isa.AMX, &p, c.emit); err != nil {
				t.Error(err)
			}
			return c.c
		}
		var want [][]float32
		for _, p := range problems {
			want = append(want, multiply(p))
		}

		if err := pprof.StartCPUProfile(io.Discard); err != nil {
			t.Fatal(err)
		}
		defer pprof.StopCPUProfile()
		deadline := time.Now().Add(2 * time.Second)
		var wg sync.WaitGroup
		for g := range 32 {
			wg.Go(func() {
				for i := g; time.Now().Before(deadline); i++ {
					if which := i % len(problems); !slices.Equal(multiply(problems[which]), want[which]) {
						t.Errorf("product %d differs", which)
						return
					}
				}
			})
		}
		wg.Go(func() {
			for time.Now().Before(deadline) {
				runtime.GC()
			}
		})
		wg.Wait()
	})
}
