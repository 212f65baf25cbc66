package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gesso-go/gesso/hub"
)

// showRef prints what a repository, or a local folder, holds. It downloads no weights: of these it reads the headers.
func showRef(ctx context.Context, env *environment, reference string) error {
	local, err := localPath(reference)
	if err != nil {
		return err
	}
	var cfg hub.Config // which a folder needs not
	if !local {
		if cfg, err = hub.ConfigFromEnv(env.getenv); err != nil {
			return err
		}
		cfg.Warn = func(s string) { env.notef("warning: %s", s) }
		if _, err := hub.ParseRef(reference, cfg.Endpoint); err != nil {
			return fmt.Errorf("no such file, and %w", err)
		}
	}
	waits := newTransfers(env, false)
	d, err := hub.Describe(ctx, cfg, reference, hub.Options{Progress: waits.update})
	waits.close()
	if err != nil {
		return orFolder(reference, err)
	}
	what := "repository"
	if local {
		what = "folder"
	}
	w := tabwriter.NewWriter(env.text(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s:\t%s\n", what, d.Name)
	if d.Commit != "" {
		fmt.Fprintf(w, "commit:\t%s\n", d.Commit)
	}
	fmt.Fprintf(w, "class:\t%s\n", orUnknown(d.Class))
	fmt.Fprintf(w, "licence:\t%s\n", orUnknown(d.License))
	fmt.Fprintf(w, "size:\t%s in %d files", sizeText(d.Size), d.Files)
	if d.Commit != "" {
		fmt.Fprintf(w, ", %s of it in the cache", sizeText(d.Cached))
	}
	fmt.Fprintf(w, "\n\nCOMPONENT\tCLASS\tPARAMETERS\tTYPES\tSIZE\n")
	for _, c := range d.Components {
		name, class := c.Name, c.Class
		if name == "" {
			name = "."
		}
		if c.Library != "" {
			class = c.Library + "." + class
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, orUnknown(class), parameters(c), dtypes(c), sizeText(c.Size))
	}
	return w.Flush()
}

// orUnknown is a text of the model's author as one cell.
func orUnknown(s string) string {
	if s == "" {
		return "not stated"
	}
	return cell.Replace(s)
}

// cell keeps a text from making further cells and lines.
var cell = strings.NewReplacer("\n", `\n`, "\t", `\t`, "\v", `\v`, "\f", `\f`)

func parameters(c hub.Component) string {
	switch n := float64(c.Parameters); {
	case c.Parameters == 0 && c.Unread > 0:
		return "not read"
	case c.Parameters == 0:
		return "-"
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", n/1e6)
	}
	return fmt.Sprint(c.Parameters)
}

// dtypes names the types of the stored tensors, the most used one first.
func dtypes(c hub.Component) string {
	if len(c.DTypes) == 0 {
		return "-"
	}
	names := slices.SortedFunc(maps.Keys(c.DTypes), func(a, b string) int {
		if c.DTypes[a] != c.DTypes[b] {
			return int(min(max(c.DTypes[b]-c.DTypes[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	return cell.Replace(strings.Join(names, " "))
}
