package main

import (
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/gesso-go/gesso/verify"
	"github.com/spf13/cobra"
)

func newVerifyCommand(env *environment) *cobra.Command {
	var m modelFlags
	var filter, dumpDir string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Compare this installation with reference runs of Diffusers",
		Long: `Run reference cases and compare every stored tensor with what is computed here.

DIR holds cases/ and checkpoints/, or is one case. One line is printed for each case with its worst tensor.`,
		Args: exactArgs(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd.Context(), env, &m, args[0], filter, dumpDir)
		},
	}
	cmd.Flags().StringVar(&filter, "filter", "", "run only the cases whose name matches this regular expression")
	cmd.Flags().StringVar(&dumpDir, "dump-dir", "", "write what was computed to DIR/NAME.safetensors")
	cmd.Flags().StringVar(&m.device, "device", "cpu", deviceHelp)
	m.registerQuantize(cmd.Flags())
	cmd.Flags().StringVar(&m.mode, "mode", "", "strict, fused or compiled (default: strict, or GESSO_MODE)")
	return cmd
}

func runVerify(ctx context.Context, env *environment, m *modelFlags, dir, filter, dumpDir string) error {
	re, err := regexp.Compile(filter)
	if err != nil {
		return usagef("--filter: %w", err)
	}
	o := verify.Options{DumpDir: dumpDir}
	if o.Load, err = m.options(env); err != nil {
		return err
	}
	if dumpDir != "" {
		if err := os.MkdirAll(dumpDir, 0o755); err != nil {
			return err
		}
	}
	cases, err := verify.Open(dir)
	if err != nil {
		return err
	}
	count := map[verify.Status]int{}
	for _, c := range cases {
		if !re.MatchString(c.Name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		out := c.Run(ctx, o)
		count[out.Status]++
		if err := env.printf("%s\n", out); err != nil {
			return err
		}
	}
	passed, failed, skipped := count[verify.Passed], count[verify.Failed], count[verify.Unsupported]
	if passed+failed+skipped == 0 {
		return fmt.Errorf("no case in %s matches %q", dir, filter)
	}
	if err := env.printf("%d passed, %d failed, %d not supported\n", passed, failed, skipped); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases are outside tolerance", failed, passed+failed)
	}
	return nil
}
