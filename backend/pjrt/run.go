package pjrt

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
)

// The states of a run.
const (
	waiting int32 = iota // in the queue
	issued               // the plugin has it: the outputs have their buffers
	ended
)

// run is one execution. A run without an executable is a fence.
type run struct {
	exe   *Executable
	args  []*value // held until it is issued
	outs  []value
	event *capi.Event
	// parents are executions that make arguments and had not ended when this one was issued; until its end.
	parents []*run

	state atomic.Int32
	err   error // set before ended

	mu   sync.Mutex
	cond sync.Cond
}

var _ backend.Event = (*run)(nil)

func newRun(e *Executable) *run {
	r := &run{exe: e}
	r.cond.L = &r.mu
	return r
}

// reach waits for a state.
func (r *run) reach(state int32) {
	if r.state.Load() >= state {
		return
	}
	r.mu.Lock()
	for r.state.Load() < state {
		r.cond.Wait()
	}
	r.mu.Unlock()
}

func (r *run) enter(state int32) {
	r.mu.Lock()
	r.state.Store(state)
	r.cond.Broadcast()
	r.mu.Unlock()
}

// Wait returns when the execution has ended, with its error.
func (r *run) Wait() error {
	r.reach(ended)
	return r.err
}

// Done looks without waiting.
func (r *run) Done() (bool, error) {
	if r.state.Load() != ended {
		return false, nil
	}
	return true, r.err
}

// end says how the execution ended. Only the goroutine that has the run at the time may call it.
func (r *run) end(err error) {
	r.parents, r.event = nil, nil
	r.err = err
	r.enter(ended)
}

// inherited returns the error of an argument. Parents were issued before, so this waits for nothing that waits for us.
func (r *run) inherited() error {
	for _, p := range r.parents {
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// let go of the arguments, and of the outputs, which may be nobody's by now.
func (r *run) drop() {
	for _, v := range r.args {
		v.release()
	}
	for i := range r.outs {
		r.outs[i].release()
	}
	r.args, r.outs = nil, nil
}

// issue gives the program to the plugin. It reports whether the execution is under way: otherwise it has ended.
func (r *run) issue(s *stream) bool {
	e := r.exe
	row := make([]*capi.Buffer, len(r.args))
	for i, v := range r.args {
		if p := v.run; p != nil {
			switch done, err := p.Done(); {
			case err != nil: // reported where it arose
				r.finish(err)
				return false
			case !done:
				r.parents = append(r.parents, p)
			}
		}
		row[i] = v.buf // parents are issued: the queue is in order, and devices don't share values
	}
	e.c.mem.grow(e.bytes)
	keep := e.keep
	for _, i := range e.g.Donated {
		if r.args[i].host {
			keep = append(slices.Clip(keep), int64(i))
		}
	}
	out, event, err := e.execute(row, keep)
	if err != nil {
		e.c.mem.shrink(e.bytes)
		err = e.explain(err)
		s.fail(err)
		r.finish(err)
		return false
	}
	for i := range r.outs {
		r.outs[i].buf, r.outs[i].counted = out[i], int64(r.outs[i].typ.Bytes())
	}
	r.event = event
	// What is small has run during the call.
	if ready, err := event.Ready(); ready && err == nil {
		event.Close()
		r.finish(nil)
		return false
	}
	r.enter(issued)
	r.drop()
	return true
}

// finish ends a run that the waiter doesn't see.
func (r *run) finish(err error) {
	e := r.exe
	r.end(err)
	r.drop()
	e.release()
}

// await waits for an execution that is under way.
func (r *run) await(s *stream) {
	err := r.event.Await()
	r.event.Close()
	if err != nil {
		if cause := r.inherited(); cause != nil {
			err = cause
		} else {
			err = r.exe.explain(err)
			s.fail(err)
		}
	}
	e := r.exe
	r.end(err)
	e.release()
}

// explain puts the plugin's error into words: which program, and what it needs if memory is what it lacks.
func (e *Executable) explain(err error) error {
	if oom := e.c.outOfMemory(err, "run", e.g, e.memory.Outputs+e.memory.Temporary, e.device); oom != err {
		return oom
	}
	return fmt.Errorf("%s: run %s: %w", e.c.o.Name, e.g.Name, err)
}
