package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
)

// Function is a piece of a model that Compiled mode runs as one program. It is traced once per signature (the types of
// its arguments, which of them are donated, and whether values are tapped): the Go code runs with values that only record.
// Parameters that the code reaches through its own fields become inputs of the program, so two blocks of one class share it.
//
// In the other modes a Function just runs its code; Fused cuts at its end.
type Function struct {
	eng  *Engine
	name string
	fn   func([]Value) []Value

	mu     sync.Mutex
	traces map[string]*trace
}

// Function returns fn as a function of the engine. The name appears in statistics and errors. What fn returns must
// depend only on its arguments, on parameters and on constants.
func (e *Engine) Function(name string, fn func([]Value) []Value) *Function {
	return &Function{eng: e.base(), name: name, fn: fn, traces: map[string]*trace{}}
}

// trace is the program of one signature.
type trace struct {
	exe      backend.Executable
	captured []*value // leaves of the code, passed after the arguments
	results  []*value // how results are made: types, and the values tapped behind them
	taps     []string // names of the last len(taps) results
	err      error
}

// Call runs the function. When an argument has failed, or tracing does, the results are one failed value.
func (f *Function) Call(args ...Value) []Value {
	e := f.eng
	args, donated := take(args)
	for _, a := range args {
		if err := a.Err(); err != nil {
			return []Value{{v: &value{eng: e, err: err}}}
		}
		if a.v.eng.tracing() { // called by a function that is being traced: part of it
			return f.fn(args)
		}
	}
	if e.mode != Compiled {
		out := f.fn(args)
		if e.mode == Fused || len(donated) > 0 {
			if err := e.end(out, donated); err != nil {
				return []Value{{v: &value{eng: e, err: err}}}
			}
		}
		return out
	}
	out, err := f.call(args, donated)
	if err != nil {
		return []Value{{v: &value{eng: e, err: err}}}
	}
	return out
}

func (f *Function) call(args, donated []Value) ([]Value, error) {
	e := f.eng
	var key []byte
	if e.Tapping() {
		key = append(key, 't')
	}
	for _, a := range args {
		key = a.v.typ.AppendKey(key)
	}
	if err := e.Cut(args...); err != nil { // virtual arguments become buffers
		return nil, err
	}
	leaves := make([]*value, 0, len(args))
	for _, a := range args {
		leaves = append(leaves, a.v)
	}
	e.mu.Lock()
	given := e.giveable(donated, nil)
	taken := e.donations(leaves, given, nil)
	e.mu.Unlock()
	for _, i := range taken {
		key = binary.AppendUvarint(append(key, 'd'), uint64(i))
	}
	f.mu.Lock()
	t, ok := f.traces[string(key)]
	if !ok {
		t = f.trace(args, taken)
		if t.err == nil {
			f.traces[string(key)] = t
		}
	} else {
		e.stats.addHit()
	}
	f.mu.Unlock()
	if t.err != nil {
		return nil, t.err
	}
	leaves = append(leaves, t.captured...)
	results := make([]*value, len(t.results))
	src := callerSource()
	for i, r := range t.results {
		results[i] = &value{eng: e, typ: r.typ, src: src}
	}
	if err := e.run(t.exe, f.name, results, leaves); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.give(given)
	e.mu.Unlock()
	n := len(results) - len(t.taps)
	for i, name := range t.taps {
		e.Tap(name, Value{v: results[n+i]})
	}
	out := make([]Value, n)
	for i := range out {
		out[i] = Value{v: results[i]}
	}
	return out, nil
}

// trace records the function for arguments of these types and compiles it. The program takes over the arguments taken.
func (f *Function) trace(args []Value, taken []int) *trace {
	e := f.eng
	te := &Engine{client: e.client, device: e.device, mode: Strict, cache: e.cache, stats: e.stats, log: e.log, trace: e.trace, root: e}
	inputs := make([]*value, len(args))
	traced := make([]Value, len(args))
	for i, a := range args {
		inputs[i] = &value{eng: te, typ: a.v.typ, op: graph.Input, attr: graph.InputAttr{Index: i}}
		traced[i] = Value{v: inputs[i]}
	}
	t := &trace{}
	for _, v := range f.fn(traced) {
		if err := v.Err(); err != nil {
			return &trace{err: fmt.Errorf("%s: %w", f.name, err)}
		}
		t.results = append(t.results, v.v)
	}
	if len(t.results) == 0 {
		return &trace{err: errors.New(f.name + ": the function returned nothing")}
	}
	for _, tap := range te.taps {
		if tap.v == nil || tap.v.err != nil {
			continue // reported by the result that depends on it
		}
		t.taps = append(t.taps, tap.name)
		t.results = append(t.results, tap.v)
	}
	_, found := reach(t.results)
	isArg := make(map[*value]bool, len(inputs))
	for _, v := range inputs {
		isArg[v] = true
	}
	for _, l := range found {
		if !isArg[l] {
			if l.op == graph.Input {
				return &trace{err: errors.New(f.name + ": a traced value of another function was used")}
			}
			t.captured = append(t.captured, l)
		}
	}
	g, err := build(f.name, t.results, append(append([]*value(nil), inputs...), t.captured...))
	if err != nil {
		return &trace{err: err}
	}
	g.Donated = taken
	t.exe, err = e.executable(sha256.Sum256(g.AppendKey([]byte{'g'})), func() (*graph.Graph, error) { return g, nil })
	if err != nil {
		return &trace{err: err}
	}
	// Only the types are needed from here on; the recording would keep every traced value alive.
	for i, r := range t.results {
		t.results[i] = &value{typ: r.typ}
	}
	return t
}
