package cpu

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// errClosed is what happens to programs issued after Close.
var errClosed = errors.New("cpu: the client is closed")

// task is one entry of the stream. It must not panic.
type task interface {
	exec(s *stream)
}

// stream runs tasks in order on a goroutine of its own. Issuing never blocks.
type stream struct {
	mu      sync.Mutex
	wake    *sync.Cond
	queue   []task
	length  atomic.Int64 // of queue, to look without the lock
	asleep  bool
	stopped bool
	ended   chan struct{}
	err     error // the first failure since the last sync; the stream's goroutine only, apart from sync
}

func newStream() *stream {
	s := &stream{ended: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.loop()
	return s
}

// push issues t.
func (s *stream) push(t task) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return errClosed
	}
	s.queue = append(s.queue, t)
	s.length.Store(int64(len(s.queue)))
	asleep := s.asleep
	s.mu.Unlock()
	if asleep {
		s.wake.Signal()
	}
	return nil
}

// idleSpins is how often the stream looks for work before it sleeps: some 20 µs, so that a caller who issues one
// operation after another does not wake a thread for each.
const idleSpins = 200

func (s *stream) loop() {
	defer close(s.ended)
	var batch []task
	for {
		for i := 0; i < idleSpins && s.length.Load() == 0; i++ {
			runtime.Gosched()
		}
		s.mu.Lock()
		for len(s.queue) == 0 && !s.stopped {
			s.asleep = true
			s.wake.Wait()
			s.asleep = false
		}
		if len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		batch, s.queue = s.queue, batch[:0]
		s.length.Store(0)
		s.mu.Unlock()
		for i, t := range batch {
			t.exec(s)
			batch[i] = nil
		}
	}
}

// fail keeps the first error for the next sync.
func (s *stream) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// fence takes the stream's error when everything before it has run.
type fence chan error

func (f fence) exec(s *stream) {
	f <- s.err
	s.err = nil
}

func (s *stream) sync() error {
	f := make(fence, 1)
	if err := s.push(f); err != nil {
		return err
	}
	return <-f
}

// stop runs what has been issued and ends the goroutine.
func (s *stream) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.wake.Signal()
	<-s.ended
}
