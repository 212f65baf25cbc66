package cpu

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// block is memory with a count of the values that live in it.
type block struct {
	mem   []byte
	size  int  // of the pool's class; 0 for memory that is not the pool's
	lasts bool // see pool.keep
	cut   bool // from the pool's region
	host  bool // the caller's own memory
	refs  atomic.Int32
}

// value is what a buffer stands for. It outlives the buffer while issued programs need it.
type value struct {
	c     *Client
	typ   graph.Type
	ready *event
	refs  atomic.Int32 // the buffer, its producer and the programs that were issued with it
	block *block       // set before ready
	param *parameter   // nil if it is not a parameter; guards block if it is
}

// event is the completion of one run.
type event struct {
	done chan struct{}
	set  atomic.Bool
	err  error // set before done
}

func newEvent() *event { return &event{done: make(chan struct{})} }

func (e *event) signal(err error) {
	e.err = err
	e.set.Store(true)
	close(e.done)
}

// Wait returns when the run has ended, with its error. A nil event has ended well.
func (e *event) Wait() error {
	if e == nil {
		return nil
	}
	if !e.set.Load() {
		<-e.done
	}
	return e.err
}

// Done looks without waiting.
func (e *event) Done() (bool, error) {
	if !e.set.Load() {
		return false, nil
	}
	return true, e.err
}

// newValue returns a value that is there already.
func newValue(c *Client, t graph.Type, b *block) *value {
	v := &value{c: c, typ: t, block: b}
	v.refs.Store(1)
	b.refs.Add(1)
	return v
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

func (v *value) release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	if v.block != nil {
		v.c.mem.release(v.block)
		v.block = nil
	}
	if v.param != nil {
		v.param.free(v.c.mem)
	}
}

// buffer is the caller's handle. Nothing inside the backend points to it, so it becomes unreachable with the caller's
// last reference.
type buffer struct {
	v       *value
	freed   atomic.Bool
	cleanup runtime.Cleanup
}

func (c *Client) newBuffer(v *value) *buffer {
	b := &buffer{v: v}
	b.cleanup = runtime.AddCleanup(b, (*value).release, v)
	return b
}

var (
	_ backend.Parameter = (*buffer)(nil)
	_ backend.Event     = (*event)(nil)
)

// Type returns the static type.
func (b *buffer) Type() graph.Type { return b.v.typ }

// Wait returns when the value is there or has failed.
func (b *buffer) Wait() error {
	if b.freed.Load() || !b.v.retain() {
		return fmt.Errorf("cpu: the buffer %s was freed", b.v.typ)
	}
	defer b.v.release()
	defer runtime.KeepAlive(b)
	return b.v.ready.Wait()
}

// Read waits and copies the value to the host.
func (b *buffer) Read() (*tensor.Array, error) {
	if b.freed.Load() || !b.v.retain() {
		return nil, fmt.Errorf("cpu: the buffer %s was freed", b.v.typ)
	}
	defer b.v.release()
	if err := b.v.ready.Wait(); err != nil {
		return nil, err
	}
	defer b.v.c.mem.turn()
	a := tensor.New(b.v.typ.DType, b.v.typ.Shape...)
	err := b.v.read(a.Data)
	runtime.KeepAlive(b)
	return a, err
}

// MarkParameter implements backend.Parameter.
func (b *buffer) MarkParameter(release func()) { b.v.param = &parameter{release: release} }

// Free gives the memory back when the programs issued so far have run.
func (b *buffer) Free() {
	if b.freed.CompareAndSwap(false, true) {
		b.cleanup.Stop()
		b.v.release()
	}
}
