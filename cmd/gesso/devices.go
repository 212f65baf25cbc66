package main

import (
	"fmt"
	"slices"

	"github.com/gesso-go/gesso"
	"github.com/spf13/cobra"
)

func newDevicesCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the devices of this machine",
		Long: `List the devices of this machine, by the names that --device takes, and why others can't be used.

cpu is built in. xla-cpu, tpu and cuda need a PJRT plugin; GESSO_PLUGIN_NAME=path says where it is, or adds another.`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all := gesso.Platforms(cmd.Context(), gesso.Options{CPUISA: env.getenv("GESSO_CPU_ISA")})
			if i := slices.IndexFunc(all, func(p gesso.Platform) bool { return p.Name == "cpu" && p.Err != nil }); i >= 0 {
				return all[i].Err // a forced instruction set that this machine lacks
			}
			if asJSON {
				return printPlatforms(env, all)
			}
			for _, p := range all {
				if err := printPlatform(env, p); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print platforms and devices as JSON")
	return cmd
}

// printPlatforms writes all of them as JSON.
func printPlatforms(env *environment, all []gesso.Platform) error {
	type device struct {
		Device string `json:"device"` // as --device takes it
		Kind   string `json:"kind"`
		Detail string `json:"detail"`
		Memory int64  `json:"memory_bytes"` // 0 if unknown
	}
	type platform struct {
		Name    string   `json:"name"`
		Plugin  string   `json:"plugin,omitempty"`
		Path    string   `json:"path,omitempty"`
		Devices []device `json:"devices"`
		Error   string   `json:"error,omitempty"`
	}
	out := make([]platform, len(all))
	for i, p := range all {
		out[i] = platform{Name: p.Name, Plugin: p.Plugin, Path: p.Path, Devices: []device{}}
		if p.Err != nil {
			out[i].Error = oneLine(p.Err)
			continue
		}
		for n, d := range p.Devices {
			out[i].Devices = append(out[i].Devices, device{fmt.Sprintf("%s:%d", p.Name, n), d.Kind, d.Detail, d.Memory})
		}
	}
	return printJSON(env, out)
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
