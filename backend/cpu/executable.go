package cpu

import (
	"fmt"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/graph"
)

// Executable is a planned program.
type Executable struct {
	c     *Client
	g     *graph.Graph
	prog  *program
	frame frame // of the run in progress: one at a time
}

// frame is the memory of a run, by slot.
type frame struct {
	mem    [][]byte
	packed []*gemm.Packed // arguments that are packed weights, whose mem may be nil
}

// bytes returns the memory of a dense view.
func (f *frame) bytes(v view) []byte {
	size := v.dtype.Size()
	return f.mem[v.st.slot][v.offset*size : (v.offset+v.shape.Size())*size]
}

// from returns the memory of a view from its first element on.
func (f *frame) from(v view) []byte {
	return f.mem[v.st.slot][v.offset*v.dtype.Size():]
}

func newExecutable(c *Client, g *graph.Graph) (*Executable, error) {
	prog, err := plan(c, g)
	if err != nil {
		return nil, err
	}
	e := &Executable{c: c, g: g, prog: prog, frame: frame{make([][]byte, prog.slots), make([]*gemm.Packed, len(prog.inputs))}}
	for _, st := range prog.storages {
		if st.kind == constant {
			e.frame.mem[st.slot] = st.data
		}
	}
	return e, nil
}

// Run issues the program and returns its outputs, which are still to come.
func (e *Executable) Run(args []backend.Buffer) ([]backend.Buffer, backend.Event, error) {
	l := &launch{e: e, ready: newEvent()}
	if err := l.take(args); err != nil {
		return nil, nil, fmt.Errorf("cpu: run %s: %w", e.g.Name, err)
	}
	l.outs = make([]value, len(e.g.Outputs))
	outs := make([]backend.Buffer, len(e.g.Outputs))
	for i, n := range e.g.Outputs {
		v := &l.outs[i]
		v.c, v.typ, v.ready = e.c, n.Type, l.ready
		v.refs.Store(2) // the buffer and the launch
		outs[i] = e.c.newBuffer(v)
	}
	if err := e.c.stream.push(l); err != nil {
		l.drop()
		return nil, nil, err
	}
	backend.FreeDonated(e.g, args)
	return outs, l.ready, nil
}

// Memory returns what one run needs.
func (e *Executable) Memory() backend.MemoryStats {
	return backend.MemoryStats{Temporary: int64(e.prog.arena), Outputs: int64(e.prog.blocks)}
}

// Close has nothing to free: a program holds memory only while it runs.
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
	if err := backend.CheckDonated(l.e.g, args); err != nil {
		return err
	}
	l.args = make([]*value, 0, len(args))
	for i, a := range args {
		if err := l.hold(i, a, &inputs[i].Type); err != nil {
			l.drop()
			return err
		}
	}
	return nil
}

func (l *launch) hold(i int, a backend.Buffer, want *graph.Type) error {
	b, ok := a.(*buffer)
	switch {
	case !ok || b == nil:
		return fmt.Errorf("argument %d is a %T, not a buffer of this backend", i, a)
	case b.v.c != l.e.c:
		return fmt.Errorf("argument %d belongs to another client", i)
	case !b.v.typ.Equal(*want):
		return fmt.Errorf("argument %d is %s, the program takes %s", i, b.v.typ, *want)
	case b.freed.Load() || !b.v.retain():
		return fmt.Errorf("argument %d was freed", i)
	}
	l.args = append(l.args, b.v)
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
		if err = l.run(); err != nil {
			err = fmt.Errorf("cpu: run %s: %w", l.e.g.Name, err)
			s.fail(err)
		}
	}
	l.ready.signal(err)
	l.drop()
}

// run executes the steps and gives the outputs their blocks.
func (l *launch) run() (err error) {
	e, p, mem := l.e, l.e.prog, l.e.c.mem
	var op graph.Op
	var held []*block
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", op, r)
		}
		clear(e.frame.mem[:len(p.inputs)])
		clear(e.frame.packed)
		for _, b := range held {
			mem.release(b)
		}
	}()
	take := func(n int) (*block, error) {
		b, err := mem.get(n)
		if err == nil {
			b.refs.Add(1)
			held = append(held, b)
		}
		return b, err
	}
	for i, v := range l.args {
		if e.frame.mem[i], e.frame.packed[i], err = v.bring(p.inputs[i]); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	blocks := make(map[*storage]*block, len(p.outputs))
	for _, st := range p.outputs {
		b, err := take(st.bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", p.maker(st), err)
		}
		blocks[st] = b
		e.frame.mem[st.slot] = b.mem
	}
	if p.arena > 0 {
		b, err := take(p.arena)
		if err != nil {
			return fmt.Errorf("intermediate values: %w", err)
		}
		for _, st := range p.temps {
			e.frame.mem[st.slot] = b.mem[st.offset : st.offset+st.bytes]
		}
	}
	start := e.c.packing.now()
	for i := range p.steps {
		op = p.steps[i].op
		if err := p.steps[i].run(&e.frame); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	e.c.packing.ran(start)
	for i, r := range p.results {
		b := blocks[r.st.root()]
		if b == nil { // an argument: shared if it is the pool's, for the caller may do with his own what he wants
			if b = l.args[r.st.slot].block; b.host {
				own, err := take(len(b.mem))
				if err != nil {
					return err
				}
				copy(own.mem, b.mem)
				b = own
			}
		}
		b.refs.Add(1)
		l.outs[i].block = b
	}
	return nil
}

// maker names the operation whose result an output storage is.
func (p *program) maker(st *storage) graph.Op {
	for _, r := range p.results {
		if r.st.root() == st {
			return r.node.Op
		}
	}
	return graph.Invalid
}
