package pjrt

import (
	"sync"

	"github.com/gesso-go/gesso/backend/queue"
)

// stream runs programs on one device. Two goroutines serve it: the issuer hands programs to the plugin in the order of
// the calls, because a plugin may run a small program at once, or wait when it has enough to do; the waiter waits for
// their ends, in the same order.
type stream struct {
	limit   int64 // of results' bytes under way
	pending *queue.Queue[*run]
	running *queue.Queue[*run]

	mu    sync.Mutex
	room  sync.Cond
	bytes int64 // of results under way
	count int   // of executions under way
	err   error // the first since the last fence
}

func newStream(limit int64) *stream {
	s := &stream{limit: limit, pending: queue.New[*run](), running: queue.New[*run]()}
	s.room.L = &s.mu
	go func() {
		s.pending.Serve(s.dispatch)
		s.running.Stop()
	}()
	go s.running.Serve(s.await)
	return s
}

// push issues a program.
func (s *stream) push(r *run) error {
	if !s.pending.Push(r) {
		return errClosed
	}
	return nil
}

// dispatch gives a program to the plugin when there is room for its results.
func (s *stream) dispatch(r *run) {
	if r.exe == nil {
		s.running.Push(r)
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
	s.running.Push(r)
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
	s.pending.Stop()
	s.running.Wait() // it is stopped when the issuer has ended
}
