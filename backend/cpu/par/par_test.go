package par

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestForCoversEachIndexOnce(t *testing.T) {
	for _, nodes := range [][]int{{1}, {2}, {3}, {8}, {1, 1}, {3, 5}, {1, 1, 1, 2}} {
		p := onNodes(t, nodes...)
		for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 1000} {
			for _, grain := range []int{0, 1, 7, 64, 2000} {
				seen := make([]atomic.Int32, n)
				p.For(n, grain, func(w, lo, hi int) {
					if w < 0 || w >= p.Workers() {
						t.Errorf("worker %d of %d", w, p.Workers())
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
				})
				for i := range seen {
					if c := seen[i].Load(); c != 1 {
						t.Fatalf("workers %v n %d grain %d: index %d visited %d times", nodes, n, grain, i, c)
					}
				}
			}
		}
	}
}

// TestForReturnsAfterAll: callers at once, each with jobs of all lengths back to back whose workers are late to enter or to
// leave, and none is in a job when its For returns. What a job reads is overwritten then.
func TestForReturnsAfterAll(t *testing.T) {
	p := New(4)
	defer p.Close()
	var callers sync.WaitGroup
	for caller := range 3 {
		callers.Go(func() {
			state := make([]int, 8) // plain memory: the race detector sees who is late
			for round := range 300 {
				n := 1 + (round*7+caller)%13
				for i := range state {
					state[i] = n
				}
				var inside atomic.Int32
				p.For(n, 1+round%3, func(w, lo, hi int) {
					inside.Add(1)
					for range (w*5 + round) % 4 {
						runtime.Gosched()
					}
					if state[w] != n || hi > n {
						t.Errorf("piece %d to %d of %d meets a state of %d", lo, hi, n, state[w])
					}
					inside.Add(-1)
				})
				if left := inside.Load(); left != 0 {
					t.Errorf("%d workers are in a job that has returned", left)
				}
			}
		})
	}
	callers.Wait()
}

func TestForRaisesPanicInCaller(t *testing.T) {
	p := New(2)
	defer p.Close()
	defer func() {
		if recover() != "boom" {
			t.Error("the panic of a worker did not reach the caller")
		}
		p.For(10, 1, func(_, _, _ int) {}) // the pool still works
	}()
	p.For(100, 1, func(_, lo, _ int) {
		if lo == 50 {
			panic("boom")
		}
	})
}

// TestPanicEndsTheJob: after a panic the other workers take no further pieces, of which each takes a while here.
func TestPanicEndsTheJob(t *testing.T) {
	p := New(2)
	defer p.Close()
	const n = 2000
	var ran atomic.Int32
	func() {
		defer func() { recover() }()
		p.For(n, 1, func(_, lo, _ int) {
			ran.Add(1)
			if lo == 0 {
				panic("boom")
			}
			time.Sleep(time.Millisecond)
		})
	}()
	if got := ran.Load(); got > n/2 {
		t.Errorf("%d of %d pieces ran though the first one panicked", got, n)
	}
}
