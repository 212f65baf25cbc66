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
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/pipeline/flux"
	"github.com/gesso-go/gesso/plan"
)

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
	flag.Parse()
	if err := run(*model, strings.Split(*topologies, ","), *size, *plain, *parts, *workers, *programs); err != nil {
		log.Fatal("tpu: ", err)
	}
}

func run(model string, topologies []string, size int, plain, parts bool, workers int, pattern string) error {
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
	fmt.Println("| program | topology | kernels | compile s | arguments MB | temporaries MB | HBM traffic GB | M cycles outside kernels |")
	fmt.Println("|---|---|---|---:|---:|---:|---:|---:|")
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
			if c.Err != nil {
				fmt.Printf("| %s | %s | %v | %v |\n", c.Name, t.Name, t.Kernels, c.Err)
				continue
			}
			fmt.Printf("| %s | %s | %v | %.1f | %.0f | %.0f | %.2f | %.2f |\n", c.Name, t.Name, t.Kernels, c.Seconds,
				float64(c.Arguments)/1e6, float64(c.Temporary)/1e6, float64(c.Cost.HBM)/1e9, float64(c.Cost.Cycles)/1e6)
			if parts {
				e := json.NewEncoder(os.Stderr)
				e.SetIndent("", " ")
				if err := e.Encode(c.Cost); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
