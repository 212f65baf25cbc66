package main

import (
	"strings"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/bench/peak"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
)

func newBenchPeakCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "peak",
		Short: "Measure how much arithmetic this machine can do",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			force := env.getenv("GESSO_CPU_ISA")
			level, err := isa.Choose(force)
			if err != nil {
				return err
			}
			c, err := cpu.New(cpu.Options{ISA: force})
			if err != nil {
				return err
			}
			defer c.Close()
			dev := c.Devices()[0]
			if err := env.printf("%s, %s, %.0f GB memory\n", strings.TrimSpace(dev.Kind), dev.Detail, float64(dev.Memory)/1e9); err != nil {
				return err
			}
			for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.I8} {
				if err := env.printf("peak %s: %.0f GFLOP/s\n", d, peak.Measure(level, d, c.Threads())/1e9); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
