package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/mosaic"
	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
)

// Target is a topology of TPUs that programs are compiled for.
type Target struct {
	Name     string // as libtpu takes it, such as "v6e:2x2"
	Chip     mosaic.Chip
	Compiler *aot.Compiler
	Info     *aot.Info
	Kernels  bool // programs use the kernels of package mosaic
}

// Options for Open and Compile.
type Options struct {
	Plugin   string           // libtpu
	Env      []string         // of the processes that load it
	Cache    *diskcache.Cache // of compiled programs; nil for none
	Workers  int              // programs compiled at a time; 0 means a processor each
	Plain    bool             // without kernels
	Progress func(Progress)
}

// Progress is told when a program is there.
type Progress struct {
	Program     string
	Done, Total int
	Cached      bool
	Seconds     float64
}

// Open starts the compiler for a topology such as "v6e:2x2", and tries whether it takes the kernels.
func Open(ctx context.Context, topology string, o Options) (*Target, error) {
	name, chip, err := mosaic.ParseTopology(topology)
	if err != nil {
		return nil, err
	}
	t := &Target{Name: name, Chip: chip, Compiler: aot.New(aot.Options{Plugin: o.Plugin, Topology: name, Bounds: bounds(name), Env: o.Env})}
	if t.Info, err = t.Compiler.Info(ctx); err != nil {
		return nil, err
	}
	if !o.Plain {
		t.Kernels, err = t.probe(ctx, o.Cache)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// ParseTopology checks a topology and returns its name as libtpu takes it.
func ParseTopology(name string) (string, error) {
	name, _, err := mosaic.ParseTopology(name)
	return name, err
}

// bounds are the chips of a host: up to eight chips in a plane are one.
func bounds(topology string) []int64 {
	_, shape, _ := strings.Cut(topology, ":")
	var a, b int64
	if n, _ := fmt.Sscanf(shape, "%dx%d", &a, &b); n == 2 && strings.Count(shape, "x") == 1 && a*b <= 8 {
		return []int64{a, b, 1}
	}
	return nil
}

// Close ends the compiler's processes.
func (t *Target) Close() { t.Compiler.Close() }

// probe has the compiler take small kernels. A refusal means that programs are written without.
func (t *Target) probe(ctx context.Context, cache *diskcache.Cache) (bool, error) {
	g, err := mosaic.Probe()
	if err != nil {
		return false, err
	}
	p, err := t.program(g.Name, func(o pjrt.Options) (*pjrt.Program, error) { return o.Program(g, 0) }, true)
	if err != nil {
		return false, err
	}
	if _, _, err = t.obtain(ctx, p, cache); err != nil && ctx.Err() == nil && !errors.Is(err, diskcache.ErrNotKept) {
		return false, nil
	}
	return err == nil, err
}

// program writes a program as a client on such devices writes it.
func (t *Target) program(name string, write func(pjrt.Options) (*pjrt.Program, error), kernels bool) (*pjrt.Program, error) {
	p, err := write(pjrt.Options{Name: t.Info.Platform, Text: mosaic.Options(t.Chip, kernels), Flags: mosaic.Flags()})
	if err != nil {
		return nil, err
	}
	p.Name = name
	return p, nil
}

// Compiled is a program with what the compiler says of it.
type Compiled struct {
	*Program
	aot.Figures
	Shards *stablehlo.Shards `json:"-"` // how it is divided among devices; the figures are of each
	Key    string            // in the cache
	Cached bool
	Data   []byte `json:"-"`
	Err    error  `json:"-"` // why it can't be compiled
}

// obtain takes a program's figures from the cache, or compiles it.
func (t *Target) obtain(ctx context.Context, p *pjrt.Program, cache *diskcache.Cache) (r *aot.Result, cached bool, err error) {
	if cache == nil {
		r, err = t.Compiler.Compile(ctx, p)
		return r, false, err
	}
	load := func(e *diskcache.Entry) error {
		var f aot.Figures
		if err := json.Unmarshal(e.Meta, &f); err != nil {
			return err
		}
		if f.Peak == 0 {
			return errors.New("an entry without figures") // a client's, which doesn't keep them, or an older Gesso's
		}
		r = &aot.Result{Figures: f, Data: e.Data}
		return nil
	}
	cached, err = cache.Get(ctx, p.Key(t.Info.Platform, t.Info.Version, t.Info.Target()), load, func() (*diskcache.Entry, error) {
		var err error
		if r, err = t.Compiler.Compile(ctx, p); err != nil {
			return nil, err
		}
		meta, err := json.Marshal(r.Figures)
		if err != nil {
			return nil, err
		}
		return &diskcache.Entry{Name: p.Name, CompileSeconds: r.Seconds, Meta: meta, Data: r.Data}, nil
	})
	return r, cached, err
}

// Compile compiles the programs of a generation, several at a time, what takes longest first. A program that the compiler
// refuses, for want of memory or because it crashes, has its error; the error that is returned is ctx's. With tensor
// parallelism the programs are those of its devices, without kernels.
func (t *Target) Compile(ctx context.Context, g *Generation, o Options) ([]*Compiled, error) {
	all := make([]*Compiled, len(g.Programs))
	order := make([]int, len(all))
	for i, p := range g.Programs {
		all[i], order[i] = &Compiled{Program: p, Shards: p.Shards(g.Request.Placement.TP)}, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return weight(g.Programs[b].Graph) - weight(g.Programs[a].Graph) })
	workers := o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	jobs := make(chan *Compiled)
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(workers, len(all)) {
		wg.Go(func() {
			for c := range jobs {
				start := time.Now()
				c.Err = t.one(ctx, c, o.Cache)
				mu.Lock()
				done++
				if o.Progress != nil && c.Err == nil {
					o.Progress(Progress{c.Name, done, len(all), c.Cached, time.Since(start).Seconds()})
				}
				mu.Unlock()
			}
		})
	}
	for _, i := range order {
		if ctx.Err() != nil {
			break
		}
		jobs <- all[i]
	}
	close(jobs)
	wg.Wait()
	return all, ctx.Err()
}

// weight orders programs by how long they take to compile: convolutions take seconds each, whatever their size. (Measured
// with libtpu 0.0.52: a block with two of them 15 to 23 s, the transformer's with 65 and 25 other operations 28 and 12 s.)
func weight(g *graph.Graph) int {
	n := len(g.Nodes)
	for _, node := range g.Nodes {
		if node.Op == graph.Convolution || node.Op == graph.UpsampleConv {
			n += 20
		}
	}
	return n
}

func (t *Target) one(ctx context.Context, c *Compiled, cache *diskcache.Cache) error {
	devices := []int{0}
	if c.Shards != nil {
		devices = make([]int, c.Shards.Devices)
		for d := range devices {
			devices[d] = d
		}
	}
	write := func(o pjrt.Options) (*pjrt.Program, error) {
		if c.Shards != nil { // the partitioner can divide neither kernels nor loops over heads
			o.Text = stablehlo.Options{Shards: c.Shards, Apart: o.Text.Apart}
		}
		return o.Program(c.Graph, devices...)
	}
	p, err := t.program(c.Name, write, t.Kernels)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	r, cached, err := t.obtain(ctx, p, cache)
	if err != nil {
		return err
	}
	c.Figures, c.Data, c.Cached = r.Figures, r.Data, cached
	c.Key = p.Key(t.Info.Platform, t.Info.Version, t.Info.Target()).String()
	return nil
}
