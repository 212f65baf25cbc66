// Command compare times one denoising step in Gesso and in Diffusers, in turn and in both orders, and prints the table.
//
//	go run ./bench/compare -python venv/bin/python -layers 2,2 -size 512
//
// A row is the median over rounds of what a process measures; processor time tells a busy machine from slow code. A peer
// that fails is reported as failed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// contestant is one way to compute the step.
type contestant struct {
	name  string
	dtype string
	ours  bool
	args  []string
}

// measured is what both programs print.
type measured struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	First      float64 `json:"first_seconds"`
	Percent    float64 `json:"percent_of_peak"`
	Peak       int64   `json:"peak_resident_bytes"`
	Device     string  `json:"device"`
	ISA        string  `json:"isa"`
	Threads    int     `json:"threads"`
	Version    string  `json:"version"`
}

type options struct {
	python, gesso, arch, layers string
	size, batch, rounds         int
	seconds                     float64
	dtypes, modes, peers        []string
}

func main() {
	o := options{}
	flag.StringVar(&o.python, "python", "python3", "Python with torch and diffusers; empty for none")
	flag.StringVar(&o.gesso, "gesso", "", "program to time (default: this source, built)")
	flag.StringVar(&o.arch, "arch", "flux1", "network")
	flag.StringVar(&o.layers, "layers", "2,2", "repeated blocks of each kind")
	flag.IntVar(&o.size, "size", 512, "height and width in pixels")
	flag.IntVar(&o.batch, "batch", 1, "rows of one call")
	flag.IntVar(&o.rounds, "rounds", 2, "how often each is run")
	flag.Float64Var(&o.seconds, "seconds", 5, "time steps for so long in each run")
	list := func(name, value, usage string) func() []string {
		s := flag.String(name, value, usage)
		return func() []string { return strings.FieldsFunc(*s, func(r rune) bool { return r == ',' }) }
	}
	dtypes := list("dtypes", "bf16,f32", "dtypes")
	modes := list("modes", "strict,fused,compiled", "modes of Gesso")
	peers := list("peers", "eager,compile", "ways to run Diffusers")
	flag.Parse()
	o.dtypes, o.modes, o.peers = dtypes(), modes(), peers()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.gesso == "" {
		dir, err := os.MkdirTemp("", "gesso-compare-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.gesso = filepath.Join(dir, "gesso")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.gesso, "./cmd/gesso")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build ./cmd/gesso (run this in the root of the repository): %w", err)
		}
	}
	size := strconv.Itoa(o.size)
	common := []string{"--json", "--arch", o.arch, "--layers", o.layers, "--height", size, "--width", size,
		"--batch", strconv.Itoa(o.batch), "--seconds", fmt.Sprint(o.seconds)}
	var all []contestant
	for _, d := range o.dtypes {
		for _, m := range o.modes {
			all = append(all, contestant{"Gesso " + m, d, true, slices.Concat([]string{"bench", "step", "--mode", m, "--dtype", d}, common)})
		}
		for _, p := range o.peers {
			if o.python == "" {
				continue
			}
			args := slices.Concat([]string{filepath.Join("bench", "peers", "step.py"), "--dtype", d}, common)
			if p == "compile" {
				args = append(args, "--compile")
			}
			all = append(all, contestant{"Diffusers " + p, d, false, args})
		}
	}
	results := make([][]measured, len(all))
	failures := make([]string, len(all))
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	for range o.rounds {
		for _, i := range order {
			m, err := all[i].run(ctx, &o)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				failures[i] = err.Error()
				continue
			}
			fmt.Fprintf(os.Stderr, "%s %s: %.3f s/step, processor %.3f s\n", all[i].name, all[i].dtype, m.Seconds, m.CPUSeconds)
			results[i] = append(results[i], m)
		}
		slices.Reverse(order)
	}
	print(&o, all, results, failures)
	return nil
}

func (c *contestant) run(ctx context.Context, o *options) (measured, error) {
	program := o.python
	if c.ours {
		program = o.gesso
	}
	cmd := exec.CommandContext(ctx, program, c.args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var m measured
	if err == nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		err = json.Unmarshal([]byte(lines[len(lines)-1]), &m)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
		return m, fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return m, nil
}

func median(rs []measured, of func(*measured) float64) float64 {
	var v []float64
	for i := range rs {
		v = append(v, of(&rs[i]))
	}
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// print writes the table. The ratio is the fastest peer's time, in any of the dtypes run, over the row's.
func print(o *options, all []contestant, results [][]measured, failures []string) {
	seconds := func(i int) float64 { return median(results[i], func(m *measured) float64 { return m.Seconds }) }
	processor := func(i int) float64 { return median(results[i], func(m *measured) float64 { return m.CPUSeconds }) }
	best, bestCPU, header := 0.0, 0.0, ""
	for i, c := range all {
		for _, m := range results[i] {
			if c.ours {
				header = fmt.Sprintf("%s, %s, %d threads", m.Device, m.ISA, m.Threads)
			} else if header != "" && !strings.Contains(header, m.Version) {
				header += "; " + m.Version
			}
		}
		if s := seconds(i); !c.ours && s > 0 && (best == 0 || s < best) {
			best = s
		}
		if s := processor(i); !c.ours && s > 0 && (bestCPU == 0 || s < bestCPU) {
			bestCPU = s
		}
	}
	fmt.Printf("%s, %s layers, %d×%d, batch %d. %s\n\n", o.arch, o.layers, o.size, o.size, o.batch, header)
	fmt.Println("| | dtype | s/step | ratio | processor s/step | ratio | first step s | peak GB | % of peak |\n|---|---|---|---|---|---|---|---|---|")
	for i, c := range all {
		if len(results[i]) == 0 {
			fmt.Printf("| %s | %s | failed: %s | | | | | | |\n", c.name, c.dtype, failures[i])
			continue
		}
		percent := ""
		if c.ours {
			percent = fmt.Sprintf("%.0f", median(results[i], func(m *measured) float64 { return m.Percent }))
		}
		fmt.Printf("| %s | %s | %.3f | %s | %.3f | %s | %.2f | %.2f | %s |\n", c.name, c.dtype, seconds(i), ratio(best, seconds(i)),
			processor(i), ratio(bestCPU, processor(i)), median(results[i], func(m *measured) float64 { return m.First }),
			median(results[i], func(m *measured) float64 { return float64(m.Peak) / 1e9 }), percent)
	}
	fmt.Println("\nratio = the fastest peer's time / the row's.")
}

func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}
