// Package par runs the CPU kernels on all cores.
//
// A [Pool] keeps its workers between calls: they spin briefly for the next job and then sleep, so that a step made of
// many short kernels pays no thread start. Work is divided by index and never by worker, so a result doesn't depend on
// the number of threads.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is a set of workers. A nil *Pool runs everything on the caller. Several callers may use it at once: their jobs take
// turns on the workers, and each caller is worker 0 of its own. A job must not start another on the same pool.
type Pool struct {
	workers int // including the caller
	jobs    []chan *job
	close   sync.Once
}

type job struct {
	n, grain int64
	next     atomic.Int64
	fn       func(worker, lo, hi int)
	left     atomic.Int64 // workers still running
	done     chan struct{}
	fault    atomic.Pointer[fault]
}

type fault struct{ value any }

// New returns a pool of n workers, or of [Threads] when n is 0.
func New(n int) *Pool {
	if n <= 0 {
		n = Threads()
	}
	p := &Pool{workers: n}
	for w := 1; w < n; w++ {
		c := make(chan *job, 1)
		p.jobs = append(p.jobs, c)
		go worker(w, c)
	}
	return p
}

// A worker looks for the next job spins times before it sleeps, and the caller waits times for the end of its own: some
// 100 µs each. Waking a goroutine that sleeps takes about as long.
const (
	spins = 10_000
	waits = 200_000
)

func worker(w int, c chan *job) {
	for {
		var j *job
		var ok bool
		for i := 0; i < spins && j == nil; i++ {
			select {
			case j, ok = <-c:
				if !ok {
					return
				}
			default:
				if i%64 == 63 {
					runtime.Gosched()
				}
			}
		}
		if j == nil {
			if j, ok = <-c; !ok {
				return
			}
		}
		j.run(w)
		if j.left.Add(-1) == 0 {
			close(j.done)
		}
	}
}

func (j *job) run(w int) {
	defer func() {
		if v := recover(); v != nil {
			j.fault.CompareAndSwap(nil, &fault{v})
			j.next.Store(j.n) // the others stop at their next piece
		}
	}()
	for {
		lo := j.next.Add(j.grain) - j.grain
		if lo >= j.n {
			return
		}
		j.fn(w, int(lo), int(min(lo+j.grain, j.n)))
	}
}

// Workers returns how many workers For may use; worker numbers are below it.
func (p *Pool) Workers() int {
	if p == nil {
		return 1
	}
	return p.workers
}

// For calls fn on pieces [lo, hi) that cover 0..n, each at most grain long, from several workers at once, and returns
// when all are done. Worker is for scratch memory only: results must not depend on it. A panic in fn is raised again in
// the caller.
func (p *Pool) For(n, grain int, fn func(worker, lo, hi int)) {
	if n <= 0 {
		return
	}
	grain = max(grain, 1)
	pieces := (n + grain - 1) / grain
	if p == nil || p.workers == 1 || pieces == 1 {
		for lo := 0; lo < n; lo += grain {
			fn(0, lo, min(lo+grain, n))
		}
		return
	}
	j := &job{n: int64(n), grain: int64(grain), fn: fn, done: make(chan struct{})}
	helpers := min(p.workers, pieces) - 1
	j.left.Store(int64(helpers + 1))
	for _, c := range p.jobs[:helpers] {
		c <- j
	}
	j.run(0)
	j.left.Add(-1)
	for i := 0; j.left.Load() != 0; i++ { // the others are nearly done, most of the time
		if i == waits {
			<-j.done
			break
		}
	}
	if f := j.fault.Load(); f != nil {
		panic(f.value)
	}
}

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.close.Do(func() {
		for _, c := range p.jobs {
			close(c)
		}
	})
}
