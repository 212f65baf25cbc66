package main

import (
	"errors"

	"github.com/gesso-go/gesso/hub"
	"github.com/spf13/cobra"
)

func newRmCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "rm REF...",
		Short: "Remove models from the cache",
		Long: `Remove repositories from the cache: org/name with all its revisions, org/name@revision just that one.
Only what nothing else in the cache uses is freed.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes one or more repositories", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, reference := range args {
				errs = append(errs, remove(env, reference))
			}
			return errors.Join(errs...)
		},
	}
}

func remove(env *environment, reference string) error {
	cfg, _, err := hubConfig(env, reference, "", false)
	if err != nil {
		return err
	}
	r, err := hub.Remove(cfg, reference)
	if err != nil {
		return err
	}
	revisions := "revisions"
	if len(r.Commits) == 1 {
		revisions = "revision"
	}
	return env.printf("%s: removed %d %s, freed %s\n", r.Ref, len(r.Commits), revisions, sizeText(r.Freed))
}
