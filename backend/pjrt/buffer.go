package pjrt

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// value is what a buffer stands for. It outlives the buffer while a call uses it.
type value struct {
	c       *Client
	typ     graph.Type
	device  int
	run     *run         // what makes it; nil for an upload
	host    bool         // lies in the caller's memory, which no program may write to
	buf     *capi.Buffer // nil if the run failed before it started
	counted int64        // bytes counted in the client's meter
	refs    atomic.Int32 // the buffer, and calls that use it

	prev, next *value // in the client's list, guarded by its mu
	listed     bool
}

// retain adds a reference unless the last one is gone.
func (v *value) retain() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops a reference; with the last one the memory goes back.
func (v *value) release() {
	v.drop(func(b *capi.Buffer) { b.Close() })
}

// abandon is release for the collector's cleanups.
func (v *value) abandon() { v.drop(v.c.janitor.push) }

// drop drops a reference, and gives the buffer that nobody needs any more to free, unless the client's Close has taken it.
func (v *value) drop(free func(*capi.Buffer)) {
	if v.refs.Add(-1) > 0 {
		return
	}
	v.c.mem.shrink(v.counted)
	v.c.mu.Lock()
	defer v.c.mu.Unlock() // free runs under it, so that it can't come after Close
	if v.c.values.remove(v) && v.buf != nil {
		free(v.buf)
	}
}

// buffer is the caller's handle. Nothing inside the backend points to it, so it becomes unreachable with the caller's
// last reference.
type buffer struct {
	v       *value
	freed   atomic.Bool
	cleanup runtime.Cleanup
}

var _ backend.Buffer = (*buffer)(nil)

func newBuffer(v *value) *buffer {
	b := &buffer{v: v}
	b.cleanup = runtime.AddCleanup(b, (*value).abandon, v)
	return b
}

// Type returns the static type.
func (b *buffer) Type() graph.Type { return b.v.typ }

// hold keeps the value for a call.
func (b *buffer) hold() (*value, error) {
	if b.freed.Load() || !b.v.retain() {
		return nil, fmt.Errorf("%s: the buffer %s was freed", b.v.c.o.Name, b.v.typ)
	}
	return b.v, nil
}

// Wait returns when the value is there or has failed.
func (b *buffer) Wait() error {
	v, err := b.hold()
	if err != nil {
		return err
	}
	defer v.release()
	defer runtime.KeepAlive(b)
	if v.run != nil {
		return v.run.Wait()
	}
	ready, err := v.buf.ReadyEvent()
	if err == nil {
		defer ready.Close()
		err = ready.Await()
	}
	if err != nil {
		return fmt.Errorf("%s: upload %s: %w", v.c.o.Name, v.typ, err)
	}
	return nil
}

// Read waits and copies the value to the host.
func (b *buffer) Read() (*tensor.Array, error) {
	v, err := b.hold()
	if err != nil {
		return nil, err
	}
	defer v.release()
	defer runtime.KeepAlive(b)
	if v.run != nil {
		v.run.reach(issued)
		if done, err := v.run.Done(); done && err != nil {
			return nil, err
		}
	}
	a := tensor.New(v.typ.DType, v.typ.Shape...)
	sent, err := v.buf.ToHost(a.Data)
	if err == nil {
		err = sent.Await()
		sent.Close()
	}
	if err == nil {
		return a, nil
	}
	if v.run != nil { // the error of the execution says more than that of the transfer
		if rerr := v.run.Wait(); rerr != nil {
			return nil, rerr
		}
	}
	return nil, fmt.Errorf("%s: read %s: %w", v.c.o.Name, v.typ, err)
}

// Free gives the memory back when the programs issued so far have run.
func (b *buffer) Free() {
	if b.freed.CompareAndSwap(false, true) {
		b.cleanup.Stop()
		b.v.release()
	}
}
