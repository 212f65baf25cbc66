package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// recorder is a backend that runs nothing. It notes the programs, how often each ran, and on what.
type recorder struct {
	mu       sync.Mutex
	programs []*Program
	byKey    map[string]*Program
	stage    string
	last     string                // the component of the latest program with parameters
	params   map[string]*Component // by name
	order    []string
	seen     map[string]bool // parameters counted
}

var _ backend.Client = (*recorder)(nil)

func newRecorder() *recorder {
	return &recorder{byKey: map[string]*Program{}, params: map[string]*Component{}, seen: map[string]bool{}}
}

// Program is one program of a generation.
type Program struct {
	Name      string // the first of the model's parts that ran it, such as "transformer.transformer_blocks.0"
	Component string // the model that it belongs to
	Stage     string // of the pipeline, where it ran first
	Graph     *graph.Graph
	Runs      map[string]int // by stage
	Params    []string       // for each input the parameter that it first was, with its component, or ""
	Weights   int64          // bytes of parameters that one run takes
	Inputs    int64          // bytes of its other arguments
	Outputs   int64
}

// Component is a model with its parameters.
type Component struct {
	Name    string
	Weights int64 // bytes
	Params  int64 // numbers

	types map[string]graph.Type // of each parameter, by its name with the component's
}

func (r *recorder) Platform() string { return "plan" }
func (r *recorder) Version() string  { return "" }
func (r *recorder) Devices() []backend.Device {
	return []backend.Device{{Kind: "plan"}}
}
func (r *recorder) Sync(int) error { return nil }
func (r *recorder) Close() error   { return nil }

func (r *recorder) Compile(_ context.Context, g *graph.Graph, _ int) (backend.Executable, error) {
	return &recorded{r, g}, nil
}

func (r *recorder) Upload(a *tensor.Array, _ int) (backend.Buffer, error) {
	return &placeholder{t: graph.Type{DType: a.DType, Shape: a.Shape}}, nil
}

// parameter stands for a model's parameter; see pipeline.Abstract.
func (r *recorder) parameter(component, name string, t graph.Type) (backend.Buffer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	full := component + "." + name
	if !r.seen[full] {
		r.seen[full] = true
		c := r.params[component]
		if c == nil {
			c = &Component{Name: component, types: map[string]graph.Type{}}
			r.params[component] = c
			r.order = append(r.order, component)
		}
		c.Weights += int64(t.Bytes())
		c.Params += int64(t.Shape.Size())
		c.types[full] = t
	}
	return &placeholder{t: t, component: component, name: full}, nil
}

// recorded is a program of the recorder.
type recorded struct {
	r *recorder
	g *graph.Graph
}

func (e *recorded) Memory() backend.MemoryStats { return backend.MemoryStats{} }
func (e *recorded) Close()                      {}

func (e *recorded) Run(args []backend.Buffer) ([]backend.Buffer, backend.Event, error) {
	if len(args) != len(e.g.Inputs) {
		return nil, nil, fmt.Errorf("run %s: %d arguments given, the program takes %d", e.g.Name, len(args), len(e.g.Inputs))
	}
	r := e.r
	r.mu.Lock()
	defer r.mu.Unlock()
	key := e.g.Fingerprint()
	p := r.byKey[key]
	if p == nil {
		p = &Program{Graph: e.g, Runs: map[string]int{}, Stage: r.stage, Params: make([]string, len(args))}
		var names []string
		for i, a := range args {
			b := a.(*placeholder)
			n := int64(b.t.Bytes())
			if b.name == "" {
				p.Inputs += n
				continue
			}
			p.Weights += n
			p.Params[i] = b.name
			names = append(names, b.name)
			if i == 0 || p.Component == "" {
				p.Component = b.component
			}
		}
		for _, o := range e.g.Outputs {
			p.Outputs += int64(o.Type.Bytes())
		}
		if p.Component == "" {
			p.Component = r.last
		}
		if p.Name = commonPath(names); p.Name == "" {
			p.Name = strings.Trim(p.Component+"."+e.g.Name, ".")
		}
		for i, base := 2, p.Name; slices.ContainsFunc(r.programs, func(q *Program) bool { return q.Name == p.Name }); i++ {
			p.Name = fmt.Sprintf("%s#%d", base, i)
		}
		r.byKey[key] = p
		r.programs = append(r.programs, p)
	}
	if p.Weights > 0 {
		r.last = p.Component
	}
	p.Runs[r.stage]++
	outs := make([]backend.Buffer, len(e.g.Outputs))
	for i, o := range e.g.Outputs {
		outs[i] = &placeholder{t: o.Type}
	}
	return outs, ended{}, nil
}

// commonPath is the longest path that all names begin with.
func commonPath(names []string) string {
	if len(names) == 0 {
		return ""
	}
	path := strings.Split(names[0], ".")
	for _, n := range names[1:] {
		parts := strings.Split(n, ".")
		k := 0
		for k < len(path) && k < len(parts) && path[k] == parts[k] {
			k++
		}
		path = path[:k]
	}
	if len(names) == 1 && len(path) > 1 {
		path = path[:len(path)-1]
	}
	return strings.Join(path, ".")
}

// placeholder is a value that is not there; read, it is zeros.
type placeholder struct {
	t         graph.Type
	component string
	name      string // of a parameter
}

func (b *placeholder) Type() graph.Type { return b.t }
func (b *placeholder) Wait() error      { return nil }
func (b *placeholder) Free()            {}
func (b *placeholder) Read() (*tensor.Array, error) {
	return tensor.New(b.t.DType, b.t.Shape...), nil
}

type ended struct{}

func (ended) Wait() error         { return nil }
func (ended) Done() (bool, error) { return true, nil }
