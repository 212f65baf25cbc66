package cpu

import (
	"fmt"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// Executable is a planned program.
type Executable struct {
	c *Client
	g *graph.Graph
}

func newExecutable(c *Client, g *graph.Graph) (*Executable, error) {
	return &Executable{c: c, g: g}, nil
}

// Run issues the program and returns its outputs, which are still to come.
func (e *Executable) Run(args []backend.Buffer) ([]backend.Buffer, backend.Event, error) {
	l := &launch{e: e, ready: newEvent()}
	if err := l.take(args); err != nil {
		return nil, nil, fmt.Errorf("cpu: run %s: %w", e.g.Name, err)
	}
	values := make([]value, len(e.g.Outputs))
	outs := make([]backend.Buffer, len(e.g.Outputs))
	l.outs = values
	for i, n := range e.g.Outputs {
		v := &values[i]
		v.c, v.typ, v.ready = e.c, n.Type, l.ready
		v.refs.Store(2) // the buffer and the launch
		outs[i] = e.c.newBuffer(v)
	}
	if err := e.c.stream.push(l); err != nil {
		l.drop()
		return nil, nil, err
	}
	return outs, l.ready, nil
}

// Memory returns what one run needs.
func (e *Executable) Memory() backend.MemoryStats {
	var m backend.MemoryStats
	for _, n := range e.g.Outputs {
		m.Outputs += int64(n.Bytes())
	}
	return m
}

// Close frees what the program holds when the runs issued so far have ended.
func (e *Executable) Close() {}

// launch is one run of an executable on the stream.
type launch struct {
	e     *Executable
	args  []*value
	outs  []value
	ready *event
}

// take checks the arguments and holds them.
func (l *launch) take(args []backend.Buffer) error {
	inputs := l.e.g.Inputs
	if len(args) != len(inputs) {
		return fmt.Errorf("%d arguments given, the program takes %d", len(args), len(inputs))
	}
	l.args = make([]*value, 0, len(args))
	for i, a := range args {
		err := func() error {
			b, ok := a.(*buffer)
			switch {
			case !ok || b == nil:
				return fmt.Errorf("argument %d is a %T, not a buffer of this backend", i, a)
			case b.v.c != l.e.c:
				return fmt.Errorf("argument %d belongs to another client", i)
			case !b.v.typ.Equal(inputs[i].Type):
				return fmt.Errorf("argument %d is %s, the program takes %s", i, b.v.typ, inputs[i].Type)
			case b.freed.Load() || !b.v.retain():
				return fmt.Errorf("argument %d was freed", i)
			}
			l.args = append(l.args, b.v)
			return nil
		}()
		if err != nil {
			l.drop()
			return err
		}
	}
	return nil
}

// drop gives up what the launch holds.
func (l *launch) drop() {
	for _, v := range l.args {
		v.release()
	}
	for i := range l.outs {
		l.outs[i].release()
	}
	l.args, l.outs = nil, nil
}

// exec runs the program. An argument's error becomes the outputs' without being reported again.
func (l *launch) exec(s *stream) {
	var err error
	for _, v := range l.args {
		if err = v.ready.Wait(); err != nil { // ended long ago: the stream is in order
			break
		}
	}
	if err == nil {
		if err = l.e.execute(l); err != nil {
			err = fmt.Errorf("cpu: run %s: %w", l.e.g.Name, err)
			s.fail(err)
		}
	}
	l.ready.signal(err)
	l.drop()
}

func (e *Executable) execute(l *launch) (err error) {
	op := graph.Input
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", op, r)
		}
	}()
	last := make(map[*graph.Node]int)
	for i, n := range e.g.Nodes {
		for _, c := range n.In {
			last[c] = i
		}
	}
	for _, n := range e.g.Outputs {
		last[n] = len(e.g.Nodes)
	}
	val := make(map[*graph.Node]*tensor.Array)
	for i, n := range e.g.Inputs {
		val[n] = &tensor.Array{DType: n.DType, Shape: n.Shape, Data: l.args[i].block.mem}
	}
	for i, n := range e.g.Nodes {
		op = n.Op
		if n.Bytes() > maxBlock {
			return fmt.Errorf("%s: out of memory: %d bytes needed", op, n.Bytes())
		}
		args := make([]*tensor.Array, len(n.In))
		for j, c := range n.In {
			args[j] = val[c]
		}
		if val[n], err = interp.Apply(n, args); err != nil {
			return err
		}
		for _, c := range n.In {
			if last[c] == i {
				delete(val, c)
			}
		}
	}
	for i, n := range e.g.Outputs {
		b, err := e.c.mem.get(n.Bytes())
		if err != nil {
			return err
		}
		copy(b.mem, val[n].Data)
		b.refs.Add(1)
		l.outs[i].block = b
	}
	return nil
}
