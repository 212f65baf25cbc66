// Package dispatch measures what strict mode costs an operation, and shows that it doesn't wait.
//
//	async, err := dispatch.Asynchronous(client, 0, dispatch.Options{})
//	fmt.Println(async.FinishedWhenIssued, "of", async.Ops)
//
// An operation of Gesso goes from the caller's goroutine to the device's, and from there to the plugin. Overhead times
// chains of operations that compute next to nothing, on the plugin alone and through Gesso, in turns.
package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Options for the measurements. The zero value is what the promise is about.
type Options struct {
	Ops    int                // operations of Asynchronous; 0 means 1,000
	Rounds int                // of Overhead; 0 means 200
	Trace  *timeline.Recorder // of Asynchronous; nil makes one of its own
}

func (o Options) withDefaults() Options {
	if o.Ops <= 0 {
		o.Ops = 1000
	}
	if o.Rounds <= 0 {
		o.Rounds = 200
	}
	return o
}

// Async says how far a device had come when its caller had issued everything.
type Async struct {
	Ops                int     `json:"operations"`
	Size               int     `json:"size"` // of the square matrices
	OpSeconds          float64 `json:"operation_seconds"`
	IssueSeconds       float64 `json:"issue_seconds"` // from the first dispatch to the end of the last
	TotalSeconds       float64 `json:"total_seconds"`
	FinishedWhenIssued int     `json:"finished_when_issued"`
}

// opTime is what an operation of Asynchronous takes at least.
const opTime = time.Millisecond

// product is x·w of two matrices.
var product = graph.DotGeneralAttr{LhsContract: []int{1}, RhsContract: []int{0}}

// Asynchronous issues dependent matrix products of a millisecond each.
func Asynchronous(client backend.Client, device int, o Options) (*Async, error) {
	o = o.withDefaults()
	r := &Async{Ops: o.Ops}
	probe := engine.New(client, engine.Options{Device: device})
	for r.Size = 128; ; r.Size += r.Size / 4 {
		x, w := matrices(probe, r.Size)
		took := time.Duration(1 << 62)
		for range 5 {
			start := time.Now()
			if x = x.Dot(w, product); x.Wait() != nil {
				return nil, x.Wait()
			}
			took = min(took, time.Since(start))
		}
		if took >= opTime || r.Size > 1<<13 {
			break
		}
	}
	rec := o.Trace
	if rec == nil {
		rec = timeline.New()
		defer rec.Close()
	}
	e := engine.New(client, engine.Options{Device: device, Trace: rec})
	x, w := matrices(e, r.Size)
	warm := x.Dot(w, product) // compiles
	if err := warm.Wait(); err != nil {
		return nil, err
	}
	for range o.Ops {
		x = x.Dot(w, product)
	}
	if err := x.Wait(); err != nil {
		return nil, err
	}
	if err := rec.Close(); err != nil {
		return nil, err
	}
	return r, r.read(rec.Spans())
}

// matrices returns a matrix, and the identity.
func matrices(e *engine.Engine, n int) (x, w engine.Value) {
	a, eye := tensor.New(tensor.F32, n, n), tensor.New(tensor.F32, n, n)
	for i := range n {
		eye.Float32s()[i*n+i] = 1
	}
	return e.Upload(a), e.Upload(eye)
}

// read takes the figures from the trace; its first execution is the one that compiled.
func (r *Async) read(spans []timeline.Span) error {
	var first, issued, end time.Duration
	var device []timeline.Span
	for _, s := range spans {
		switch {
		case s.Sequence <= 1:
		case s.Lane == timeline.Host:
			if first == 0 {
				first = s.Start
			}
			issued = max(issued, s.End)
		case s.Lane == timeline.Device:
			device = append(device, s)
			end = max(end, s.End)
		}
	}
	if len(device) != r.Ops {
		return fmt.Errorf("dispatch: the trace shows %d executions of %d", len(device), r.Ops)
	}
	for _, s := range device {
		if s.End <= issued {
			r.FinishedWhenIssued++
		}
	}
	r.IssueSeconds, r.TotalSeconds = (issued - first).Seconds(), (end - first).Seconds()
	r.OpSeconds = r.TotalSeconds / float64(r.Ops)
	return nil
}

// chainOps is the length of Overhead's chains: short enough that some of them run undisturbed on a machine that does
// other work as well.
const chainOps = 250

// Cost is what one operation of a chain takes, in microseconds, to the end of the last one: the lower tenth of the rounds,
// as what other processes take is not the operation's.
type Cost struct {
	Ops      int     `json:"operations"`
	Plugin   float64 `json:"plugin_us"`   // calls into the plugin alone; 0 where there is no plugin
	Backend  float64 `json:"backend_us"`  // Executable.Run
	Strict   float64 `json:"strict_us"`   // an operation of the engine
	Issue    float64 `json:"issue_us"`    // of it, until the caller has control again
	Overhead float64 `json:"overhead_us"` // Strict beyond Plugin
}

// Chain runs so many dependent operations, each adding a value to itself, and returns when they have run.
type Chain func(n int) error

// Overhead measures a client. plugin is the same chain on the plugin alone, or nil.
func Overhead(client backend.Client, device int, plugin Chain, o Options) (*Cost, error) {
	o = o.withDefaults()
	e := engine.New(client, engine.Options{Device: device})
	zero := tensor.New(tensor.F32, 4)
	var issue time.Duration
	strict := func(n int) error {
		x := e.Upload(zero)
		start := time.Now()
		for range n {
			x = x.Add(x)
		}
		issue = time.Since(start)
		return x.Wait()
	}
	bare, err := backendChain(client, device, zero)
	if err != nil {
		return nil, err
	}
	var plugins, backends, stricts, issues []float64
	timed := func(run Chain, to *[]float64) error {
		if run == nil {
			return nil
		}
		start := time.Now()
		if err := run(chainOps); err != nil {
			return err
		}
		*to = append(*to, micros(time.Since(start), chainOps))
		return nil
	}
	for range o.Rounds + 1 {
		for _, step := range []struct {
			run Chain
			to  *[]float64
		}{{plugin, &plugins}, {bare, &backends}, {strict, &stricts}} {
			if err := timed(step.run, step.to); err != nil {
				return nil, err
			}
		}
		issues = append(issues, micros(issue, chainOps))
	}
	c := &Cost{Ops: chainOps, Backend: low(backends), Strict: low(stricts), Issue: low(issues)}
	if plugin != nil {
		c.Plugin = low(plugins)
		c.Overhead = c.Strict - c.Plugin
	}
	return c, nil
}

func micros(d time.Duration, n int) float64 { return 1e6 * d.Seconds() / float64(n) }

// low is the lower tenth, without the first round, in which caches are cold.
func low(v []float64) float64 {
	v = slices.Clone(v[1:])
	slices.Sort(v)
	return v[len(v)/10]
}
