// Command tpu compiles the programs of a FLUX.1 model for TPUs that this machine doesn't have and prints what libtpu's
// compiler says of them, as Markdown: memory of arguments and results, beside what it is by the model's configuration,
// results that lie where arguments were, temporaries, all memory at once, bytes through it, estimated cycles, and the
// bundles of instructions that Gesso's kernels have become (loops multiplied by their trips).
//
//	go run ./bench/tpu -model DIR [-topologies v6e:1x1,v5p:1x1x1] [-size 1024] [-plain]
//
// DIR is a Diffusers folder; its config.json files are enough.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/mosaic"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/pipeline/flux"
	"github.com/gesso-go/gesso/plan"
)

// flags of the compiler for files: those that every program has, unless changed.
var flags = map[string]any{"xla_allow_excess_precision": false}

func main() {
	if aot.Main() {
		return
	}
	log.SetFlags(0)
	model := flag.String("model", "", "Diffusers folder of a FLUX.1 model")
	topologies := flag.String("topologies", "v6e:1x1,v5e:1x1,v5p:1x1x1,tpu7x:1x1x1", "topologies, separated by commas")
	size := flag.Int("size", 1024, "height and width in pixels")
	plain := flag.Bool("plain", false, "without kernels")
	programs := flag.String("programs", `transformer_blocks`, "regular expression of the programs' names")
	parts := flag.Bool("parts", false, "list the instructions that take most")
	workers := flag.Int("workers", 1, "programs compiled at a time")
	text := flag.Bool("text", false, "compile the StableHLO files that are given as arguments instead of a model")
	write := flag.String("write", "", "folder to write the programs' text to, in place of compiling")
	flag.Func("flag", "a flag of the compiler for -text, NAME=true|false|NUMBER|TEXT; repeatable", func(s string) error {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("expected NAME=VALUE")
		}
		if b, err := strconv.ParseBool(v); err == nil && len(v) > 1 {
			flags[k] = b
		} else if n, err := strconv.Atoi(v); err == nil {
			flags[k] = n
		} else {
			flags[k] = v
		}
		return nil
	})
	flag.Parse()
	if *text {
		if err := files(strings.Split(*topologies, ","), flag.Args(), *parts); err != nil {
			log.Fatal("tpu: ", err)
		}
		return
	}
	if err := run(*model, strings.Split(*topologies, ","), *size, *plain, *parts, *workers, *programs, *write); err != nil {
		log.Fatal("tpu: ", err)
	}
}

func run(model string, topologies []string, size int, plain, parts bool, workers int, pattern, write string) error {
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	f, err := pipeline.OpenFolder(model)
	if err != nil {
		return err
	}
	ctx := context.Background()
	load := func(o pipeline.Options) (pipeline.Pipeline, error) { return flux.Load(f, o) }
	g, err := plan.Trace(ctx, load, plan.Request{Height: size, Width: size, Steps: 4, Mode: engine.Fused})
	if err != nil {
		return err
	}
	kept := *g
	kept.Programs = nil
	for _, p := range g.Programs {
		if wanted.MatchString(p.Name) {
			kept.Programs = append(kept.Programs, p)
		}
	}
	path, env, err := platform.Default().Compiler("tpu")
	if err != nil {
		return err
	}
	if write != "" {
		_, chip, err := mosaic.ParseTopology(topologies[0])
		if err != nil {
			return err
		}
		for _, p := range kept.Programs {
			b, err := stablehlo.Text(p.Graph, mosaic.Options(chip, !plain))
			if err == nil {
				err = os.WriteFile(filepath.Join(write, p.Name+".mlir"), []byte(b), 0o644)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	header()
	jobs := make(chan *job)
	var all []*job
	for _, topology := range topologies {
		for _, p := range kept.Programs {
			all = append(all, &job{topology: topology, done: make(chan struct{}), result: result{name: p.Name, program: p}})
		}
	}
	for range min(workers, len(all)) {
		go func() {
			for j := range jobs {
				j.failed = j.compile(ctx, plan.Options{Plugin: path, Env: env, Plain: plain, Workers: 1})
				close(j.done)
			}
		}()
	}
	go func() {
		for _, j := range all {
			jobs <- j
		}
		close(jobs)
	}()
	for _, j := range all {
		<-j.done
		if j.failed != nil {
			return fmt.Errorf("%s for %s: %w", j.name, j.topology, j.failed)
		}
		j.row(parts)
	}
	for _, topology := range topologies {
		var sum step
		for _, j := range all {
			if j.topology == topology {
				sum.add(&j.result, g.PerStep(j.program))
			}
		}
		sum.row(topology)
	}
	return nil
}

// step is what the programs of one step of the loop take together.
type step struct {
	programs                           float64 // that ran
	hbm                                float64 // bytes
	cycles, attention, others, missing float64 // missing are programs that didn't compile
}

// add adds a program that a step runs so many times.
func (s *step) add(r *result, times float64) {
	if r.err != nil {
		s.missing += times
		return
	}
	attention, others := r.bundles()
	s.programs += times
	s.hbm += times * float64(r.figures.Cost.HBM)
	s.cycles += times * float64(r.figures.Cost.Cycles)
	s.attention += times * float64(attention)
	s.others += times * float64(others)
}

func (s *step) row(topology string) {
	fmt.Printf("\nA step on %s runs %.2f of these programs: %.1f GB through the device's memory, %.1f M cycles outside kernels, %.1f M bundles in attention, %.1f M in other kernels, %.1f M together.\n",
		topology, s.programs, s.hbm/1e9, s.cycles/1e6, s.attention/1e6, s.others/1e6, (s.cycles+s.attention+s.others)/1e6)
	if s.missing > 0 {
		fmt.Printf("%.2f more did not compile.\n", s.missing)
	}
}

// job is a program to be compiled for a topology.
type job struct {
	topology string
	done     chan struct{}
	failed   error

	result
}

// result is what came of a program.
type result struct {
	name    string
	program *plan.Program // or nil, of a file
	target  *plan.Target
	figures aot.Figures
	err     error
	kernels []kernel
}

// compile has the compiler, in a process of its own, write the machine code to a folder that is read and removed.
func (j *job) compile(ctx context.Context, o plan.Options) error {
	dir, err := os.MkdirTemp("", "tpu")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Env = append(slices.Clone(o.Env), dump(dir))
	t, err := plan.Open(ctx, j.topology, o)
	if err != nil {
		return err
	}
	defer t.Close()
	probed, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, p := range probed {
		if err := os.Remove(p); err != nil {
			return err
		}
	}
	all, err := t.Compile(ctx, &plan.Generation{Programs: []*plan.Program{j.program}}, o)
	if err != nil {
		return err
	}
	j.target, j.figures, j.err = t, all[0].Figures, all[0].Err
	if j.err == nil {
		j.kernels, err = kernels(dir)
	}
	return err
}

// files compiles modules as they are.
func files(topologies, paths []string, parts bool) error {
	plugin, env, err := platform.Default().Compiler("tpu")
	if err != nil {
		return err
	}
	header()
	for _, topology := range topologies {
		t, err := plan.Open(context.Background(), topology, plan.Options{Plugin: plugin, Env: env, Plain: true})
		if err != nil {
			return err
		}
		defer t.Close()
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			p := &pjrt.Program{Name: filepath.Base(path), Text: b}
			p.Options.Devices = []int{0}
			p.Options.Flags = flags
			var f aot.Figures
			r, err := t.Compiler.Compile(context.Background(), p)
			if err == nil {
				f = r.Figures
			}
			(&result{name: p.Name, target: t, figures: f, err: err}).row(parts)
		}
	}
	return nil
}

func header() {
	fmt.Println("| program | topology | kernels | compile s | arguments and results MB | the same by count | results in place MB | temporaries MB | peak MB | HBM traffic GB | M cycles outside kernels | M bundles in attention | in other kernels |")
	fmt.Println("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
}

// bundles adds up those of the program's kernels.
func (r *result) bundles() (attention, others int64) {
	for _, k := range r.kernels {
		if k.Attention {
			attention += k.Bundles
		} else {
			others += k.Bundles
		}
	}
	return attention, others
}

// row prints what is known of a program.
func (r *result) row(parts bool) {
	if r.err != nil {
		fmt.Printf("| %s | %s | %v | %v |\n", r.name, r.target.Name, r.target.Kernels, r.err)
		return
	}
	attention, others := r.bundles()
	f := r.figures
	counted := ""
	if r.program != nil {
		counted = fmt.Sprintf("%.1f", float64(r.program.Weights+r.program.Inputs+r.program.Outputs)/1e6)
	}
	fmt.Printf("| %s | %s | %v | %.1f | %.1f | %s | %.1f | %.0f | %.0f | %.2f | %.2f | %.2f | %.2f |\n", r.name, r.target.Name, r.target.Kernels, f.Seconds,
		float64(f.Arguments+f.Outputs)/1e6, counted, float64(f.Alias)/1e6, float64(f.Temporary)/1e6, float64(f.Peak)/1e6,
		float64(f.Cost.HBM)/1e9, float64(f.Cost.Cycles)/1e6,
		float64(attention)/1e6, float64(others)/1e6)
	if !parts {
		return
	}
	for _, p := range f.Cost.Largest {
		fmt.Printf("  %-40s %4d x %8.1f MB %8.3f M cycles\n", p.Name, p.Times, float64(p.HBM)/1e6, float64(p.Cycles)/1e6)
	}
	for _, k := range r.kernels {
		fmt.Printf("  kernel %-33s %26.3f M bundles\n", k.Name, float64(k.Bundles)/1e6)
	}
}
