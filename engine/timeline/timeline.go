// Package timeline records what the host and a device do, in the format of Chrome's tracing page and of Perfetto.
//
//	r := timeline.New()
//	e := engine.New(client, engine.Options{Trace: r})
//	…
//	err := r.Close()
//	err = r.Write(file)
//
// The host's lane shows when operations were handed to the backend, the device's lane when they ran, and further lanes
// compiling and the moves between them. A device runs programs in the order in which they were issued, so an execution
// starts when the one before it has ended, or when it was issued if the device was idle.
package timeline

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Lane is a row of the picture.
type Lane int

// The lanes.
const (
	Host    Lane = iota + 1 // operations handed to the backend
	Device                  // executions
	Compile                 // programs compiled or loaded
	Move                    // uploads and reads
)

var laneNames = map[Lane]string{Host: "host: dispatch", Device: "device: execute", Compile: "compile", Move: "upload and read"}

// Span is something that took time. Times are since the recorder was made.
type Span struct {
	Lane       Lane
	Name       string
	Start, End time.Duration
	Sequence   int    // of an execution, and of its dispatch; 0 for others
	Error      string // of an execution that failed
	Bytes      int64  // of a move
}

// Waiter is an execution that has been issued.
type Waiter interface{ Wait() error }

// Recorder collects spans. Its methods may be called from several goroutines. A nil recorder records nothing.
type Recorder struct {
	origin time.Time

	mu       sync.Mutex
	spans    []Span
	sequence int
	queue    []issued
	wake     sync.Cond
	closed   bool
	ended    chan struct{}
}

// issued is an execution whose end is still to come.
type issued struct {
	name     string
	at       time.Duration
	sequence int
	done     Waiter
}

// New returns a recorder that starts now.
func New() *Recorder {
	r := &Recorder{origin: time.Now(), ended: make(chan struct{})}
	r.wake.L = &r.mu
	go r.follow()
	return r
}

// Add records a span that has ended.
func (r *Recorder) Add(lane Lane, name string, start time.Time, bytes int64) {
	if r == nil {
		return
	}
	s := Span{Lane: lane, Name: name, Start: start.Sub(r.origin), End: time.Since(r.origin), Bytes: bytes}
	r.mu.Lock()
	r.spans = append(r.spans, s)
	r.mu.Unlock()
}

// Dispatched records that the host has handed an execution to the backend since start; its own span follows when it has
// ended. Executions must be told in the order in which they were issued.
func (r *Recorder) Dispatched(name string, start time.Time, done Waiter) {
	if r == nil {
		return
	}
	now := time.Since(r.origin)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sequence++
	r.spans = append(r.spans, Span{Lane: Host, Name: name, Start: start.Sub(r.origin), End: now, Sequence: r.sequence})
	if !r.closed {
		r.queue = append(r.queue, issued{name, now, r.sequence, done})
		r.wake.Signal()
	}
}

// follow waits for one execution after the other.
func (r *Recorder) follow() {
	defer close(r.ended)
	var free time.Duration // when the device has ended what came before
	var batch []issued
	for {
		r.mu.Lock()
		for len(r.queue) == 0 && !r.closed {
			r.wake.Wait()
		}
		if len(r.queue) == 0 {
			r.mu.Unlock()
			return
		}
		batch, r.queue = r.queue, batch[:0]
		r.mu.Unlock()
		for _, x := range batch {
			err := x.done.Wait()
			s := Span{Lane: Device, Name: x.name, Start: max(free, x.at), End: time.Since(r.origin), Sequence: x.sequence}
			if err != nil {
				s.Error = err.Error()
			}
			free = s.End
			r.mu.Lock()
			r.spans = append(r.spans, s)
			r.mu.Unlock()
		}
	}
}

// Close waits for the executions that were dispatched and ends the recording. It may be called twice.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.wake.Signal()
	r.mu.Unlock()
	<-r.ended
	return nil
}

// Spans returns what was recorded so far, in the order of starts.
func (r *Recorder) Spans() []Span {
	r.mu.Lock()
	spans := slices.Clone(r.spans)
	r.mu.Unlock()
	slices.SortStableFunc(spans, func(a, b Span) int { return int(a.Start - b.Start) })
	return spans
}

// event is a line of the file: a complete event ("X") or metadata ("M"). Times are in microseconds.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Start float64        `json:"ts"`
	Dur   float64        `json:"dur"`
	PID   int            `json:"pid"`
	TID   Lane           `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// Write writes the trace as JSON.
func (r *Recorder) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")
	first := true
	put := func(e event) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteByte('\n')
		_, err = b.Write(text)
		return err
	}
	for lane := Host; lane <= Move; lane++ {
		if err := put(event{Name: "thread_name", Phase: "M", PID: 1, TID: lane, Args: map[string]any{"name": laneNames[lane]}}); err != nil {
			return err
		}
	}
	for _, s := range r.Spans() {
		e := event{Name: s.Name, Phase: "X", Start: micro(s.Start), Dur: micro(s.End - s.Start), PID: 1, TID: s.Lane, Args: map[string]any{}}
		if s.Sequence > 0 {
			e.Args["sequence"] = s.Sequence
		}
		if s.Error != "" {
			e.Args["error"] = s.Error
		}
		if s.Bytes > 0 {
			e.Args["bytes"] = s.Bytes
		}
		if err := put(e); err != nil {
			return err
		}
	}
	fmt.Fprint(b, "\n]}\n")
	return b.Flush()
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
