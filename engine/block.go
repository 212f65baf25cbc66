package engine

import (
	"fmt"
	"slices"

	"github.com/gesso-go/gesso/graph"
)

// Block runs forward on in, as a block of a model: a fused program ends before it and after it, and nowhere inside, so that
// every block of a class is the same program. An error stays in the values.
func Block(forward func(in []Value) []Value, in ...Value) []Value {
	in, donated := take(in)
	failed := func(v Value) bool { return v.Err() != nil }
	traced := func(v Value) bool { return v.Engine().tracing() }
	if len(in) == 0 || slices.ContainsFunc(in, failed) || slices.ContainsFunc(in, traced) {
		return forward(in)
	}
	e := in[0].v.eng
	if err := e.Cut(in...); err != nil {
		return forward(in) // what depends on it says so where it is read
	}
	e.enter(1)
	defer e.enter(-1)
	out := forward(in)
	_ = e.end(out, donated)
	return out
}

// enter counts the blocks that are being recorded.
func (e *Engine) enter(n int) {
	e.mu.Lock()
	e.rec.blocks += n
	e.mu.Unlock()
}

// Donate returns v with the promise that nobody uses it after the Block or Function that it is passed to, which may then
// put its results where v was, and gives v's memory back:
//
//	img, txt = block.Forward(img.Donate(), txt.Donate(), temb)
//
// What uses v afterwards has failed, with an error that says where v was given up. Operations don't see the promise. It
// comes to nothing for parameters and constants, for what an operation takes that still waits to run, and while somebody
// listens to Tap.
func (v Value) Donate() Value {
	v.donated = true
	return v
}

// take returns the values without the promise of Donate, and those that had it.
func take(in []Value) (plain, donated []Value) {
	plain = make([]Value, len(in))
	for i, v := range in {
		plain[i] = Value{v: v.v}
		if v.donated {
			donated = append(donated, plain[i])
		}
	}
	return plain, donated
}

// giveable returns those of vs that can be given up when outs have run. e.mu is held.
func (e *Engine) giveable(vs []Value, outs []*value) []*value {
	var all []*value
	for _, v := range vs {
		if w := v.v; e.tap == nil && w.eng == e && w.buf != nil && w.gone.Load() == nil && !contains(outs, w) && !contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// give ends the use of values that are not needed by what still waits to run. e.mu is held.
func (e *Engine) give(vs []*value) {
	if len(vs) == 0 {
		return
	}
	src := callerSource()
	for _, v := range vs {
		if !e.wanted(v, nil) {
			v.gone.Store(&src)
			v.buf.Free()
		}
	}
}

// wanted reports whether a recorded operation takes v that is not among inside. e.mu is held.
func (e *Engine) wanted(v *value, inside map[*value]bool) bool {
	for _, p := range e.rec.pending {
		if !inside[p] && contains(p.in, v) {
			return true
		}
	}
	return false
}

// donations returns which leaves a program over inside may take over. e.mu is held.
func (e *Engine) donations(leaves, given []*value, inside map[*value]bool) []int {
	var d []int
	for i, l := range leaves {
		if contains(given, l) && !contains(leaves[:i], l) && !contains(leaves[i+1:], l) && !e.wanted(l, inside) {
			d = append(d, i)
		}
	}
	return d
}

// goneError is the error of a value that was given up.
func goneError(t graph.Type, src *source) error {
	return fmt.Errorf("%s was donated at %s, and can't be used after it", t, src.line())
}
