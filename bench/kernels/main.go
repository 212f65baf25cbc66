// Command kernels times the CPU backend's operations at the shapes of FLUX.1 and its autoencoder, one JSON line each.
//
//	go run ./bench/kernels > ours.jsonl
//	python bench/peers/kernels.py ours.jsonl      # the same work in PyTorch, and the table
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// job is one operation: its name, the shapes of its operands, and the flops that count for it (0: bandwidth bound).
type job struct {
	name   string
	op     graph.Op
	attr   graph.Attr
	shapes []tensor.Shape
	flops  float64
}

func jobs() []job {
	var js []job
	linear := func(m, k, n int, act graph.Activation) {
		js = append(js, job{fmt.Sprintf("linear %dx%dx%d %s", m, k, n, act), graph.Linear, graph.LinearAttr{Bias: true, Act: act},
			[]tensor.Shape{{m, k}, {n, k}, {n}}, 2 * float64(m) * float64(k) * float64(n)})
	}
	linear(1, 3072, 3072, graph.NoActivation)
	linear(16, 3072, 3072, graph.NoActivation)
	linear(77, 3072, 3072, graph.NoActivation)
	linear(333, 1536, 1536, graph.NoActivation)
	linear(1024, 3072, 3072, graph.NoActivation)
	linear(1357, 1536, 6144, graph.ActGeluTanh)
	linear(1536, 3072, 12288, graph.ActGeluTanh)
	attention := func(n, h, d int) {
		s := tensor.Shape{1, n, h, d}
		js = append(js, job{fmt.Sprintf("attention %dx%dx%d", h, n, d), graph.Attention, graph.AttentionAttr{Scale: 0.1},
			[]tensor.Shape{s, s, s}, 4 * float64(n) * float64(n) * float64(h*d)})
	}
	attention(1357, 24, 64)
	attention(1536, 24, 128)
	attention(77, 12, 64)
	attention(4096, 1, 512)
	conv := func(size, in, out, k, stride int) {
		pad := [2]int{k / 2, k / 2}
		o := size / stride
		js = append(js, job{fmt.Sprintf("conv %dx%d %d %d→%d stride %d", k, k, size, in, out, stride), graph.Convolution,
			graph.ConvolutionAttr{Stride: [2]int{stride, stride}, Low: pad, High: pad, Bias: true},
			[]tensor.Shape{{1, size, size, in}, {out, in, k, k}, {out}}, 2 * float64(o*o) * float64(in*out*k*k)})
	}
	conv(64, 512, 512, 3, 1)
	conv(256, 256, 256, 3, 1)
	conv(512, 128, 128, 3, 1)
	conv(512, 128, 3, 3, 1)
	conv(256, 512, 256, 1, 1)
	conv(256, 128, 128, 3, 2)
	x := tensor.Shape{1, 4608, 3072}
	js = append(js,
		job{"layer_norm 4608x3072", graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, []tensor.Shape{x}, 0},
		job{"rms_norm 4608x24x128", graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, []tensor.Shape{{1, 4608, 24, 128}, {128}}, 0},
		job{"gelu_tanh 4608x12288", graph.Gelu, graph.GeluAttr{Form: graph.ActGeluTanh}, []tensor.Shape{{4608, 12288}}, 0},
		job{"silu 4608x12288", graph.Silu, nil, []tensor.Shape{{4608, 12288}}, 0},
		job{"add 4608x3072", graph.Add, nil, []tensor.Shape{x, x}, 0},
		job{"modulate 4608x3072", graph.Modulate, nil, []tensor.Shape{x, {1, 1, 3072}, {1, 1, 3072}}, 0},
		job{"softmax 24x512x512", graph.Softmax, nil, []tensor.Shape{{24, 512, 512}}, 0},
		job{"group_norm 256x256x256", graph.GroupNorm, graph.GroupNormAttr{Groups: 32, Eps: 1e-6}, []tensor.Shape{{1, 256, 256, 256}, {256}, {256}}, 0},
		job{"upsample 128x128x256", graph.UpsampleNearest, graph.UpsampleAttr{Factor: 2}, []tensor.Shape{{1, 128, 128, 256}}, 0},
	)
	return js
}

// row is one line of output.
type row struct {
	Name    string         `json:"name"`
	Op      string         `json:"op"`
	DType   string         `json:"dtype"`
	Threads int            `json:"threads"`
	Shapes  []tensor.Shape `json:"shapes"`
	MS      float64        `json:"ms"`   // median
	Best    float64        `json:"best"` // milliseconds
	GFLOPS  float64        `json:"gflops,omitempty"`
	Device  string         `json:"device"`
}

func main() {
	threads := flag.Int("threads", 0, "threads; 0 means all")
	seconds := flag.Float64("seconds", 0.5, "time for each operation")
	filter := flag.String("run", "", "time only the operations whose name matches this regular expression")
	flag.Parse()
	if err := run(*threads, *seconds, *filter); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(threads int, seconds float64, filter string) error {
	re, err := regexp.Compile(filter)
	if err != nil {
		return err
	}
	c, err := cpu.New(cpu.Options{Threads: threads, ISA: os.Getenv("GESSO_CPU_ISA")})
	if err != nil {
		return err
	}
	defer c.Close()
	out := json.NewEncoder(os.Stdout)
	for _, j := range jobs() {
		if !re.MatchString(j.name) {
			continue
		}
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
			t, best, err := measure(c, j, d, seconds)
			if err != nil {
				return fmt.Errorf("%s %s: %w", j.name, d, err)
			}
			dev := c.Devices()[0]
			r := row{j.name, j.op.String(), d.String(), threads, j.shapes, t.Seconds() * 1e3, best.Seconds() * 1e3,
				j.flops / t.Seconds() / 1e9, dev.Kind + " " + dev.Detail}
			if err := out.Encode(r); err != nil {
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

// random uploads normal numbers.
func random(c *cpu.Client, t graph.Type, seed uint64) (backend.Buffer, error) {
	r := rand.New(rand.NewPCG(seed, 2))
	v := make([]float32, t.Shape.Size())
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	a, err := tensor.FromFloat32(v, t.Shape...).Convert(t.DType)
	if err != nil {
		return nil, err
	}
	return c.Upload(a, 0)
}

// measure returns the median and the best time of one run.
func measure(c *cpu.Client, j job, d tensor.DType, seconds float64) (mid, best time.Duration, err error) {
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
		for _, n := range nodes {
			b, err := random(c, n.Type, uint64(i))
			if err != nil {
				return 0, 0, err
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
	exe, err := c.Compile(context.Background(), g, 0)
	if err != nil {
		return 0, 0, err
	}
	defer exe.Close()
	var times []time.Duration
	for begin := time.Now(); len(times) < 4 || time.Since(begin).Seconds() < seconds; {
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
	}
	times = times[1:] // the first run warms up
	return median(times), slices.Min(times), nil
}

func median(ts []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ts))
	return s[len(s)/2]
}
