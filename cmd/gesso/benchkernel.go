package main

import (
	"regexp"

	"github.com/gesso-go/gesso/bench/kernels"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
)

func newBenchKernelCommand(env *environment) *cobra.Command {
	o := kernels.Options{ISA: env.getenv("GESSO_CPU_ISA")}
	var match string
	var dtypes []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "kernel",
		Short: "Time the operations that models are made of",
		Args:  exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			re, err := regexp.Compile(match)
			if err != nil {
				return usagef("--match: %w", err)
			}
			o.Match = re
			for _, name := range dtypes {
				d, err := tensor.ParseDType(name)
				if err != nil || (d != tensor.F32 && !d.IsHalf()) {
					return usagef("--dtype %s: expected f32, bf16 or f16", name)
				}
				o.DTypes = append(o.DTypes, d)
			}
			rows := 0
			err = kernels.Run(cmd.Context(), o, func(r kernels.Row) error {
				rows++
				if asJSON {
					return printJSONLine(env, r)
				}
				if rows == 1 {
					if err := env.printf("%s\n%-34s %5s %10s %10s %9s %7s\n", r.Device, "operation", "dtype", "median ms", "best ms", "GFLOP/s", "% peak"); err != nil {
						return err
					}
				}
				if r.Percent == 0 {
					return env.printf("%-34s %5s %10.3f %10.3f\n", r.Name, r.DType, r.MS, r.Best)
				}
				return env.printf("%-34s %5s %10.3f %10.3f %9.1f %7.0f\n", r.Name, r.DType, r.MS, r.Best, r.GFLOPS, r.Percent)
			})
			if err == nil && rows == 0 {
				return usagef("--match %s: no operation has such a name", match)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&match, "match", "", "only operations whose name matches this regular expression")
	f.StringSliceVar(&dtypes, "dtype", []string{"f32", "bf16"}, "dtypes, of f32, bf16 and f16")
	f.Float64Var(&o.Seconds, "seconds", 0.5, "time for each operation")
	f.IntVar(&o.Threads, "threads", 0, "threads (default: all)")
	f.BoolVar(&asJSON, "json", false, "print a line of JSON for each operation")
	return cmd
}
