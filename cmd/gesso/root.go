package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/spf13/cobra"
)

// goNames are what flags' errors say of the function that found them.
var goNames = regexp.MustCompile(`strconv\.\w+: parsing ("[^"]*"|\S+): `)

// newRootCommand returns the command tree.
func newRootCommand(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "gesso",
		Short:         "Make pictures with diffusion models",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q; see gesso help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if _, err := platform.CacheLimit(env.getenv("GESSO_CACHE_LIMIT")); err != nil {
				return usageError{err}
			}
			return nil
		},
	}
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetIn(env.stdin)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s; see %s --help", goNames.ReplaceAllString(err.Error(), ""), cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newGenerateCommand(env),
		newPullCommand(env),
		newListCommand(env),
		newRmCommand(env),
		newXetCommand(env),
		newVerifyCommand(env),
		newBenchCommand(env),
		newShowCommand(env),
		newDevicesCommand(env),
		newPluginCommand(env),
		newPlanCommand(env),
		newCompileCommand(env),
		newCacheCommand(env),
		newVersionCommand(env),
	)
	return root
}

// exactArgs asks for n positional arguments, described by what.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s, got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// text is stdout for what a person reads: it shows control characters as escapes.
func (env *environment) text() io.Writer { return harmlessWriter{env.stdout} }

// printf writes text to stdout; a failed write is an error of the command.
func (env *environment) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(env.text(), format, args...)
	return err
}

// println writes a line to stdout as it is: a path, or JSON, which programs read.
func (env *environment) println(line string) error {
	_, err := fmt.Fprintln(env.stdout, line)
	return err
}

// notef writes a remark to stderr.
func (env *environment) notef(format string, args ...any) {
	fmt.Fprintln(env.stderr, harmless(fmt.Sprintf(format, args...)))
}

// cacheDir is where files go that can be made again: GESSO_CACHE, or the system's place for such.
func (env *environment) cacheDir() string {
	if dir := env.getenv("GESSO_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "gesso")
	}
	return filepath.Join(os.TempDir(), "gesso")
}

// printJSON writes v as JSON over several lines.
func printJSON(env *environment, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return env.println(string(b))
}

// printJSONLine writes v as one line of JSON.
func printJSONLine(env *environment, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return env.println(string(b))
}
