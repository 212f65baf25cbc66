package capi

import (
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
)

// A C function can carry one word back to Go, and purego never frees a callback: so there is one callback of each kind
// for the process, and the word is a number in a registry.

// registry holds what C refers to by number.
type registry[T any] struct {
	mu   sync.Mutex
	next uintptr
	m    map[uintptr]T
}

func (r *registry[T]) add(v T) uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil {
		r.m = make(map[uintptr]T)
	}
	r.next++
	r.m[r.next] = v
	return r.next
}

func (r *registry[T]) get(id uintptr) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.m[id]
	return v, ok
}

// take removes the entry.
func (r *registry[T]) take(id uintptr) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.m[id]
	delete(r.m, id)
	return v, ok
}

func (r *registry[T]) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.m)
}

// waiters are the functions that wait for events.
var waiters registry[func(errorHandle uintptr)]

// readyCallback is PJRT_Event_OnReadyCallback(PJRT_Error*, void* user). It may run on a thread of the plugin.
var readyCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(err, id uintptr) {
		if fn, ok := waiters.take(id); ok {
			fn(err)
		}
	})
})

// Outstanding returns how many functions still wait for events in this process, those that hold host memory included.
func Outstanding() int { return waiters.len() }

// hold keeps Go memory where it is until the event is ready. The event stays the caller's.
func (p *Plugin) hold(event uintptr, memory []byte) {
	if len(memory) == 0 || event == 0 {
		return
	}
	ready := &boolArgs{h: event}
	if invoke(p, slotEventIsReady, ready) == 0 && ready.out {
		return
	}
	pin := new(runtime.Pinner)
	pin.Pin(&memory[0]) // ignored for memory that is not Go's, such as a mapped file; memory itself is held by the closure
	release := func(err uintptr) {
		_ = p.takeError("", err) // the event's own methods report it
		pin.Unpin()
		runtime.KeepAlive(memory)
	}
	if err := p.onReady(event, release); err != nil {
		// An event that can't call back: wait, rather than let the memory go.
		invoke(p, slotEventAwait, &handleArgs{h: event})
		release(0)
	}
}

func (p *Plugin) onReady(event uintptr, fn func(errorHandle uintptr)) error {
	id := waiters.add(fn)
	err := call(p, slotEventOnReady, &onReadyArgs{event: event, callback: readyCallback(), user: id})
	if err != nil {
		waiters.take(id)
	}
	return err
}
