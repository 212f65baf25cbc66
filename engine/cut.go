package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
)

// A cut runs what some values need. What it computes on the way is not kept: a value that was passed over stays
// recorded, and is computed from the same operands if somebody asks for it later.

// Cut runs everything that the given values need, as one program, and makes them buffers. It does not wait. In the modes
// that have run them already, and while tracing, it does nothing. Where the caller cuts, no repetition is looked for across.
func (e *Engine) Cut(vs ...Value) error {
	if e.tracing() {
		return nil
	}
	return e.end(vs, nil)
}

// end is Cut, after which the values donated are given up.
func (e *Engine) end(vs, donated []Value) error {
	outs := make([]*value, 0, len(vs))
	for _, v := range vs {
		if err := v.Err(); err != nil {
			return err
		}
		outs = append(outs, v.v)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec.tail.forget()
	given := e.giveable(donated, outs)
	if err := e.cut("fused", outs, given); err != nil {
		return err
	}
	e.give(given)
	return nil
}

// flush cuts every recorded value that no other recorded operation takes.
func (e *Engine) flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.flushLocked()
}

func (e *Engine) flushLocked() error {
	var outs []*value
	for _, v := range e.rec.pending {
		if !v.used {
			outs = append(outs, v)
		}
	}
	return e.cut("fused", outs, nil)
}

// cut is Cut with e.mu held. The program may take over given.
func (e *Engine) cut(name string, outs, given []*value) error {
	var need []*value
	for _, v := range outs {
		if !v.isLeaf() && !contains(need, v) {
			need = append(need, v)
		}
	}
	if len(need) == 0 {
		return nil
	}
	inside, leaves := reach(need)
	// A value inside that a recorded operation outside still takes becomes an output too, rather than run twice.
	for _, p := range e.rec.pending {
		if inside[p] {
			continue
		}
		for _, c := range p.in {
			if inside[c] && !c.isVirtual() && !contains(need, c) {
				need = append(need, c)
			}
		}
	}
	donated := e.donations(leaves, given, inside)
	kept := e.rec.pending[:0]
	for _, p := range e.rec.pending {
		if !inside[p] {
			kept = append(kept, p)
		}
	}
	clear(e.rec.pending[len(kept):])
	e.rec.pending = kept

	g, err := build(name, need, leaves)
	if err != nil {
		return err
	}
	g.Donated = donated
	exe, err := e.executable(sha256.Sum256(g.AppendKey([]byte{'g'})), func() (*graph.Graph, error) { return g, nil })
	if err != nil {
		return need[0].src.wrap(err)
	}
	if err := e.run(exe, name, need, leaves); err != nil {
		return need[0].src.wrap(err)
	}
	for _, v := range need {
		v.in, v.attr, v.op = nil, nil, graph.Invalid
	}
	return nil
}

func contains(vs []*value, v *value) bool {
	for _, w := range vs {
		if w == v {
			return true
		}
	}
	return false
}

// reach returns every value that outs are computed from (virtual ones included), and the leaves in the order in which a
// depth-first walk meets them.
func reach(outs []*value) (inside map[*value]bool, leaves []*value) {
	inside = make(map[*value]bool, 64)
	leaf := map[*value]bool{}
	stack := make([]*value, 0, 64)
	for _, o := range outs {
		stack = append(stack, o)
		for len(stack) > 0 {
			v := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			switch {
			case v.isLeaf():
				if !leaf[v] {
					leaf[v] = true
					leaves = append(leaves, v)
				}
			case !inside[v]:
				inside[v] = true
				for i := len(v.in) - 1; i >= 0; i-- {
					stack = append(stack, v.in[i])
				}
			}
		}
	}
	return inside, leaves
}

// build makes the graph that computes outs from leaves.
func build(name string, outs, leaves []*value) (*graph.Graph, error) {
	nodes := make(map[*value]*graph.Node, 64)
	inputs := make([]*graph.Node, len(leaves))
	for i, l := range leaves {
		inputs[i] = graph.NewInput(i, l.typ)
		nodes[l] = inputs[i]
	}
	type frame struct {
		v    *value
		next int
	}
	var stack []frame
	push := func(v *value) { stack = append(stack, frame{v, 0}) }
	for _, o := range outs {
		if nodes[o] == nil {
			push(o)
		}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.next < len(f.v.in) {
				c := f.v.in[f.next]
				f.next++
				if nodes[c] == nil {
					push(c)
				}
				continue
			}
			if v := f.v; nodes[v] == nil {
				if v.op == graph.Invalid || v.op == graph.Input {
					return nil, fmt.Errorf("%s: a traced value was used outside of its function", name)
				}
				in := make([]*graph.Node, len(v.in))
				for i, c := range v.in {
					in[i] = nodes[c]
				}
				nodes[v] = &graph.Node{Op: v.op, In: in, Attr: v.attr, Type: v.typ}
			}
			stack = stack[:len(stack)-1]
		}
	}
	outputs := make([]*graph.Node, len(outs))
	for i, o := range outs {
		outputs[i] = nodes[o]
	}
	return graph.New(name, inputs, outputs)
}

// run starts exe on the leaves' buffers and gives its outputs to outs.
func (e *Engine) run(exe backend.Executable, name string, outs, leaves []*value) error {
	args := make([]backend.Buffer, len(leaves))
	for i, l := range leaves {
		buf, err := l.buffer()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		args[i] = buf
	}
	var start time.Time
	if e.trace != nil {
		start = time.Now()
	}
	results, done, err := exe.Run(args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(results) != len(outs) {
		return errors.New(name + ": the backend returned a wrong number of outputs")
	}
	e.stats.addRun()
	src := source{}
	if len(outs) > 0 {
		src = outs[0].src
	}
	e.log.add(done, src, name)
	e.trace.Dispatched(name, start, done)
	for i, o := range outs {
		o.buf = results[i]
	}
	return nil
}
