// Package cpu is the embedded backend: programs run on the processor with kernels in Go and Go assembly.
//
//	c, err := cpu.New(cpu.Options{ISA: os.Getenv("GESSO_CPU_ISA")})
//	exe, err := c.Compile(ctx, g, 0)
//	out, done, err := exe.Run([]backend.Buffer{x})
//
// A [Client] has one device and one stream: a goroutine that runs programs in the order of the calls, each on all
// threads. Run returns buffers at once; Wait, Read and Sync wait.
//
// # Programs
//
// A program is planned once. Elementwise operations are fused into one pass over pieces that stay in the first cache, or
// into the epilogue of the product, convolution or normalisation that makes their operand; reshapes, slices, transpositions
// and broadcasts are views for as long as their readers take strides; operands of a concatenation are written in place.
// Intermediate values lie in one arena, by lifetime, results in place of operands that die. What has no kernel (f64,
// integer arithmetic, reductions of other than the last axes, dynamic slices) is evaluated by graph/interp: correct, and slow.
//
// # Results
//
// Fusion, mode and the number of threads never change a bit of a result: an operation gives the same bits alone and
// inside a program. The instruction set may change them, within rounding. NaN and infinities are values, not errors.
//
// # Memory
//
// Uploaded arrays are used in place, never copied (unless misaligned for their dtype). Everything else lives in a pool
// of page-aligned memory outside the Go heap. A buffer gives its memory back when it is freed or becomes unreachable;
// because the collector doesn't see that memory, the pool asks for a collection itself when its live bytes have grown
// by more than 64 MB over their lowest point since the last collection: however much memory weights take, no more than
// that is garbage. Memory that nobody uses is kept for the next program. Blocks of 2 MB and more are cut from one range of
// addresses and join with what is free beside them (see region); of smaller ones, with what programs have, at most 256 MB
// stay, or 64 MB more than the last few steps had at once, a step ending where a result is read. The rest goes back to the
// operating system, after a program that needed much some steps later, and the memory of packed weights at once. Kernels keep
// their scratch memory, of the largest size that was needed, for as long as the process lives. So a loop takes memory from the
// system in its first step only.
package cpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Options configures a client. The zero value uses all that the machine offers.
type Options struct {
	ISA     string // forces an instruction-set level: the value of GESSO_CPU_ISA
	Threads int    // 0 means par.Threads: GOMAXPROCS, and no more than a container's limit

	// Packing is how long packing weights may take at once, on top of a thirtieth of the time that programs take; 0 means a
	// second. Weights whose turn hasn't come are packed at each use.
	Packing time.Duration
}

// Client is the CPU backend with its one device.
type Client struct {
	level  isa.Level
	par    *par.Pool
	mem    *pool
	vec    *vec.Funcs
	stream *stream
	close  sync.Once

	scratch []registers // by worker; the stream's
	packing packing
}

var _ backend.Client = (*Client)(nil)

// New starts a client. The error names a level that is unknown or that this machine lacks.
func New(o Options) (*Client, error) {
	level, err := isa.Choose(o.ISA)
	if err != nil {
		return nil, err
	}
	c := &Client{level: level, par: par.New(o.Threads), mem: newPool(), vec: vec.For(level), packing: newPacking(o.Packing)}
	c.scratch = make([]registers, c.par.Workers())
	c.stream = newStream(c.par.Enter)
	return c, nil
}

// Platform returns "cpu".
func (c *Client) Platform() string { return "cpu" }

// version changes whenever the kernels may give other bits.
const version = "4"

// Version tells the build and the instruction-set level apart.
func (c *Client) Version() string {
	return "gesso-cpu " + version + " " + runtime.GOARCH + " " + c.level.String()
}

// Devices describes the processor.
func (c *Client) Devices() []backend.Device {
	detail := c.level.String()
	if found := isa.Detect(); found != c.level {
		detail += fmt.Sprintf(" (has %s)", found)
	}
	detail += fmt.Sprintf(", %d threads", c.par.Workers())
	if n := c.par.Nodes(); n > 1 {
		detail += fmt.Sprintf(" on %d nodes", n)
	}
	return []backend.Device{{Kind: processorName(), Detail: detail, Memory: physicalMemory()}}
}

// Threads returns on how many threads programs run.
func (c *Client) Threads() int { return c.par.Workers() }

func checkDevice(device int) error {
	if device != 0 {
		return fmt.Errorf("cpu: no device %d, there is only device 0", device)
	}
	return nil
}

// Compile plans g.
func (c *Client) Compile(ctx context.Context, g *graph.Graph, device int) (backend.Executable, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cpu: compile %s: %w", g.Name, err)
	}
	e, err := newExecutable(c, g)
	if err != nil {
		return nil, fmt.Errorf("cpu: compile %s: %w", g.Name, err)
	}
	return e, nil
}

// Upload uses the array's memory in place.
func (c *Client) Upload(a *tensor.Array, device int) (backend.Buffer, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("cpu: upload: %w", err)
	}
	t := graph.Type{DType: a.DType, Shape: a.Shape.Clone()}
	b := &block{mem: a.Data, host: true}
	if misaligned(a) {
		var err error
		if b, err = c.mem.get(len(a.Data)); err != nil {
			return nil, fmt.Errorf("cpu: upload %s: %w", t, err)
		}
		copy(b.mem, a.Data)
	}
	return c.newBuffer(newValue(c, t, b)), nil
}

func misaligned(a *tensor.Array) bool {
	return len(a.Data) > 0 && uintptr(unsafe.Pointer(&a.Data[0]))%uintptr(a.DType.Size()) != 0
}

// Sync waits for everything issued so far.
func (c *Client) Sync(device int) error {
	if err := checkDevice(device); err != nil {
		return err
	}
	return c.stream.sync()
}

// Close waits for the stream and frees all memory that no buffer holds.
func (c *Client) Close() error {
	c.close.Do(func() {
		c.stream.stop()
		c.par.Close()
		c.mem.close()
	})
	return nil
}

// MemoryInUse returns the bytes that buffers and running programs hold, uploads in place not counted.
func (c *Client) MemoryInUse() int64 { return int64(c.mem.used()) }
