// Package par runs the CPU kernels on all cores.
//
// A [Pool] keeps its workers between calls: they spin briefly for the next job and then sleep, so that a step made of
// many short kernels pays no thread start. Work is divided by index and never by worker, so a result doesn't depend on
// the number of threads.
//
// On a machine with several NUMA nodes each worker stays on the processors of one node, and each node has a share of every
// job, from one index to another: the same share of a product, say, whenever it is computed, so that the memory which a
// node was the first to touch is mostly used there again. A worker helps another node when nothing of its own node's share
// is left.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is a set of workers. A nil *Pool runs everything on the caller. Several callers may use it at once: their jobs take
// turns on the workers, and each caller is worker 0 of its own. A job must not start another on the same pool.
type Pool struct {
	workers int         // including the caller
	jobs    []chan *job // of workers 1 and on
	nodes   [][]int     // their processors; of a single node none
	first   []int       // the first worker of each node, and workers in the end
	place   func(cpus []int)
	close   sync.Once
}

type job struct {
	grain  int64
	fn     func(worker, lo, hi int)
	shares []share // by node
	one    [1]share
	left   atomic.Int64 // workers still running
	done   chan struct{}
	fault  atomic.Pointer[fault]
}

// share is what one node is to do of a job.
type share struct {
	next atomic.Int64
	end  int64
	_    [48]byte // nodes don't meet in a cache line
}

type fault struct{ value any }

// New returns a pool of n workers, or of [Threads] when n is 0, on this machine's nodes.
func New(n int) *Pool { return NewOn(n, nodes(root)) }

// NewOn is New on the given nodes, each a list of processors.
func NewOn(n int, nodes [][]int) *Pool { return newPool(n, nodes, place) }

func newPool(n int, nodes [][]int, place func(cpus []int)) *Pool {
	if n <= 0 {
		n = Threads()
	}
	p := &Pool{workers: n, place: place}
	p.nodes, p.first = divide(n, nodes)
	for node := range p.nodes {
		for w := max(1, p.first[node]); w < p.first[node+1]; w++ {
			c := make(chan *job, 1)
			p.jobs = append(p.jobs, c)
			go p.worker(w, node, c)
		}
	}
	return p
}

// Nodes returns how many NUMA nodes the workers are placed on; 1 also where they aren't placed.
func (p *Pool) Nodes() int {
	if p == nil {
		return 1
	}
	return len(p.nodes)
}

// Enter places the calling goroutine, for as long as it lives, where worker 0 belongs: for one that calls For again and
// again. On a machine with one node it does nothing.
func (p *Pool) Enter() { p.enter(0) }

func (p *Pool) enter(node int) {
	if p.Nodes() > 1 {
		runtime.LockOSThread() // and the thread ends with the goroutine
		p.place(p.nodes[node])
	}
}

// A worker looks for the next job spins times before it sleeps, and the caller waits times for the end of its own: some
// 100 µs each. Waking a goroutine that sleeps takes about as long.
const (
	spins = 10_000
	waits = 200_000
)

func (p *Pool) worker(w, node int, c chan *job) {
	p.enter(node)
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
		j.run(w, node)
		if j.left.Add(-1) == 0 {
			close(j.done)
		}
	}
}

func (j *job) run(w, node int) {
	defer func() {
		if v := recover(); v != nil {
			j.fault.CompareAndSwap(nil, &fault{v})
			for i := range j.shares {
				j.shares[i].next.Store(j.shares[i].end) // the others stop at their next piece
			}
		}
	}()
	for i := range j.shares {
		s := &j.shares[(node+i)%len(j.shares)]
		for {
			lo := s.next.Add(j.grain) - j.grain
			if lo >= s.end {
				break
			}
			j.fn(w, int(lo), int(min(lo+j.grain, s.end)))
		}
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
	j := &job{grain: int64(grain), fn: fn, done: make(chan struct{})}
	j.shares = j.one[:]
	if nodes := len(p.nodes); nodes > 1 {
		j.shares = make([]share, nodes)
	}
	// A node has as large a part of the pieces as of the workers, and wakes no more of them than it has pieces.
	cut := func(node int) int { return (pieces*p.first[node] + p.workers - 1) / p.workers }
	wake := func(node int) int { return min(p.first[node+1]-p.first[node], cut(node+1)-cut(node)) }
	awake := 0
	for node := range j.shares {
		j.shares[node].next.Store(int64(cut(node) * grain))
		j.shares[node].end = int64(min(cut(node+1)*grain, n))
		awake += wake(node)
	}
	j.left.Store(int64(awake))
	for node, first := range p.first[:len(j.shares)] {
		for w := max(1, first); w < first+wake(node); w++ { // worker 0 is the caller
			p.jobs[w-1] <- j
		}
	}
	j.run(0, 0)
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
