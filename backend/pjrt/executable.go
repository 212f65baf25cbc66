package pjrt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/graph"
)

// Executable is a program on one device of a client.
type Executable struct {
	c      *Client
	g      *graph.Graph
	device int
	loaded *capi.LoadedExecutable
	memory backend.MemoryStats
	bytes  int64   // of results
	keep   []int64 // the other inputs of a program that takes over some

	fromDisk bool

	refs   atomic.Int32 // the caller, and executions under way
	closed atomic.Bool
}

var _ backend.Executable = (*Executable)(nil)

// compile has the plugin compile p, or loads it from the cache.
func (c *Client) compile(ctx context.Context, g *graph.Graph, p *Program, device int) (*Executable, error) {
	loaded, fromDisk, err := c.obtain(ctx, p)
	if err != nil {
		return nil, err
	}
	e := &Executable{c: c, g: g, device: device, loaded: loaded, fromDisk: fromDisk}
	e.refs.Store(1)
	for _, n := range g.Outputs {
		e.bytes += int64(n.Type.Bytes())
	}
	if len(g.Donated) > 0 {
		for i := range g.Inputs {
			if !slices.Contains(g.Donated, i) {
				e.keep = append(e.keep, int64(i))
			}
		}
	}
	e.memory.Outputs = e.bytes
	if s, err := loaded.Executable().MemoryStats(); err == nil {
		e.memory.Temporary = s.Temporary
		e.memory.Outputs = max(e.bytes, s.Outputs) - s.Alias
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		loaded.Close()
		return nil, errClosed
	}
	c.exes[e] = struct{}{}
	return e, nil
}

// FromDisk reports whether the program came from the disk cache rather than from the compiler.
func (e *Executable) FromDisk() bool { return e.fromDisk }

// Run issues the program and returns its outputs, which are still to come.
func (e *Executable) Run(args []backend.Buffer) ([]backend.Buffer, backend.Event, error) {
	r := newRun(e)
	err := r.take(args)
	if err == nil && !e.acquire() {
		err = errors.New("the program was closed")
	}
	if err != nil {
		r.drop()
		return nil, nil, fmt.Errorf("%s: run %s: %w", e.c.o.Name, e.g.Name, err)
	}
	buffers := make([]backend.Buffer, len(e.g.Outputs))
	r.outs = make([]value, len(e.g.Outputs))
	for i, n := range e.g.Outputs {
		v := &r.outs[i]
		v.c, v.typ, v.device, v.run = e.c, n.Type, e.device, r
		e.c.adopt(v, 2) // the buffer and the run
		buffers[i] = newBuffer(v)
	}
	if err := e.c.streams[e.device].push(r); err != nil {
		r.drop()
		e.release()
		return nil, nil, fmt.Errorf("%s: run %s: %w", e.c.o.Name, e.g.Name, err)
	}
	backend.FreeDonated(e.g, args)
	return buffers, r, nil
}

// execute calls the plugin, a second time if memory was short and there was garbage. The arguments keep stay as they are.
func (e *Executable) execute(row []*capi.Buffer, keep []int64) ([]*capi.Buffer, *capi.Event, error) {
	o := capi.ExecuteOptions{NonDonatable: keep}
	out, done, err := e.loaded.Execute([][]*capi.Buffer{row}, o)
	if err != nil && capi.CodeOf(err) == capi.ResourceExhausted {
		e.c.collect()
		out, done, err = e.loaded.Execute([][]*capi.Buffer{row}, o)
	}
	if err != nil {
		return nil, nil, err
	}
	return out[0], done[0], nil
}

// take checks the arguments and holds them: what it has taken must be dropped, even with an error.
func (r *run) take(args []backend.Buffer) error {
	e := r.exe
	inputs := e.g.Inputs
	if len(args) != len(inputs) {
		return fmt.Errorf("%d arguments given, the program takes %d", len(args), len(inputs))
	}
	if err := backend.CheckDonated(e.g, args); err != nil {
		return err
	}
	r.args = make([]*value, 0, len(args))
	for i, a := range args {
		b, ok := a.(*buffer)
		switch {
		case !ok || b == nil:
			return fmt.Errorf("argument %d is a %T, not a buffer of this backend", i, a)
		case b.v.c != e.c:
			return fmt.Errorf("argument %d belongs to another client", i)
		case b.v.device != e.device:
			return fmt.Errorf("argument %d is on device %d, the program on %d", i, b.v.device, e.device)
		case !b.v.typ.Equal(inputs[i].Type):
			return fmt.Errorf("argument %d is %s, the program takes %s", i, b.v.typ, inputs[i].Type)
		case b.freed.Load() || !b.v.retain():
			return fmt.Errorf("argument %d was freed", i)
		}
		r.args = append(r.args, b.v)
	}
	runtime.KeepAlive(args)
	return nil
}

// Memory returns what one run needs beside its arguments.
func (e *Executable) Memory() backend.MemoryStats { return e.memory }

// Close unloads the program when its executions have ended.
func (e *Executable) Close() {
	if e.closed.CompareAndSwap(false, true) {
		e.release()
	}
}

func (e *Executable) acquire() bool {
	for {
		n := e.refs.Load()
		if n == 0 || e.closed.Load() {
			return false
		}
		if e.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (e *Executable) release() {
	if e.refs.Add(-1) > 0 {
		return
	}
	e.c.mu.Lock()
	_, mine := e.c.exes[e]
	delete(e.c.exes, e)
	e.c.mu.Unlock()
	if mine {
		e.loaded.Close()
	}
}
