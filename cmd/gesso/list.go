package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/gesso-go/gesso/hub"
	"github.com/spf13/cobra"
)

func newListCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the models in the cache",
		Args:  exactArgs(0, "no argument"),
		RunE:  func(*cobra.Command, []string) error { return list(env, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print repositories, revisions and sizes as JSON")
	return cmd
}

// cachedRepo is what gesso list --json prints of a repository.
type cachedRepo struct {
	Repository string           `json:"repository"`
	Kind       hub.Kind         `json:"kind"`
	Size       int64            `json:"size"`
	Partial    int64            `json:"partial,omitempty"` // bytes of unfinished downloads
	Revisions  []cachedRevision `json:"revisions"`
}

type cachedRevision struct {
	Commit   string   `json:"commit"`
	Names    []string `json:"names,omitempty"`
	Files    int      `json:"files"`
	Size     int64    `json:"size"`
	Modified string   `json:"modified"`
}

func list(env *environment, asJSON bool) error {
	cfg, err := hub.ConfigFromEnv(env.getenv)
	if err != nil {
		return err
	}
	repos, total, err := hub.List(cfg)
	if err != nil {
		return err
	}
	if asJSON {
		out := struct {
			Folder       string       `json:"folder"`
			Size         int64        `json:"size"`
			Repositories []cachedRepo `json:"repositories"`
		}{cfg.CacheDir, total, []cachedRepo{}}
		for _, r := range repos {
			c := cachedRepo{Repository: r.Ref.Repo, Kind: r.Ref.Kind, Size: r.Size, Partial: r.Partial, Revisions: []cachedRevision{}}
			for _, v := range r.Revisions {
				c.Revisions = append(c.Revisions, cachedRevision{v.Commit, v.Names, v.Files, v.Size, v.Modified.UTC().Format("2006-01-02T15:04:05Z")})
			}
			out.Repositories = append(out.Repositories, c)
		}
		return printJSON(env, out)
	}
	if len(repos) == 0 {
		env.notef("no models in %s", cfg.CacheDir)
		return nil
	}
	w := tabwriter.NewWriter(env.text(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REPOSITORY\tREVISION\tCOMMIT\tSIZE\tFILES\tMODIFIED")
	for _, r := range repos {
		for _, v := range r.Revisions {
			names := strings.Join(v.Names, ",")
			if names == "" {
				names = "-"
			}
			fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\t%d\t%s\n", r.Ref, names, v.Commit, sizeText(v.Size), v.Files, v.Modified.Format("2006-01-02"))
		}
		if r.Partial > 0 || len(r.Revisions) == 0 {
			fmt.Fprintf(w, "%s\t-\t-\t%s\t-\tunfinished\n", r.Ref, sizeText(r.Partial))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return env.printf("%s in %s\n", sizeText(total), cfg.CacheDir)
}
