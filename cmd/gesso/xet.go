package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gesso-go/gesso/hub/xet"
	"github.com/spf13/cobra"
)

func newXetCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "xet",
		Short: "Tools for the Hub's Xet storage",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "hash FILE...",
		Short: "Print the Xet hashes of files",
		Long:  `Print the Xet hash of each file, as the Hub shows it for large files. FILE "-" reads standard input.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes one or more files", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, path := range args {
				h, err := xetHash(cmd.Context(), env, path)
				if err != nil {
					return err
				}
				if err := env.println(fmt.Sprintf("%s  %s", h, path)); err != nil {
					return err
				}
			}
			return nil
		},
	})
	return cmd
}

func xetHash(ctx context.Context, env *environment, path string) (xet.Hash, error) {
	var r io.Reader = env.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return xet.Hash{}, err
		}
		defer f.Close()
		r = f
	}
	h, _, err := xet.Sum(contextReader{ctx, r})
	if err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
