package engine

import (
	"errors"
	"sync"

	"github.com/gesso-go/gesso/backend"
)

// runLog remembers the executions that may still fail, so that an asynchronous error can be told with the line of the
// operation that caused it rather than of the one that noticed.
type runLog struct {
	mu   sync.Mutex
	runs []loggedRun
	full int // how many runs it takes until the next look
}

type loggedRun struct {
	done backend.Event
	src  source
	name string
}

// pruneAt is how many executions are remembered at least before the finished ones are dropped.
const pruneAt = 1024

func (l *runLog) add(done backend.Event, src source, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.runs) >= max(l.full, pruneAt) {
		l.drop()
		l.full = 2 * len(l.runs) // where few had finished, a look at all for each new one would cost more than to run it
	}
	l.runs = append(l.runs, loggedRun{done, src, name})
}

// maxFailures is how many failed executions are remembered: a failure is followed by that of all that depends on it.
const maxFailures = 64

// drop forgets executions that have ended well, and failures past the first few. l.mu is held.
func (l *runLog) drop() {
	kept := l.runs[:0]
	failures := 0
	for _, r := range l.runs {
		done, err := r.done.Done()
		if done && err != nil {
			failures++
		}
		if !done || (err != nil && failures <= maxFailures) {
			kept = append(kept, r)
		}
	}
	clear(l.runs[len(kept):])
	l.runs = kept
}

func (l *runLog) prune() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// blame returns err with the line of the first execution that failed with it.
func (l *runLog) blame(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.runs {
		if done, e := r.done.Done(); done && e != nil && (errors.Is(err, e) || err.Error() == e.Error()) {
			return r.src.wrap(err)
		}
	}
	return err
}
