package main

import (
	"context"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/bench/dispatch"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/spf13/cobra"
)

func newBenchDispatchCommand(env *environment) *cobra.Command {
	var device, trace string
	var o dispatch.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "dispatch",
		Short: "Time what strict mode adds to an operation, and show that it doesn't wait",
		Long: `Time chains of small operations on the plugin alone and through Gesso, in turns; then issue dependent operations of a
millisecond each, and tell how many had finished when all were issued.`,
		Args: exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDevice(device); err != nil {
				return err
			}
			return runBenchDispatch(cmd.Context(), env, device, trace, o, asJSON)
		},
	}
	cmd.Flags().StringVar(&device, "device", "cpu", deviceHelp)
	cmd.Flags().StringVar(&trace, "trace", "", "write a trace of the operations of a millisecond to FILE.json")
	cmd.Flags().IntVar(&o.Ops, "ops", 1000, "operations of a millisecond to issue")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

func runBenchDispatch(ctx context.Context, env *environment, device, trace string, o dispatch.Options, asJSON bool) error {
	var client backend.Client
	var chain dispatch.Chain
	if err := checkDevice(device); err != nil {
		return err
	}
	name, ordinal, err := platform.ParseDevice(device)
	if err != nil {
		return err
	}
	if name == "cpu" {
		client, err = cpu.New(cpu.Options{ISA: env.getenv("GESSO_CPU_ISA")})
	} else {
		f := platform.Default()
		if client, ordinal, err = f.Open(ctx, device); err == nil && name == "xla-cpu" { // a chip has room for one client
			path, ferr := f.Find(name)
			if ferr != nil {
				return ferr
			}
			var stop func() error
			if chain, stop, err = dispatch.Plugin(path); err == nil {
				defer stop()
			}
		}
	}
	if err != nil {
		return err
	}
	defer client.Close()
	cost, err := dispatch.Overhead(client, ordinal, chain, o)
	if err != nil {
		return err
	}
	if trace != "" {
		o.Trace = timeline.New()
	}
	async, err := dispatch.Asynchronous(client, ordinal, o)
	if err != nil {
		return err
	}
	if trace != "" {
		if err := writeTrace(trace, o.Trace); err != nil {
			return err
		}
	}
	if asJSON {
		return printJSONLine(env, struct {
			*dispatch.Cost
			Asynchronous *dispatch.Async `json:"asynchronous"`
		}{cost, async})
	}
	if chain != nil {
		if err := env.printf("%.2f µs an operation on the plugin alone; Gesso adds %.2f µs in strict mode\n", cost.Plugin, cost.Overhead); err != nil {
			return err
		}
	}
	return env.printf(`%.2f µs an operation through the backend, %.2f µs in strict mode, of which the caller waits %.2f µs
%d dependent operations of %.2f ms: issued in %.1f ms, when %d had finished
`, cost.Backend, cost.Strict, cost.Issue, async.Ops, 1e3*async.OpSeconds, 1e3*async.IssueSeconds, async.FinishedWhenIssued)
}
