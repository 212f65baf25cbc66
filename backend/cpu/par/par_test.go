package par

import (
	"sync/atomic"
	"testing"
)

func TestForCoversEachIndexOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		p := New(workers)
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
						t.Fatalf("workers %d n %d grain %d: index %d visited %d times", workers, n, grain, i, c)
					}
				}
			}
		}
		p.Close()
	}
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
