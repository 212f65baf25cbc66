package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/imageio"
	"github.com/spf13/cobra"
)

func newShowCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "show FILE.png|REF",
		Short: "Print what a picture carries, or what a model is made of",
		Long: `Print the parameters that a picture carries, or of a model on the Hub or in a folder: pipeline class, components,
parameters, types, sizes, licence. Of weights only the headers are read.`,
		Args: exactArgs(1, "one picture or model"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && !info.IsDir() || strings.HasSuffix(strings.ToLower(args[0]), ".png") && !strings.Contains(args[0], "://") {
				return showPicture(env, args[0])
			}
			return showRef(cmd.Context(), env, args[0])
		},
	}
}

// showPicture prints a PNG's parameters: ours as a list, other programs' texts as they are.
func showPicture(env *environment, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	texts, err := imageio.ReadText(f)
	if err != nil {
		return fmt.Errorf("%s: %w (show takes a picture in PNG, a model's folder, or a repository)", path, err)
	}
	if len(texts) == 0 {
		return fmt.Errorf("%s carries no parameters", path)
	}
	for _, t := range texts {
		var fields map[string]any
		if t.Key != parametersKey || json.Unmarshal([]byte(t.Value), &fields) != nil {
			if err := env.printf("%s: %s\n", t.Key, t.Value); err != nil {
				return err
			}
			continue
		}
		d := json.NewDecoder(strings.NewReader(t.Value))
		d.UseNumber() // a seed has 64 bits
		if err := d.Decode(&fields); err != nil {
			return err
		}
		keys := make([]string, 0, len(fields))
		for k := range fields {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			if err := env.printf("%s: %v\n", k, fields[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

func newVersionCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = " " + s.Value[:min(12, len(s.Value))]
					}
				}
			}
			return env.printf("gesso %s%s %s/%s %s\n", gesso.Version, revision, runtime.GOOS, runtime.GOARCH, runtime.Version())
		},
	}
}
