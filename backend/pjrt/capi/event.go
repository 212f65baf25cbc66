package capi

import "sync/atomic"

// handle is the plugin's object behind one of ours; 0 once closed.
type handle struct {
	p *Plugin
	h atomic.Uintptr
}

func (o *handle) set(p *Plugin, h uintptr) {
	o.p = p
	o.h.Store(h)
}

// get returns the handle, or an error after Close.
func (o *handle) get(s slot) (uintptr, error) {
	h := o.h.Load()
	if h == 0 {
		return 0, &Error{Call: s.name, Code: FailedPrecondition, Message: errClosed.Error()}
	}
	return h, nil
}

// close destroys the object, the first time.
func (o *handle) close(s slot) error {
	h := o.h.Swap(0)
	if h == 0 {
		return nil
	}
	return call(o.p, s, &handleArgs{h: h})
}

// Closed reports whether Close was called.
func (o *handle) Closed() bool { return o.h.Load() == 0 }

// Event becomes ready once, perhaps with an error.
type Event struct{ handle }

func newEvent(p *Plugin, h uintptr) *Event {
	e := &Event{}
	e.set(p, h)
	return e
}

// Await blocks the calling thread until the event is ready, and returns its error.
func (e *Event) Await() error {
	h, err := e.get(slotEventAwait)
	if err != nil {
		return err
	}
	return call(e.p, slotEventAwait, &handleArgs{h: h})
}

// Ready reports without waiting whether the event is ready, and its error if so.
func (e *Event) Ready() (bool, error) {
	h, err := e.get(slotEventIsReady)
	if err != nil {
		return false, err
	}
	ready, err := e.p.callBool(slotEventIsReady, h)
	if err != nil || !ready {
		return false, err
	}
	return true, call(e.p, slotEventError, &handleArgs{h: h})
}

// OnReady calls fn with the event's error when it is ready, perhaps before OnReady returns, perhaps on a thread of the
// plugin: fn must be short and must not call into the plugin. The event may be closed meanwhile.
func (e *Event) OnReady(fn func(error)) error {
	h, err := e.get(slotEventOnReady)
	if err != nil {
		return err
	}
	return e.p.onReady(h, func(errorHandle uintptr) { fn(e.p.takeError(slotEventOnReady.name, errorHandle)) })
}

// Close frees the event; what it stands for goes on.
func (e *Event) Close() error { return e.close(slotEventDestroy) }
