package hub

import "sync"

// Event tells how a download goes on. Events come one at a time.
type Event struct {
	Kind EventKind
	File string // path in the repository
	Size int64  // of the file, -1 if unknown; for Planned, of all that will be fetched
	Done int64  // bytes of the file that are on disk
	// Message is one line for a person: why the transfer waits, why it starts again.
	Message string
}

// EventKind says what an Event is about.
type EventKind int

const (
	Planned  EventKind = iota // the files are known: Size is the sum of what is missing, Done what earlier runs left
	Started                   // a file's transfer begins
	Advanced                  // bytes of a file came
	Finished                  // a file is verified and in place
	Waiting                   // nothing to do but wait, Message says why
)

// A reporter hands events on, one at a time.
type reporter struct {
	mu sync.Mutex
	to func(Event)
}

func (r *reporter) send(e Event) {
	if r.to == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to(e)
}

func (r *reporter) wait(message string) { r.send(Event{Kind: Waiting, Message: message}) }
