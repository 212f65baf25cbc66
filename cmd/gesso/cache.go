package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/spf13/cobra"
)

func newCacheCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show or clear the compiled programs",
		Long: `Programs for PJRT devices are compiled once on a machine and kept in $GESSO_CACHE/executables, normally
~/.cache/gesso/executables. Those that have not been used for the longest time go when the folder grows over
GESSO_CACHE_LIMIT bytes (default 4.3e9).`,
		Args: exactArgs(0, "a command: ls, rm or add"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheListCommand(env), newCacheRmCommand(env), newCacheAddCommand(env))
	return cmd
}

func newCacheListCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the compiled programs, those used last first",
		Args:  exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			c := env.finder().Programs()
			entries, err := c.List()
			if err != nil {
				return err
			}
			var total int64
			for _, e := range entries {
				total += e.Size
			}
			if asJSON {
				return printJSON(env, struct {
					Folder   string            `json:"folder"`
					Size     int64             `json:"size"`
					Limit    int64             `json:"limit"`
					Programs []diskcache.Entry `json:"programs"`
				}{c.Dir(), total, c.Limit(), entries})
			}
			w := tabwriter.NewWriter(env.text(), 0, 0, 2, ' ', 0)
			for _, e := range entries {
				fmt.Fprintf(w, "%.12s\t%s\t%s\t%s\t%s\tcompiled in %.2f s\n", e.Key, e.Name, e.Topology, sizeText(e.Size), e.Used.Format(time.DateTime), e.CompileSeconds)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			env.notef("%d programs, %s of %s, in %s", len(entries), sizeText(total), sizeText(c.Limit()), c.Dir())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print folder, sizes and programs as JSON")
	return cmd
}

func newCacheRmCommand(env *environment) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "rm KEY... | --all",
		Short: "Remove compiled programs, by the keys that gesso cache ls shows",
		Args: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usagef("%s takes keys, or --all", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c := env.finder().Programs()
			if all {
				n, bytes, err := c.Clear()
				env.notef("removed %d programs, %s", n, sizeText(bytes))
				return err
			}
			var errs []error
			for _, key := range args {
				bytes, err := c.Remove(key)
				if err == nil {
					env.notef("removed %s, %s", key, sizeText(bytes))
				}
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove all of them")
	return cmd
}
