package pjrt

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// stream runs programs on one device. Two goroutines serve it: the issuer hands programs to the plugin in the order of
// the calls, because a plugin may run a small program at once, or wait when it has enough to do; the waiter waits for
// their ends, in the same order.
type stream struct {
	limit   int64 // of results' bytes under way
	pending queue
	running queue

	mu    sync.Mutex
	room  sync.Cond
	bytes int64 // of results under way
	count int   // of executions under way
	err   error // the first since the last fence
}

func newStream(limit int64) *stream {
	s := &stream{limit: limit}
	s.room.L = &s.mu
	s.pending.init()
	s.running.init()
	go s.pending.serve(s.dispatch, s.running.stop)
	go s.running.serve(s.await, func() {})
	return s
}

// push issues a program.
func (s *stream) push(r *run) error {
	if !s.pending.push(r) {
		return errClosed
	}
	return nil
}

// dispatch gives a program to the plugin when there is room for its results.
func (s *stream) dispatch(r *run) {
	if r.exe == nil {
		s.running.push(r)
		return
	}
	bytes := r.exe.bytes
	s.mu.Lock()
	for s.count > 0 && s.bytes+bytes > s.limit {
		s.room.Wait()
	}
	s.mu.Unlock()
	if !r.issue(s) {
		return
	}
	s.mu.Lock()
	s.count++
	s.bytes += bytes
	s.mu.Unlock()
	s.running.push(r)
}

// await waits for the end of a program.
func (s *stream) await(r *run) {
	if r.exe == nil {
		s.mu.Lock()
		err := s.err
		s.err = nil
		s.mu.Unlock()
		r.end(err)
		return
	}
	bytes := r.exe.bytes
	r.await(s)
	s.mu.Lock()
	s.count--
	s.bytes -= bytes
	s.room.Signal()
	s.mu.Unlock()
}

// fail keeps the first error for the next fence.
func (s *stream) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
}

// sync waits for what was issued before and returns the first error since the last one.
func (s *stream) sync() error {
	fence := newRun(nil)
	if err := s.push(fence); err != nil {
		return err
	}
	return fence.Wait()
}

// stop waits for what was issued and ends the goroutines.
func (s *stream) stop() {
	s.pending.stop()
	<-s.pending.ended
	<-s.running.ended
}

// queue hands runs to the goroutine that serves it. Pushing never waits.
type queue struct {
	mu      sync.Mutex
	wake    sync.Cond
	runs    []*run
	length  atomic.Int64 // of runs, to look without the lock
	asleep  bool
	stopped bool
	ended   chan struct{}
}

func (q *queue) init() {
	q.wake.L = &q.mu
	q.ended = make(chan struct{})
}

// push reports whether the queue is still served.
func (q *queue) push(r *run) bool {
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return false
	}
	q.runs = append(q.runs, r)
	q.length.Store(int64(len(q.runs)))
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

// serve calls do for each run, in order, until the queue is stopped and empty; then it calls last.
func (q *queue) serve(do func(*run), last func()) {
	defer close(q.ended)
	defer last()
	var batch []*run
	for {
		for i := 0; i < idleSpins && q.length.Load() == 0; i++ {
			runtime.Gosched()
		}
		q.mu.Lock()
		for len(q.runs) == 0 && !q.stopped {
			q.asleep = true
			q.wake.Wait()
			q.asleep = false
		}
		if len(q.runs) == 0 {
			q.mu.Unlock()
			return
		}
		batch, q.runs = q.runs, batch[:0]
		q.length.Store(0)
		q.mu.Unlock()
		for i, r := range batch {
			do(r)
			batch[i] = nil
		}
	}
}

func (q *queue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.wake.Signal()
}
