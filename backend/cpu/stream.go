package cpu

import (
	"errors"

	"github.com/gesso-go/gesso/backend/queue"
)

// errClosed is what happens to programs issued after Close.
var errClosed = errors.New("cpu: the client is closed")

// task is one entry of the stream. It must not panic.
type task interface {
	exec(s *stream)
}

// stream runs tasks in order on a goroutine of its own. Issuing never blocks.
type stream struct {
	tasks *queue.Queue[task]
	err   error // the first failure since the last sync; the stream's goroutine only, apart from sync
}

// newStream starts a stream, whose goroutine calls enter first.
func newStream(enter func()) *stream {
	s := &stream{tasks: queue.New[task]()}
	go func() {
		enter()
		s.tasks.Serve(func(t task) { t.exec(s) })
	}()
	return s
}

// push issues t.
func (s *stream) push(t task) error {
	if !s.tasks.Push(t) {
		return errClosed
	}
	return nil
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
	s.tasks.Stop()
	s.tasks.Wait()
}
