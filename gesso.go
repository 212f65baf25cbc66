// Package gesso makes pictures with diffusion models from Diffusers checkpoints: FLUX.1 on the CPU, in Go alone.
//
//	pipe, err := gesso.Load(ctx, "FLUX.1-schnell", gesso.Options{})
//	if err != nil {
//		return err
//	}
//	defer pipe.Close()
//	res, err := pipe.Generate(ctx, gesso.Request{Prompts: []string{"a cat"}, Steps: 4, Seeds: []uint64{7}})
//	if err != nil {
//		return err
//	}
//	err = imageio.WriteFile("cat.png", res.Images[0], imageio.Options{})
//
// The same seed, prompt and settings give the picture that Diffusers gives.
package gesso

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/pipeline/flux"
	"github.com/gesso-go/gesso/tensor"
)

// Version is the version of this module.
const Version = "0.1.0-dev"

// The types of a request and its result; see package pipeline.
type (
	Request  = pipeline.Request
	Result   = pipeline.Result
	Step     = pipeline.Step
	Progress = pipeline.Progress
	Timing   = pipeline.Timing
	Output   = pipeline.Output
	LoRA     = pipeline.LoRA
)

// What Generate makes.
const (
	OutputImage  = pipeline.OutputImage
	OutputArray  = pipeline.OutputArray
	OutputLatent = pipeline.OutputLatent
)

// Options for Load. The zero value runs on the CPU, in strict mode, in the dtypes that the checkpoint stores.
type Options struct {
	Device    string             // "cpu", or empty for it; "xla-cpu", "tpu", "cuda" and other PJRT plugins, with ":N" for the Nth device
	Mode      engine.Mode        // when recorded operations become programs; see package engine
	DType     tensor.DType       // of all floating-point parameters; Invalid keeps what each component stores
	Quantize  string             // "int8" computes the linear layers of transformer and T5 in 8 bits: faster, half the memory, not the same picture
	Variant   string             // of the weight files, such as "fp16"
	LoRAs     []LoRA             // adapters; Request.LoRAWeights changes their strengths without loading again
	Scheduler string             // Diffusers' class name; empty takes the checkpoint's
	Threads   int                // of the CPU device; 0 means all that the process may use
	CPUISA    string             // forces an instruction-set level, see package backend/cpu/isa
	Trace     *timeline.Recorder // of what host and device do; nil for none
	Warn      func(string)       // told what the user should know; nil drops it
}

// loaders are the pipelines that can be loaded, by the class in model_index.json.
var loaders = map[string]func(*pipeline.Folder, pipeline.Options) (loaded, error){
	flux.Class: func(f *pipeline.Folder, o pipeline.Options) (loaded, error) { return flux.Load(f, o) },
}

// loaded is a pipeline that counts the weights it has read.
type loaded interface {
	pipeline.Pipeline
	BytesRead() int64
}

// PipelineClasses lists the pipelines that Load knows, by Diffusers' names.
func PipelineClasses() []string {
	names := make([]string, 0, len(loaders))
	for n := range loaders {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Pipeline is a loaded checkpoint on a device.
type Pipeline struct {
	loaded
	client backend.Client
	eng    *engine.Engine
	load   time.Duration
}

// Load opens a Diffusers folder. Weights are mapped, and read when they are first used.
func Load(ctx context.Context, dir string, o Options) (*Pipeline, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	folder, err := pipeline.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	load, ok := loaders[folder.Class]
	if !ok {
		return nil, fmt.Errorf("%s: pipeline class %q is not supported (known: %s)", dir, folder.Class, strings.Join(PipelineClasses(), ", "))
	}
	if o.Quantize != "" && o.Quantize != pipeline.Int8 {
		return nil, fmt.Errorf("quantize %q is not supported (known: %s)", o.Quantize, pipeline.Int8)
	}
	client, ordinal, err := openDevice(ctx, o)
	if err != nil {
		return nil, err
	}
	eng := engine.New(client, engine.Options{Mode: o.Mode, Device: ordinal, Trace: o.Trace})
	p, err := load(folder, pipeline.Options{Engine: eng, DType: o.DType, Quantize: o.Quantize, Variant: o.Variant, LoRAs: o.LoRAs, Scheduler: o.Scheduler, Warn: o.Warn})
	if err != nil {
		client.Close()
		return nil, err
	}
	return &Pipeline{loaded: p, client: client, eng: eng, load: time.Since(start)}, nil
}

// CheckDevice says why Load could not open o's device, as far as is known without opening it: before a download, say.
func CheckDevice(ctx context.Context, o Options) error {
	if o.onCPU() {
		_, err := isa.Choose(o.CPUISA)
		return err
	}
	return platform.Default().Check(ctx, o.Device)
}

// onCPU reports whether o names the CPU device.
func (o Options) onCPU() bool { return o.Device == "" || o.Device == "cpu" || o.Device == "cpu:0" }

// openDevice starts the backend that o names, and returns which of its devices is meant.
func openDevice(ctx context.Context, o Options) (backend.Client, int, error) {
	if o.onCPU() {
		c, err := cpu.New(cpu.Options{ISA: o.CPUISA, Threads: o.Threads})
		return c, 0, err
	}
	c, ordinal, err := platform.Default().Open(ctx, o.Device)
	if err != nil {
		return nil, 0, err
	}
	return c, ordinal, nil
}

// Platform is a kind of device that Options.Device can name.
type Platform struct {
	Name    string           // such as "cpu" or "tpu"
	Plugin  string           // versions of what drives it, empty for Gesso's own and for what can't be loaded
	Path    string           // where the plugin lies
	Devices []backend.Device // numbered from 0
	Err     error            // why there are none
}

// Platforms lists the devices of this machine, and why others can't be used. Only o's options for the CPU matter.
func Platforms(ctx context.Context, o Options) []Platform {
	var all []Platform
	p := Platform{Name: "cpu"}
	if c, err := cpu.New(cpu.Options{ISA: o.CPUISA, Threads: o.Threads}); err != nil {
		p.Err = err
	} else {
		p.Devices = c.Devices()
		c.Close()
	}
	all = append(all, p)
	for _, s := range platform.Default().List(ctx) {
		all = append(all, Platform(s))
	}
	return all
}

// Stats is what a pipeline has done since it was loaded.
type Stats struct {
	engine.Snapshot
	LoadSeconds float64 `json:"load_seconds"`
	WeightBytes int64   `json:"weight_bytes_read"` // of weights used so far, as stored
}

// Stats returns the statistics so far.
func (p *Pipeline) Stats() Stats {
	return Stats{Snapshot: p.eng.Stats(), LoadSeconds: p.load.Seconds(), WeightBytes: p.BytesRead()}
}

// SetTap makes fn see every value that a model's layers report under their Diffusers names, for comparing two
// implementations; nil turns it off. It must not be called while Generate runs.
func (p *Pipeline) SetTap(fn func(name string, v engine.Value)) { p.eng.SetTap(fn) }

// Close waits for what has been issued, and frees everything that the pipeline holds.
func (p *Pipeline) Close() error {
	_ = p.eng.Sync() // programs that still run read the mapped weights; their errors have reached whoever read a result
	err := p.loaded.Close()
	if cerr := p.client.Close(); err == nil {
		err = cerr
	}
	return err
}
