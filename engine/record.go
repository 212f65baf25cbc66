package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// recording is the not yet executed tail of a Fused engine, in the order of recording.
type recording struct {
	pending []*value
	seq     int64
	tail    tail
	blocks  int // that are being recorded: they are cut at their ends only
}

// maxPending bounds the recording: past it everything recorded is run, so that a loop which nobody looks at ends up on
// the device all the same.
const maxPending = 4096

// Record records one operation, and in Strict mode dispatches it. It is how every operation below is made, and how a
// package adds one that has no method here.
func Record(op graph.Op, attr graph.Attr, in ...Value) Value {
	var e *Engine
	vs := make([]*value, len(in))
	types := make([]graph.Type, len(in))
	for i, v := range in {
		if v.v == nil {
			return Value{v: &value{eng: e, err: callerSource().wrap(fmt.Errorf("%s: operand %d: %w", op, i, errZeroValue))}}
		}
		if v.v.err != nil {
			return v
		}
		if err := v.Err(); err != nil {
			return Value{v: &value{eng: v.v.eng, err: callerSource().wrap(fmt.Errorf("%s: operand %d: %w", op, i, err))}}
		}
		switch w := v.v.eng; {
		case e == nil || w.root == e: // a traced operand makes the operation a traced one
			e = w
		case w != e && w != e.root:
			return e.failed(fmt.Errorf("%s: operands belong to two engines", op))
		}
		vs[i], types[i] = v.v, v.v.typ
	}
	if e == nil {
		return Value{v: &value{err: callerSource().wrap(fmt.Errorf("%s: no operands", op))}}
	}
	return e.record(op, attr, vs, types)
}

func (e *Engine) record(op graph.Op, attr graph.Attr, in []*value, types []graph.Type) Value {
	src := callerSource()
	t, err := graph.Infer(op, attr, types)
	if err != nil {
		return Value{v: &value{eng: e, err: src.wrap(err)}}
	}
	v := &value{eng: e, typ: t, op: op, attr: attr, in: in, src: src}
	if e.tracing() || v.isVirtual() {
		return Value{v: v}
	}
	switch e.mode {
	case Fused:
		err = e.deferValue(v)
	default:
		err = e.dispatch(v)
	}
	if err != nil {
		return Value{v: &value{eng: e, err: src.wrap(err)}}
	}
	return Value{v: v}
}

// dispatch runs one operation at once. Its key is made without building a graph.
func (e *Engine) dispatch(v *value) error {
	b := make([]byte, 0, 256)
	b = graph.AppendOpKey(append(b, 's'), v.op, v.attr)
	leaves := make([]*value, 0, len(v.in))
	for _, c := range v.in {
		switch {
		case c.isVirtual():
			b = graph.AppendOpKey(append(b, 'c'), c.op, c.attr)
		case c.isLeaf():
			n := slices.Index(leaves, c)
			if n < 0 {
				n = len(leaves)
				leaves = append(leaves, c)
			}
			b = c.typ.AppendKey(append(b, 'i', byte(n)))
		default:
			// Recorded by a mode that defers: not possible within one engine.
			return errors.New("operand has not run")
		}
	}
	exe, err := e.executable(sha256.Sum256(b), func() (*graph.Graph, error) {
		return build(v.op.String(), []*value{v}, leaves)
	})
	if err != nil {
		return err
	}
	if err := e.run(exe, v.op.String(), []*value{v}, leaves); err != nil {
		return err
	}
	v.in, v.attr, v.op = nil, nil, graph.Invalid
	if e.mode == Blocking {
		if err := v.buf.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Const returns a constant, which becomes part of every program that uses it. Only values that never change should be
// constants.
func (e *Engine) Const(a *tensor.Array) Value {
	return e.record(graph.Constant, graph.ConstantAttr{Value: a}, nil, nil)
}

// ConstScalar returns a constant of shape [].
func (e *Engine) ConstScalar(d tensor.DType, x float64) Value {
	a, err := tensor.FromFloat64([]float64{x}).Convert(d)
	if err != nil {
		return e.failed(err)
	}
	return e.Const(a)
}

// Iota returns a value that counts 0, 1, … along an axis.
func (e *Engine) Iota(d tensor.DType, axis int, shape ...int) Value {
	return e.record(graph.Iota, graph.IotaAttr{Type: graph.Type{DType: d, Shape: shape}, Axis: axis}, nil, nil)
}
