package main

import (
	"cmp"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/spf13/cobra"
)

func newPluginCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Add, list or remove PJRT plugins",
		Long: `A PJRT plugin is the shared library that drives a kind of device: libtpu for TPUs, XLA's for processors and GPUs.
None comes with Gesso. Python's packages have them, and no Python is needed:

  pip download --no-deps libtpu && gesso plugin add libtpu-*.whl`,
		Args: exactArgs(0, "a command: add, ls or rm"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPluginAddCommand(env), newPluginListCommand(env), newPluginRmCommand(env))
	return cmd
}

// finder looks at this machine with the environment's cache folder.
func (env *environment) finder() *platform.Finder {
	f := platform.Default()
	f.CacheDir = env.cacheDir()
	return f
}

func newPluginAddCommand(env *environment) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "add FILE.whl|FILE.so",
		Short: "Copy a plugin out of a Python wheel, or a shared library, into the cache folder",
		Long: `Copy a plugin into the cache folder, where every gesso finds it. It is tried in a process of its own first, and its
versions and licence are shown. The licence is the plugin's, not Gesso's.`,
		Args: exactArgs(1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := env.finder().Add(cmd.Context(), args[0], name)
			if err != nil {
				return err
			}
			env.notef("%s for --device %s: %s, licence: %s", cmp.Or(in.Package, in.File), in.Platform, in.Plugin, licence(in))
			return env.println(in.Path)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the device's name, where the file's name doesn't tell: tpu, cuda, xla-cpu or one of your own")
	return cmd
}

func licence(in platform.Installed) string { return cmp.Or(in.License, "not stated") }

func newPluginListCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the plugins in the cache folder; gesso devices shows those elsewhere too",
		Args:  exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			all, err := env.finder().Installed()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(env, all)
			}
			w := tabwriter.NewWriter(env.text(), 0, 0, 2, ' ', 0)
			for _, in := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", in.Platform, in.File, cmp.Or(in.Plugin, "not tried yet"), sizeText(in.Size), licence(in))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the plugins as JSON")
	return cmd
}

func newPluginRmCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove plugins from the cache folder, by the file names that gesso plugin ls shows",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes one or more names", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, name := range args {
				in, err := env.finder().Remove(name)
				if err == nil {
					env.notef("removed %s, %s", in.Path, sizeText(in.Size))
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
}
