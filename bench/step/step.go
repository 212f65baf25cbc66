// Package step times one denoising step of a real network at real dimensions, with random weights made in memory.
//
//	r, err := step.Run(ctx, step.Options{Arch: "flux1", Layers: "2,2", Height: 512, Width: 512, DType: tensor.BF16})
//	fmt.Println(r.Seconds, r.PercentOfPeak)
//
// The code that runs is the model's own; only the numbers of its parameters are made up. Operations are counted from the
// programs that the engine compiles, so a new network needs no more than an entry in [Archs].
package step

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/bench/peak"
	"github.com/gesso-go/gesso/bench/random"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// Options say what is timed. Arch must be set; the zero value of the rest is a 1024×1024 picture in f32, all layers.
type Options struct {
	Arch          string       // a key of Archs
	Layers        string       // repeated blocks of each kind, such as "2,2"; "" or "all" for the model's own
	Height, Width int          // of the picture, in pixels
	Batch         int          // rows of one call
	Text          int          // tokens of the prompt; 0 means the pipeline's default
	DType         tensor.DType // F32, BF16 or F16
	Mode          engine.Mode
	Quantize      bool          // linear layers of blocks in 8 bits
	Weights       string        // folder with a transformer's checkpoint, in place of random weights
	Threads       int           // 0 means all
	ISA           string        // forces a level
	MinSteps      int           // timed at least; 0 means 3
	MinTime       time.Duration // steps are timed for at least so long
	OnWarm        func()        // called after the warm-up, when steady state begins; nil for nothing
	// Turn, if set, is asked before each timed step, in place of MinSteps and MinTime; false ends the run. It receives the
	// seconds of the step before, or 0. Programs that are compared take turns with it.
	Turn func(last float64) bool
}

// Result is what a run measured. Times are in seconds, rates in 1e9 operations a second.
type Result struct {
	Arch          string  `json:"arch"`
	Layers        string  `json:"layers"`
	Height        int     `json:"height"`
	Width         int     `json:"width"`
	Batch         int     `json:"batch"`
	Tokens        int     `json:"tokens"` // rows of the joint sequence
	DType         string  `json:"dtype"`
	Quantized     bool    `json:"quantized,omitempty"`
	Mode          string  `json:"mode"`
	ISA           string  `json:"isa"`
	Threads       int     `json:"threads"`
	Device        string  `json:"device"`
	Parameters    int64   `json:"parameters"`
	Steps         int     `json:"steps"`         // timed
	First         float64 `json:"first_seconds"` // the warm-up: compiling, and memory touched first
	Seconds       float64 `json:"seconds"`       // the median
	Best          float64 `json:"best_seconds"`
	CPUSeconds    float64 `json:"cpu_seconds"` // of all threads, for one step; 0 where the system doesn't tell
	GFLOP         float64 `json:"gflop"`       // of products, convolutions and attention in one step
	GFLOPS        float64 `json:"gflops"`      // GFLOP over Seconds
	PeakGFLOPS    float64 `json:"peak_gflops"` // of the machine, see package peak
	PercentOfPeak float64 `json:"percent_of_peak"`
	Programs      int64   `json:"programs"` // started in one step
	Compiles      int64   `json:"compiles"` // in the warm-up
}

// Run measures.
func Run(ctx context.Context, o Options) (*Result, error) {
	o = o.withDefaults()
	client, err := cpu.New(o.client())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	counter := &counter{Client: client}
	eng := engine.New(counter, engine.Options{Mode: o.Mode})
	net, err := o.network()
	if err != nil {
		return nil, err
	}
	params, done, err := o.params(eng, net.model)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := nn.Bind(net.model, params, o.Arch); err != nil {
		return nil, err
	}
	count := int64(0)
	for _, name := range params.Names() {
		shape, _ := params.Shape(name)
		count += int64(shape.Size())
	}
	level, err := isa.Choose(o.ISA)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Arch: o.Arch, Layers: net.layers, Height: o.Height, Width: o.Width, Batch: o.Batch, Tokens: net.tokens,
		DType: o.DType.String(), Quantized: o.Quantize, Mode: o.Mode.String(), ISA: level.String(), Threads: client.Threads(),
		Device: client.Devices()[0].Kind, Parameters: count,
	}
	return r, r.measure(ctx, &o, eng, counter, net)
}

// client returns the client's options. Of random weights only steady state is of interest, in which all of them are packed; a
// checkpoint's first step counts.
func (o *Options) client() cpu.Options {
	c := cpu.Options{ISA: o.ISA, Threads: o.Threads}
	if o.Weights == "" {
		c.Packing = time.Hour
	}
	return c
}

// params returns the parameters of a model: random, or those of a checkpoint.
func (o *Options) params(eng *engine.Engine, model any) (nn.Params, func(), error) {
	var rule func(string) bool
	if o.Quantize {
		rule = nn.Quantizable
	}
	if o.Weights == "" {
		return random.New(o.DType).Params(eng, model, rule), func() {}, nil
	}
	ckpt, err := weights.Open(filepath.Join(o.Weights, "transformer"), weights.Options{})
	if err != nil {
		return nil, nil, err
	}
	params := placement.NewResident(eng, ckpt, placement.Options{DType: o.DType, Quantize: rule})
	return params, func() {
		params.Close()
		ckpt.Close()
	}, nil
}

func (o Options) withDefaults() Options {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.Height, 1024)
	set(&o.Width, 1024)
	set(&o.Batch, 1)
	set(&o.MinSteps, 3)
	if o.DType == tensor.Invalid {
		o.DType = tensor.F32
	}
	return o
}

// measure runs the warm-up and then the timed steps. A step is what a pipeline's is: inputs up, one call, the velocity
// down.
func (r *Result) measure(ctx context.Context, o *Options, eng *engine.Engine, counter *counter, net *network) error {
	fn := eng.Function(o.Arch, net.forward)
	step := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := make([]engine.Value, len(net.inputs))
		for i, a := range net.inputs {
			in[i] = eng.Upload(a)
		}
		out, err := fn.Call(in...)[0].Read()
		if err != nil {
			return err
		}
		if i := out.FirstNonFinite(); i >= 0 {
			return fmt.Errorf("element %d of the result is not finite", i)
		}
		return nil
	}
	start := time.Now()
	if err := step(); err != nil {
		return err
	}
	r.First = time.Since(start).Seconds()
	if o.OnWarm != nil {
		o.OnWarm()
	}
	before, flops := eng.Stats(), counter.flops.Load()
	r.Compiles = before.Compiles
	cpu0 := cpuSeconds()
	var times []float64
	last, begin := 0.0, time.Now()
	another := func() bool {
		if o.Turn != nil {
			return o.Turn(last)
		}
		return len(times) < o.MinSteps || time.Since(begin) < o.MinTime
	}
	for another() {
		start := time.Now()
		if err := step(); err != nil {
			return err
		}
		last = time.Since(start).Seconds()
		times = append(times, last)
	}
	if len(times) == 0 {
		return fmt.Errorf("no step was timed")
	}
	n := float64(len(times))
	r.CPUSeconds = (cpuSeconds() - cpu0) / n
	r.GFLOP = float64(counter.flops.Load()-flops) / n / 1e9
	after := eng.Stats()
	r.Programs = (after.Runs - before.Runs) / int64(len(times))
	slices.Sort(times)
	r.Steps, r.Best, r.Seconds = len(times), times[0], (times[(len(times)-1)/2]+times[len(times)/2])/2
	r.GFLOPS = r.GFLOP / r.Seconds
	level, err := isa.Choose(o.ISA)
	if err != nil {
		return err
	}
	d := o.DType
	if o.Quantize {
		d = tensor.I8
	}
	r.PeakGFLOPS = peak.Measure(level, d, r.Threads) / 1e9
	r.PercentOfPeak = 100 * r.GFLOPS / r.PeakGFLOPS
	return nil
}
