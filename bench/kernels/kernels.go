// Package kernels times the CPU backend's operations one by one, on random data, at the shapes of real models.
//
//	err := kernels.Run(ctx, kernels.Options{Match: regexp.MustCompile("attention")}, func(r kernels.Row) error {
//		fmt.Println(r.Name, r.DType, r.MS)
//		return nil
//	})
//
// An operation is compiled and run as a program of its own, weights as parameters: what a model's program does with it,
// less what fusion with its neighbours gains.
package kernels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/bench/peak"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Options say what is timed. The zero value is everything, in f32 and bf16, on all threads.
type Options struct {
	Threads int            // 0 means all
	ISA     string         // forces a level
	Seconds float64        // for each operation; 0 means 0.5
	Match   *regexp.Regexp // of the names; nil matches all
	DTypes  []tensor.DType
}

// Row is what was measured of one operation.
type Row struct {
	Name    string         `json:"name"`
	Op      string         `json:"op"`
	DType   string         `json:"dtype"`
	Threads int            `json:"threads"`
	Shapes  []tensor.Shape `json:"shapes"`
	MS      float64        `json:"ms"`                        // median
	Best    float64        `json:"best"`                      // milliseconds
	GFLOPS  float64        `json:"gflops,omitempty"`          // of the median
	Percent float64        `json:"percent_of_peak,omitempty"` // see package peak
	Device  string         `json:"device"`
}

// Names lists the operations.
func Names() []string {
	var names []string
	for _, j := range jobs() {
		names = append(names, j.name)
	}
	return names
}

// Run times the operations and hands each row to each.
func Run(ctx context.Context, o Options, each func(Row) error) error {
	if o.Seconds == 0 {
		o.Seconds = 0.5
	}
	if o.DTypes == nil {
		o.DTypes = []tensor.DType{tensor.F32, tensor.BF16}
	}
	level, err := isa.Choose(o.ISA)
	if err != nil {
		return err
	}
	most := map[tensor.DType]float64{}
	for _, j := range jobs() {
		if o.Match != nil && !o.Match.MatchString(j.name) {
			continue
		}
		for _, d := range o.DTypes {
			if err := ctx.Err(); err != nil {
				return err
			}
			c, err := cpu.New(cpu.Options{Threads: o.Threads, ISA: o.ISA}) // a new one has time to pack weights
			if err != nil {
				return err
			}
			threads, dev := c.Threads(), c.Devices()[0]
			mid, best, err := measure(ctx, c, j, d, o.Seconds)
			c.Close()
			if err != nil {
				return fmt.Errorf("%s %s: %w", j.name, d, err)
			}
			r := Row{
				Name: j.name, Op: j.op.String(), DType: d.String(), Threads: threads, Shapes: j.shapes,
				MS: mid.Seconds() * 1e3, Best: best.Seconds() * 1e3, GFLOPS: j.flops / mid.Seconds() / 1e9, Device: dev.Kind + " " + dev.Detail,
			}
			if j.flops > 0 {
				if most[d] == 0 {
					most[d] = peak.Measure(level, d, threads)
				}
				r.Percent = 100 * r.GFLOPS * 1e9 / most[d]
			}
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Products of at most fewRows rows go round operands that together are larger than any cache.
const (
	fewRows   = 77
	coldBytes = 256 << 20
)

// random makes normal numbers.
func random(t graph.Type, seed uint64) (*tensor.Array, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	v := make([]float32, t.Shape.Size())
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return tensor.FromFloat32(v, t.Shape...).Convert(t.DType)
}

// measure returns the median and the best time of one run.
func measure(ctx context.Context, c *cpu.Client, j job, d tensor.DType, seconds float64) (mid, best time.Duration, err error) {
	var nodes []*graph.Node
	bytes := 0
	for i, s := range j.shapes {
		nodes = append(nodes, graph.NewInput(i, graph.Type{DType: d, Shape: s}))
		bytes += nodes[i].Bytes()
	}
	// A model uses each weight once a step, so a product of few rows finds its weight in memory, not in a cache.
	sets := make([][]backend.Buffer, 1)
	if j.op == graph.Linear && j.shapes[0][0] <= fewRows {
		sets = make([][]backend.Buffer, 1+coldBytes/bytes)
	}
	for i := range sets {
		for k, n := range nodes {
			a, err := random(n.Type, uint64(i))
			if err != nil {
				return 0, 0, err
			}
			b, err := c.Upload(a, 0)
			if err != nil {
				return 0, 0, err
			}
			defer b.Free()
			if p, ok := b.(backend.Parameter); ok && k == 1 && (j.op == graph.Linear || j.op == graph.Convolution) {
				p.MarkParameter(nil) // a model's weight
			}
			sets[i] = append(sets[i], b)
		}
	}
	n, err := graph.Make(j.op, j.attr, nodes...)
	if err != nil {
		return 0, 0, err
	}
	g, err := graph.New(j.name, nodes, []*graph.Node{n})
	if err != nil {
		return 0, 0, err
	}
	exe, err := c.Compile(ctx, g, 0)
	if err != nil {
		return 0, 0, err
	}
	defer exe.Close()
	var times []time.Duration
	warm := len(sets) // each set once
	for begin := time.Now(); len(times) < warm+3 || time.Since(begin).Seconds() < seconds; {
		start := time.Now()
		outs, done, err := exe.Run(sets[len(times)%len(sets)])
		if err != nil {
			return 0, 0, err
		}
		if err := done.Wait(); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(start))
		for _, o := range outs {
			o.Free()
		}
		if len(times) == warm {
			begin = time.Now()
		}
	}
	times = times[warm:]
	return median(times), slices.Min(times), nil
}

func median(ts []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ts))
	return s[len(s)/2]
}
