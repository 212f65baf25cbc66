// Package engine turns ordinary Go code into programs for a device.
//
// Model code calls operations on a [Value]. They are recorded, and the modes differ only in when the recording is cut
// into a program: after every operation (Strict), when somebody looks at a value, at block ends and when the tail of
// the recording repeats (Fused), or when a traced function returns (Compiled, see [Function]). A cut program goes
// through one cache to one backend, which compiles it once per structure and shape and runs it asynchronously. Reading a
// value on the host is the only thing that waits.
//
//	e := engine.New(client, engine.Options{})
//	x := e.Upload(tensor.FromFloat32([]float32{1, 2, 3}, 3))
//	y := x.Mul(x).AddScalar(1)
//	a, err := y.Read() // 2, 5, 10
//
// A mistake (shapes that do not fit, an unknown axis) never panics: the result is a failed value that names the
// operation, the shapes and the line that made it; it passes through later operations and is returned by the first
// boundary (Read, Wait, Sync of what depends on it).
package engine

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/tensor"
)

// Mode says when a recording is cut into a program.
type Mode int

// The modes. All compute the same.
const (
	Strict   Mode = iota // every operation is dispatched by itself, asynchronously
	Fused                // operations are deferred and fused into larger programs
	Compiled             // a Function becomes one program per input signature
	Blocking             // Strict with a wait after each operation, for debugging
)

var modeNames = []string{"strict", "fused", "compiled", "blocking"}

// String returns the name that ParseMode takes.
func (m Mode) String() string {
	if m >= 0 && int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", int(m))
}

// ParseMode returns the mode with the given name.
func ParseMode(name string) (Mode, error) {
	for i, n := range modeNames {
		if n == name {
			return Mode(i), nil
		}
	}
	return 0, fmt.Errorf("unknown mode %q (known: %s)", name, strings.Join(modeNames, ", "))
}

// Options for New. The zero value is strict mode on the first device.
type Options struct {
	Mode   Mode
	Device int                // ordinal of the client's device
	Trace  *timeline.Recorder // told what is dispatched, run, compiled and moved; nil records nothing
}

// Engine records operations for one device. Its methods and those of its values may be called from several goroutines;
// in Fused mode recordings of several goroutines share one tail.
type Engine struct {
	client backend.Client
	device int
	mode   Mode
	cache  *cache
	stats  *Stats
	log    *runLog
	trace  *timeline.Recorder

	mu   sync.Mutex // guards rec, and the fields of unmaterialised values
	rec  recording
	tap  func(name string, v Value)
	root *Engine // the engine that a tracing engine belongs to; nil in an ordinary engine
	taps []tapped
}

// New returns an engine on one device of client, which stays the caller's to close.
func New(client backend.Client, opts Options) *Engine {
	return &Engine{
		client: client, device: opts.Device, mode: opts.Mode,
		cache: newCache(), stats: newStats(), log: &runLog{}, trace: opts.Trace,
	}
}

// Mode returns the engine's mode.
func (e *Engine) Mode() Mode { return e.mode }

// Stats returns the statistics since New.
func (e *Engine) Stats() Snapshot { return e.base().stats.snapshot() }

// base returns the engine that owns device, cache and recording: e itself, or the one that e traces for.
func (e *Engine) base() *Engine {
	if e.root != nil {
		return e.root
	}
	return e
}

// tracing reports whether e records a Function.
func (e *Engine) tracing() bool { return e.root != nil }

// Upload makes a host array a value. The array must not change afterwards.
func (e *Engine) Upload(a *tensor.Array) Value {
	b := e.base()
	start := time.Now()
	buf, err := b.client.Upload(a, b.device)
	b.trace.Add(timeline.Move, "upload", start, int64(len(a.Data)))
	if err != nil {
		return b.failed(fmt.Errorf("upload %s: %w", a, err))
	}
	b.stats.addUpload(int64(len(a.Data)))
	return Value{v: &value{eng: b, typ: typeOf(a), buf: buf}}
}

// Scalar uploads one number as a value of dtype d and shape []. Numbers that change from call to call (timestep,
// guidance) enter programs in this way, so that changing them compiles nothing.
func (e *Engine) Scalar(d tensor.DType, v float64) Value {
	a, err := tensor.FromFloat64([]float64{v}).Convert(d)
	if err != nil {
		return e.failed(err)
	}
	return e.Upload(a)
}

// Sync runs everything recorded so far, waits for it, and returns the first error since the last Sync, with the line of
// the operation that caused it.
func (e *Engine) Sync() error {
	b := e.base()
	if err := b.flush(); err != nil {
		return err
	}
	err := b.client.Sync(b.device)
	if err == nil {
		b.log.prune()
		return nil
	}
	return b.log.blame(err)
}

// SetTap makes fn see every value that layers report under their names (see nn); nil turns it off. It must not be called
// while other goroutines use the engine.
func (e *Engine) SetTap(fn func(name string, v Value)) { e.tap = fn }

// Tapping reports whether somebody listens to Tap.
func (e *Engine) Tapping() bool { return e.base().tap != nil }

type tapped struct {
	name string
	v    *value
}

// Tap shows v to the listener, if there is one. Inside a traced function the listener sees it when the program has run.
func (e *Engine) Tap(name string, v Value) {
	fn := e.base().tap
	switch {
	case fn == nil:
	case e.tracing():
		e.taps = append(e.taps, tapped{name, v.v})
	default:
		fn(name, v)
	}
}
