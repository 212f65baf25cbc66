package main

import (
	"fmt"

	"github.com/gesso-go/gesso"
	"github.com/spf13/cobra"
)

func newDevicesCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List the devices of this machine",
		Long: `List the devices of this machine, by the names that --device takes, and why others can't be used.

cpu is built in. xla-cpu, tpu and cuda need a PJRT plugin; GESSO_PLUGIN_NAME=path says where it is, or adds another.`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := gesso.Platforms(cmd.Context(), gesso.Options{CPUISA: env.getenv("GESSO_CPU_ISA")})
			for _, p := range all {
				if p.Name == "cpu" && p.Err != nil {
					return p.Err // a forced instruction set that this machine lacks
				}
				if err := printPlatform(env, p); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// printPlatform writes a line for each device, or one that says why there is none.
func printPlatform(env *environment, p gesso.Platform) error {
	plugin := ""
	if p.Path != "" {
		plugin = "  " + p.Path
	}
	if p.Err != nil {
		if p.Plugin != "" {
			plugin += " (" + p.Plugin + ")"
		}
		return env.printf("%-10s not usable: %s%s\n", p.Name, oneLine(p.Err), plugin)
	}
	for i, d := range p.Devices {
		memory := ""
		if d.Memory > 0 {
			memory = fmt.Sprintf("  %.1f GB", float64(d.Memory)/1e9)
		}
		if err := env.printf("%-10s %s  [%s]%s%s\n", fmt.Sprintf("%s:%d", p.Name, i), d.Kind, d.Detail, memory, plugin); err != nil {
			return err
		}
	}
	return nil
}
