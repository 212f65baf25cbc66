package main

import (
	"bufio"
	"context"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/gesso-go/gesso/bench/step"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
)

func newBenchCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time this machine",
		Args:  exactArgs(0, "a command: step, kernel, start, dispatch, peak or quantize"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchStepCommand(env), newBenchKernelCommand(env), newBenchStartCommand(env), newBenchDispatchCommand(env), newBenchPeakCommand(env), newBenchQuantizeCommand(env))
	return cmd
}

// benchStep is what gesso bench step prints.
type benchStep struct {
	*step.Result
	PeakResident int64 `json:"peak_resident_bytes"` // 0 where the system doesn't tell
}

func newBenchStepCommand(env *environment) *cobra.Command {
	var m modelFlags
	var o step.Options
	var asJSON, turns bool
	var seconds float64
	var profile string
	cmd := &cobra.Command{
		Use:   "step",
		Short: "Time one denoising step of a network with random weights",
		Long: `Time one denoising step of a network at its real dimensions. The weights are random and made in memory, so no
checkpoint is needed. The model's own code runs, as in gesso generate.`,
		Args: exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			load, err := m.options(env)
			if err != nil {
				return err
			}
			o.DType, o.Mode, o.ISA, o.Quantize = load.DType, load.Mode, load.CPUISA, load.Quantize != ""
			if o.DType == tensor.Invalid {
				o.DType = tensor.BF16
			}
			o.MinTime = time.Duration(seconds * float64(time.Second))
			if turns {
				o.Turn = takeTurns(env)
			}
			return runBenchStep(cmd.Context(), env, o, profile, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Arch, "arch", "flux1", "network or component: "+strings.Join(step.Archs(), ", "))
	f.StringVar(&o.Layers, "layers", "all", "repeated blocks of each kind, such as 4+8, or all")
	f.IntVar(&o.Height, "height", 1024, "height in pixels")
	f.IntVar(&o.Width, "width", 1024, "width in pixels")
	f.IntVar(&o.Batch, "batch", 1, "rows of one call")
	f.StringVar(&o.Weights, "weights", "", "folder with a transformer's checkpoint, in place of random weights")
	f.IntVar(&o.Text, "text", 0, "tokens of the prompt (default: the pipeline's)")
	f.IntVar(&o.Threads, "threads", 0, "threads (default: all)")
	f.Float64Var(&seconds, "seconds", 5, "time steps for so long, after a warm-up and at least three of them")
	f.StringVar(&profile, "profile", "", "write a CPU profile of the timed steps to FILE")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	f.BoolVar(&turns, "turns", false, "do one step for each line of standard input, so that programs that are compared take turns")
	m.register(f)
	f.Lookup("dtype").Usage = "compute in f32, bf16 or f16 (default bf16)"
	return cmd
}

// takeTurns reads a line before each step and says how long the step before took.
func takeTurns(env *environment) func(last float64) bool {
	lines := bufio.NewScanner(env.stdin)
	first := true
	return func(last float64) bool {
		if first {
			_ = env.printf("%s\n", ready)
		} else {
			_ = env.printf("%.6f\n", last)
		}
		first = false
		return lines.Scan()
	}
}

func runBenchStep(ctx context.Context, env *environment, o step.Options, profile string, asJSON bool) (err error) {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		o.OnWarm = func() { _ = pprof.StartCPUProfile(f) }
		defer pprof.StopCPUProfile()
	}
	res, err := step.Run(ctx, o)
	if err != nil {
		return err
	}
	r := benchStep{res, peakResident()}
	if asJSON {
		return printJSONLine(env, r)
	}
	dtype := r.DType
	if r.Quantized {
		dtype += " with int8"
	}
	return env.printf(`%s %s layers, %dx%d, batch %d, %d tokens, %s %s, %s, %d threads, %s
%.3f s/step (median of %d; best %.3f, first %.3f, processor %.3f), %d programs
%.1f GFLOP/step, %.1f GFLOP/s, %.0f %% of %.1f GFLOP/s peak
%.2f G parameters, %.2f GB peak resident
`, r.Arch, r.Layers, r.Width, r.Height, r.Batch, r.Tokens, dtype, r.Mode, r.ISA, r.Threads, r.Device,
		r.Seconds, r.Steps, r.Best, r.First, r.CPUSeconds, r.Programs,
		r.GFLOP, r.GFLOPS, r.PercentOfPeak, r.PeakGFLOPS,
		float64(r.Parameters)/1e9, float64(r.PeakResident)/1e9)
}
