package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/gesso-go/gesso/hub"
	"github.com/spf13/cobra"
)

// pullFlags are the flags of gesso pull.
type pullFlags struct {
	revision, variant     string
	include, exclude      []string
	dryRun, quiet, asJSON bool
}

func newPullCommand(env *environment) *cobra.Command {
	var f pullFlags
	cmd := &cobra.Command{
		Use:   "pull REF",
		Short: "Download a model from the Hugging Face Hub",
		Long: `Download what a pipeline needs of a repository on the Hugging Face Hub, into the cache that Python's tools use too.

REF is org/name, org/name@revision, hf://org/name@revision/path, hf://datasets/org/name, hf://buckets/org/name/prefix, or
an address pasted from a browser. What is there already isn't fetched again, and an interrupted download goes on where it
was. The folder with the files goes to standard output.`,
		Args: exactArgs(1, "one repository"),
		RunE: func(cmd *cobra.Command, args []string) error { return pull(cmd.Context(), env, &f, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.revision, "revision", "", "branch, tag or commit (default main)")
	fl.StringVar(&f.variant, "variant", "", "variant of the weight files, such as fp16")
	fl.StringArrayVar(&f.include, "include", nil, "download the files that match this pattern in place of what a pipeline needs (repeatable)")
	fl.StringArrayVar(&f.exclude, "exclude", nil, "leave out the files that match this pattern (repeatable)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print what would be downloaded, and download nothing")
	fl.BoolVar(&f.asJSON, "json", false, "print folder, commit and files as JSON")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks")
	return cmd
}

// pulled is what gesso pull --json prints.
type pulled struct {
	Repository string     `json:"repository"`
	Commit     string     `json:"commit"`
	Path       string     `json:"path"`
	Size       int64      `json:"size"`     // bytes of all files
	Download   int64      `json:"download"` // of these, what was not in the cache
	Files      []hub.File `json:"files"`
}

func pull(ctx context.Context, env *environment, f *pullFlags, reference string) error {
	cfg, ref, err := hubConfig(env, reference, f.revision, f.quiet)
	if err != nil {
		return err
	}
	bars := newTransfers(env, f.quiet)
	r, err := hub.Pull(ctx, cfg, reference, hub.Options{
		Revision: f.revision, Variant: f.variant, Include: f.include, Exclude: f.exclude, DryRun: f.dryRun, Progress: bars.update,
	})
	bars.close()
	if err != nil {
		return resumable(ctx, err)
	}
	p := pulled{Repository: ref.Repo, Commit: r.Commit, Path: filepath.Join(r.Dir, filepath.FromSlash(ref.Path)), Files: r.Files}
	for _, file := range r.Files {
		p.Size += max(file.Size, 0)
		if !file.Cached {
			p.Download += max(file.Size, 0)
		}
	}
	if !f.dryRun { // what was fetched meanwhile counts as fetched
		p.Download = bars.fetched()
	}
	switch {
	case f.asJSON:
		return printJSON(env, p)
	case f.dryRun:
		for _, file := range p.Files {
			state := "download"
			if file.Cached {
				state = "cached"
			}
			if err := env.printf("%-8s  %10s  %s\n", state, sizeText(file.Size), file.Path); err != nil {
				return err
			}
		}
		return env.printf("%d files, %s, of which %s would be downloaded (commit %.12s)\n", len(p.Files), sizeText(p.Size), sizeText(p.Download), p.Commit)
	}
	return env.println(p.Path)
}

// hubConfig reads the Hub's settings from the environment, and checks the reference with the --revision, if there is one.
func hubConfig(env *environment, reference, revision string, quiet bool) (hub.Config, hub.Ref, error) {
	cfg, err := hub.ConfigFromEnv(env.getenv)
	if err != nil {
		return cfg, hub.Ref{}, err
	}
	if !quiet {
		cfg.Warn = func(s string) { env.notef("warning: %s", s) }
	}
	ref, err := hub.ParseRef(reference, cfg.Endpoint)
	if err == nil {
		ref, err = ref.At(revision)
	}
	if err != nil {
		return cfg, ref, usageError{err}
	}
	return cfg, ref, nil
}

// resumable says what an interrupted download leaves.
func resumable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w; what came so far is kept: run the command again to go on", err)
	}
	return err
}

// sizeText prints a number of bytes for a person, in the decimal units that the Hub shows.
func sizeText(n int64) string {
	switch {
	case n < 0:
		return "?"
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
