package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Value is a tensor of static shape and dtype: recorded, or on the device once it has run. The zero Value is invalid,
// and using it gives a failed value.
type Value struct {
	v       *value
	donated bool // see Donate
}

// value is what a Value points at. After it has been made only buf, in and used change, under the base engine's mutex, and
// gone.
type value struct {
	eng *Engine // the recorder: an ordinary engine, or a tracing one
	typ graph.Type

	// How it is computed. op is graph.Invalid for leaves: uploads, parameters, results.
	op   graph.Op
	attr graph.Attr
	in   []*value
	src  source

	buf    backend.Buffer // once it has run, or for an upload
	source Source         // for a parameter
	err    error          // for a failed value

	gone atomic.Pointer[source] // where it was given up; see Donate

	seq  int64 // number of the operation in its engine's recording, from 1; 0 for leaves
	used bool  // another recorded operation takes it
}

// Source supplies a parameter's buffer when a program needs it. Placement implements it.
type Source interface {
	Buffer() (backend.Buffer, error)
}

// Param returns a value whose buffer comes from src each time a program needs it.
func (e *Engine) Param(t graph.Type, src Source) Value {
	return Value{v: &value{eng: e.base(), typ: t, source: src}}
}

func typeOf(a *tensor.Array) graph.Type { return graph.Type{DType: a.DType, Shape: a.Shape} }

var errZeroValue = errors.New("value was never set (a missing parameter?)")

// failed returns a failed value that carries err and the caller's line.
func (e *Engine) failed(err error) Value {
	return Value{v: &value{eng: e, err: callerSource().wrap(err)}}
}

// Valid reports whether the value has been set; optional operands use it.
func (v Value) Valid() bool { return v.v != nil }

// Err returns the error of a failed value, without waiting; nil says nothing about a value that is still being computed.
func (v Value) Err() error {
	if v.v == nil {
		return errZeroValue
	}
	if src := v.v.gone.Load(); src != nil {
		return goneError(v.v.typ, src)
	}
	return v.v.err
}

// Type returns the static type; that of a failed value is empty.
func (v Value) Type() graph.Type {
	if v.v == nil {
		return graph.Type{}
	}
	return v.v.typ
}

// Shape returns the static shape, which must not be changed.
func (v Value) Shape() tensor.Shape { return v.Type().Shape }

// Dim returns the extent of an axis; negative axes count from the end. It is 0 where there is no such axis.
func (v Value) Dim(axis int) int {
	s := v.Shape()
	if axis < 0 {
		axis += len(s)
	}
	if axis < 0 || axis >= len(s) {
		return 0
	}
	return s[axis]
}

// DType returns the element type.
func (v Value) DType() tensor.DType { return v.Type().DType }

// Engine returns the recorder that operations on v use. It is nil for the zero Value.
func (v Value) Engine() *Engine {
	if v.v == nil {
		return nil
	}
	return v.v.eng
}

// String describes the value, not its contents.
func (v Value) String() string {
	if err := v.Err(); err != nil {
		return "failed: " + err.Error()
	}
	return v.Type().String()
}

// isVirtual reports whether v is embedded in every program that uses it: a constant or an iota.
func (v *value) isVirtual() bool { return v.op == graph.Constant || v.op == graph.Iota }

// isLeaf reports whether v enters a program as an input.
func (v *value) isLeaf() bool { return v.buf != nil || v.source != nil || v.op == graph.Input }

// buffer returns a leaf's buffer.
func (v *value) buffer() (backend.Buffer, error) {
	if v.source != nil {
		return v.source.Buffer()
	}
	if src := v.gone.Load(); src != nil {
		return nil, goneError(v.typ, src)
	}
	if v.buf == nil {
		return nil, fmt.Errorf("%s is traced and has no value yet", v.typ)
	}
	return v.buf, nil
}

// Read runs what v needs, waits for it, and returns a copy in host memory.
func (v Value) Read() (*tensor.Array, error) {
	buf, err := v.materialise()
	if err != nil {
		return nil, err
	}
	b := v.v.eng.base()
	start := time.Now()
	a, err := buf.Read()
	if err != nil {
		return nil, b.log.blame(err)
	}
	b.trace.Add(timeline.Move, "read", start, int64(len(a.Data)))
	b.stats.addRead(int64(len(a.Data)))
	return a, nil
}

// ReadContext is Read, but returns ctx's error as soon as ctx ends; what was issued runs on.
func (v Value) ReadContext(ctx context.Context) (*tensor.Array, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type result struct {
		a   *tensor.Array
		err error
	}
	read := make(chan result, 1)
	go func() {
		a, err := v.Read()
		read <- result{a, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-read:
		return r.a, r.err
	}
}

// Wait runs what v needs and waits for it.
func (v Value) Wait() error {
	buf, err := v.materialise()
	if err != nil {
		return err
	}
	if err := buf.Wait(); err != nil {
		return v.v.eng.base().log.blame(err)
	}
	return nil
}

func (v Value) materialise() (backend.Buffer, error) {
	if err := v.Err(); err != nil {
		return nil, err
	}
	if v.v.eng.tracing() {
		return nil, callerSource().wrap(errors.New("a value cannot be read while its function is traced"))
	}
	if v.v.isVirtual() { // stays virtual for those who use it in programs
		v = Value{v: &value{eng: v.v.eng, typ: v.v.typ, op: v.v.op, attr: v.v.attr, src: v.v.src}}
	}
	if err := v.v.eng.Cut(v); err != nil {
		return nil, err
	}
	return v.v.buffer()
}
