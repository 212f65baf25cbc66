package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/bench/step"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
)

func newBenchCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time this machine",
		Args:  exactArgs(0, "a command: step or start"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchStepCommand(env), newBenchStartCommand(env))
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
	var asJSON bool
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
			o.DType, o.Mode, o.ISA = load.DType, load.Mode, load.CPUISA
			if o.DType == tensor.Invalid {
				o.DType = tensor.BF16
			}
			o.MinTime = time.Duration(seconds * float64(time.Second))
			return runBenchStep(cmd.Context(), env, o, profile, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Arch, "arch", "flux1", "network or component: "+strings.Join(step.Archs(), ", "))
	f.StringVar(&o.Layers, "layers", "all", "repeated blocks of each kind, such as 4+8, or all")
	f.IntVar(&o.Height, "height", 1024, "height in pixels")
	f.IntVar(&o.Width, "width", 1024, "width in pixels")
	f.IntVar(&o.Batch, "batch", 1, "rows of one call")
	f.IntVar(&o.Threads, "threads", 0, "threads (default: all)")
	f.Float64Var(&seconds, "seconds", 5, "time steps for so long, after a warm-up and at least three of them")
	f.StringVar(&profile, "profile", "", "write a CPU profile of the timed steps to FILE")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	m.register(f)
	f.Lookup("dtype").Usage = "compute in f32, bf16 or f16 (default bf16)"
	return cmd
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
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return env.printf("%s\n", b)
	}
	return env.printf(`%s %s layers, %dx%d, batch %d, %d tokens, %s %s, %s, %d threads, %s
%.3f s/step (median of %d; best %.3f, first %.3f, processor %.3f), %d programs
%.1f GFLOP/step, %.1f GFLOP/s, %.0f %% of %.1f GFLOP/s peak
%.2f G parameters, %.2f GB peak resident
`, r.Arch, r.Layers, r.Width, r.Height, r.Batch, r.Tokens, r.DType, r.Mode, r.ISA, r.Threads, r.Device,
		r.Seconds, r.Steps, r.Best, r.First, r.CPUSeconds, r.Programs,
		r.GFLOP, r.GFLOPS, r.PercentOfPeak, r.PeakGFLOPS,
		float64(r.Parameters)/1e9, float64(r.PeakResident)/1e9)
}

// startRuns is how often bench start starts a process.
const startRuns = 7

func newBenchStartCommand(env *environment) *cobra.Command {
	var asJSON, once bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Time from the start of a process to its first operation",
		Args:  exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if once {
				return firstOperation(env)
			}
			return runBenchStart(cmd.Context(), env, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	cmd.Flags().BoolVar(&once, "once", false, "do one operation and say so")
	_ = cmd.Flags().MarkHidden("once")
	return cmd
}

// ready is what a process says after its first operation.
const ready = "ready"

// firstOperation adds two numbers on the device.
func firstOperation(env *environment) error {
	client, err := cpu.New(cpu.Options{ISA: env.getenv("GESSO_CPU_ISA")})
	if err != nil {
		return err
	}
	defer client.Close()
	x := engine.New(client, engine.Options{}).Upload(tensor.FromFloat32([]float32{20, 1}, 2))
	a, err := x.Add(x).Read()
	if err != nil {
		return err
	}
	if got := a.Float32s(); got[0] != 40 || got[1] != 2 {
		return fmt.Errorf("[20 1] + [20 1] gave %v", got)
	}
	return env.printf("%s\n", ready)
}

func runBenchStart(ctx context.Context, env *environment, asJSON bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var times []float64
	for range startRuns {
		t, err := timeStart(ctx, env, self)
		if err != nil {
			return err
		}
		times = append(times, t)
	}
	slices.Sort(times)
	if asJSON {
		return env.printf("{\"start_seconds\":%.4f,\"best_seconds\":%.4f,\"runs\":%d}\n", times[startRuns/2], times[0], startRuns)
	}
	return env.printf("%.1f ms from process start to first operation (median of %d, best %.1f)\n",
		1e3*times[startRuns/2], startRuns, 1e3*times[0])
}

// timeStart returns the seconds from starting a process to its first operation.
func timeStart(ctx context.Context, env *environment, self string) (float64, error) {
	cmd := exec.CommandContext(ctx, self, "bench", "start", "--once")
	cmd.Stderr = env.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	start := env.now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := env.now().Sub(start).Seconds()
	if werr := cmd.Wait(); werr != nil {
		return 0, fmt.Errorf("%s: %w", self, errors.Join(err, werr))
	}
	if strings.TrimSpace(line) != ready {
		return 0, fmt.Errorf("%s bench start --once said %q, expected %q", self, strings.TrimSpace(line), ready)
	}
	return took, nil
}
