package placement

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Host makes host arrays parameters: what is no part of a checkpoint, such as an adapter's factors. They are placed when
// a program first needs them.
type Host struct {
	eng *engine.Engine

	mu      sync.Mutex
	sources []*HostParam
}

// NewHost returns an empty set.
func NewHost(e *engine.Engine) *Host { return &Host{eng: e} }

// HostParam is one parameter of a [Host].
type HostParam struct {
	eng *engine.Engine
	typ graph.Type

	mu   sync.Mutex
	host *tensor.Array
	buf  backend.Buffer
	err  error
}

// Param adds a, converted to d, and returns it as a value. The array must not change while the set is in use.
func (h *Host) Param(a *tensor.Array, d tensor.DType) (engine.Value, *HostParam) {
	p := &HostParam{eng: h.eng, typ: graph.Type{DType: d, Shape: a.Shape}, host: a}
	h.mu.Lock()
	h.sources = append(h.sources, p)
	h.mu.Unlock()
	return h.eng.Param(p.typ, p), p
}

// Buffer places the parameter on the first call.
func (p *HostParam) Buffer() (backend.Buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf != nil || p.err != nil {
		return p.buf, p.err
	}
	a, err := p.host.Convert(p.typ.DType)
	if err == nil {
		p.buf, err = p.eng.UploadParam(a)
	}
	p.err = err
	return p.buf, p.err
}

// Set replaces the contents by an array of the same shape: programs that use the parameter see it from their next run on,
// and none is compiled anew. It waits for programs that are running.
func (p *HostParam) Set(a *tensor.Array) error {
	if !a.Shape.Equal(p.typ.Shape) {
		return fmt.Errorf("parameter of the shape %v, set to %v", p.typ.Shape, a.Shape)
	}
	err := p.eng.Sync()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = a
	p.free()
	return err
}

func (p *HostParam) free() {
	if p.buf != nil {
		p.buf.Free()
	}
	p.buf, p.err = nil, nil
}

var errClosed = errors.New("the parameters have been freed")

// Close frees every parameter's buffer. Values made from it must not be used afterwards.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.sources {
		p.mu.Lock()
		p.free()
		p.err = errClosed
		p.mu.Unlock()
	}
	h.sources = nil
}
