// Command tpu compiles the blocks of a FLUX.1 transformer for TPUs that this machine doesn't have and prints what libtpu's
// compiler says of them: bytes through the device's memory, temporaries, estimated cycles (loops multiplied by their
// trips), as Markdown.
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
	for _, topology := range topologies {
		o := plan.Options{Plugin: path, Env: env, Plain: plain, Workers: workers}
		t, err := plan.Open(ctx, topology, o)
		if err != nil {
			return err
		}
		all, err := t.Compile(ctx, &kept, o)
		t.Close()
		if err != nil {
			return err
		}
		for _, c := range all {
			if err := row(c.Name, t, c.Figures, c.Err, parts); err != nil {
				return err
			}
		}
	}
	return nil
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
			if err := row(p.Name, t, f, err, parts); err != nil {
				return err
			}
		}
	}
	return nil
}

func header() {
	fmt.Println("| program | topology | kernels | compile s | arguments MB | temporaries MB | HBM traffic GB | M cycles outside kernels |")
	fmt.Println("|---|---|---|---:|---:|---:|---:|---:|")
}

// row prints what is known of a program.
func row(name string, t *plan.Target, f aot.Figures, err error, parts bool) error {
	if err != nil {
		fmt.Printf("| %s | %s | %v | %v |\n", name, t.Name, t.Kernels, err)
		return nil
	}
	fmt.Printf("| %s | %s | %v | %.1f | %.0f | %.0f | %.2f | %.2f |\n", name, t.Name, t.Kernels, f.Seconds,
		float64(f.Arguments)/1e6, float64(f.Temporary)/1e6, float64(f.Cost.HBM)/1e9, float64(f.Cost.Cycles)/1e6)
	if !parts {
		return nil
	}
	for _, p := range f.Cost.Largest {
		fmt.Printf("  %-40s %4d x %8.1f MB %8.3f M cycles\n", p.Name, p.Times, float64(p.HBM)/1e6, float64(p.Cycles)/1e6)
	}
	return nil
}
