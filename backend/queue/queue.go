// Package queue hands work to one goroutine, in the order in which it was pushed; pushing never waits.
//
//	q := queue.New[task]()
//	go q.Serve(run)
//	q.Push(t)
//	q.Stop()
//	q.Wait()
package queue

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Queue is what has been pushed and not yet served. It is safe for any number of goroutines that push.
type Queue[T any] struct {
	mu      sync.Mutex
	wake    *sync.Cond
	items   []T
	length  atomic.Int64 // of items, to look without the lock
	asleep  bool
	stopped bool
	ended   chan struct{}
}

// New returns an empty queue that nobody serves yet.
func New[T any]() *Queue[T] {
	q := &Queue[T]{ended: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// Push adds x, and reports whether the queue still takes something: not after Stop.
func (q *Queue[T]) Push(x T) bool {
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return false
	}
	q.items = append(q.items, x)
	q.length.Store(int64(len(q.items)))
	asleep := q.asleep
	q.mu.Unlock()
	if asleep {
		q.wake.Signal()
	}
	return true
}

// idleSpins is how often a queue is looked at before its goroutine sleeps: some 20 µs, so that a caller who issues one
// operation after another does not wake a thread for each.
const idleSpins = 200

// Serve calls do for everything that is pushed, until the queue is stopped and empty. It is called once.
func (q *Queue[T]) Serve(do func(T)) {
	defer close(q.ended)
	var batch []T
	for {
		for i := 0; i < idleSpins && q.length.Load() == 0; i++ {
			runtime.Gosched()
		}
		q.mu.Lock()
		for len(q.items) == 0 && !q.stopped {
			q.asleep = true
			q.wake.Wait()
			q.asleep = false
		}
		if len(q.items) == 0 {
			q.mu.Unlock()
			return
		}
		batch, q.items = q.items, batch[:0]
		q.length.Store(0)
		q.mu.Unlock()
		for i, x := range batch {
			do(x)
			var none T
			batch[i] = none
		}
	}
}

// Stop makes Serve return when what has been pushed is done.
func (q *Queue[T]) Stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.wake.Signal()
}

// Wait returns when Serve has.
func (q *Queue[T]) Wait() { <-q.ended }
