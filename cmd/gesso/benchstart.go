package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
)

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
