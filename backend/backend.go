// Package backend is the seam between the engine and whatever runs programs: PJRT's shape, in Go.
//
// A [Client] compiles a [graph.Graph] to an [Executable], moves host arrays into a [Buffer] and back, and runs
// executables asynchronously: Run returns buffers at once, and the order of calls on one device is the order of
// execution. An execution that fails leaves its error in its output buffers, in everything computed from them, and in
// the device's next Sync; it never takes the process down and is never lost.
package backend

import (
	"context"
	"errors"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// ErrUnsupported is wrapped by Compile when a backend cannot run a program: an operation or a dtype that it lacks.
var ErrUnsupported = errors.New("not supported by this backend")

// Client is one backend with its devices. All methods may be called from several goroutines.
type Client interface {
	// Platform returns the backend's name, such as "cpu", and Version what tells two builds of it apart; both are part
	// of a compile cache's key.
	Platform() string
	Version() string

	// Devices lists the devices; their index is the ordinal that the other methods take.
	Devices() []Device

	// Compile plans a program for one device. It may keep the graph, and must not change it.
	Compile(ctx context.Context, g *graph.Graph, device int) (Executable, error)

	// Upload makes a host array available on a device. The array's memory must stay unchanged until the buffer is freed
	// or unreachable: a backend whose device is the host may use it in place.
	Upload(a *tensor.Array, device int) (Buffer, error)

	// Sync waits until everything issued to the device so far has run, and returns the first error of an execution since
	// the last Sync.
	Sync(device int) error

	// Close frees everything the client holds. Buffers and executables must not be used afterwards.
	Close() error
}

// Device describes one device.
type Device struct {
	Kind   string // for people: processor or chip name
	Detail string // for people: instruction set, driver …
	Memory int64  // bytes of memory, 0 if unknown
}

// Executable is a compiled program.
type Executable interface {
	// Run starts the program and returns its outputs at once, with the event of its completion. The arguments match the
	// graph's inputs in number and type; an argument whose own computation failed makes every output and the event fail
	// with that error. The error that Run itself returns is one that was found before anything started; without one, the
	// arguments that the graph has as donated are freed.
	Run(args []Buffer) (outputs []Buffer, done Event, err error)

	// Memory returns what one run needs beside its arguments.
	Memory() MemoryStats

	Close()
}

// Stored is an executable that may have come from a cache on disk rather than from the compiler.
type Stored interface {
	FromDisk() bool
}

// Event is the completion of one execution. It holds no memory of the device.
type Event interface {
	// Wait returns when the execution has ended, with its error.
	Wait() error

	// Done reports without waiting whether the execution has ended, and its error.
	Done() (bool, error)
}

// MemoryStats is in bytes.
type MemoryStats struct {
	Temporary int64 // intermediate values at their peak
	Outputs   int64 // but those that take over a donated argument's memory
}

// Buffer is a dense value on a device. A buffer that is no longer reachable frees itself; Free only hastens it.
type Buffer interface {
	Type() graph.Type

	// Wait returns when the value is there, with the error of the execution that should have made it.
	Wait() error

	// Read waits, and copies the value into host memory.
	Read() (*tensor.Array, error)

	// Free releases the memory as soon as executions issued before have finished. It may be called twice.
	Free()
}

// Quantizer is a Client that rounds weights to 8 bits itself: graph.QuantizeRows, only faster.
type Quantizer interface {
	QuantizeRows(w *tensor.Array) (q, scale *tensor.Array, err error)
}

// Parameter is a Buffer of a backend that makes use of knowing what holds a model's parameter: a value that programs read
// again and again.
type Parameter interface {
	Buffer

	// MarkParameter is called before a program takes the buffer. From then on the backend may keep the value in a form of
	// its own, such as packed for its kernels, and let go of the array that was uploaded; Read gives the value as before.
	// With release, the array's memory stays readable at any time, as that of a mapped file does, and release is called
	// when it is not needed for now.
	MarkParameter(release func())
}
