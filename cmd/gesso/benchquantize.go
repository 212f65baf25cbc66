package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/bench/fidelity"
	"github.com/gesso-go/gesso/demo"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
)

// fidelityPrompts are things that the built-in model can draw.
var fidelityPrompts = []string{"red apple", "cat face", "a blue fish", "sun", "tree", "dog face", "pizza", "red heart"}

func newBenchQuantizeCommand(env *environment) *cobra.Command {
	var model, dtype string
	var steps int
	var asJSON, markdown bool
	cmd := &cobra.Command{
		Use:   "quantize [PROMPT...]",
		Short: "Say how far --quantize int8 moves pictures, stage by stage",
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := tensor.ParseDType(dtype)
			if err != nil || (d != tensor.F32 && !d.IsHalf()) {
				return usagef("--dtype %s: expected f32, bf16 or f16", dtype)
			}
			o := fidelity.Options{Dir: model, Prompts: args, Steps: steps, DType: d}
			o.Load.CPUISA = env.getenv("GESSO_CPU_ISA")
			if len(args) == 0 {
				o.Prompts = fidelityPrompts
			}
			if o.Dir == "" {
				if o.Dir, err = demo.Folder(env.cacheDir()); err != nil {
					return err
				}
			}
			r, err := fidelity.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSONLine(env, r)
			}
			return env.printf("%s", fidelityTable(r, cmp.Or(model, demo.Name), dtype, len(o.Prompts), markdown))
		},
	}
	f := cmd.Flags()
	f.StringVar(&model, "model", "", "folder (default: the built-in model)")
	f.StringVar(&dtype, "dtype", "bf16", "what int8 is compared with, and what it leaves")
	f.IntVar(&steps, "steps", 0, "denoising steps (default: the model's)")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.BoolVar(&markdown, "markdown", false, "print the report as a table of Markdown")
	return cmd
}

func fidelityTable(r *fidelity.Report, model, dtype string, prompts int, markdown bool) string {
	var b strings.Builder
	row, head := "%-26s %9.6f %7.1f\n", fmt.Sprintf("%-26s %9s %7s\n", "worst of a stage", "cosine", "PSNR dB")
	if markdown {
		row, head = "| %s | %.6f | %.1f |\n", "| worst of a stage | cosine | PSNR dB |\n|---|---|---|\n"
	}
	b.WriteString(head)
	for _, s := range r.Stages {
		fmt.Fprintf(&b, row, s.Name, s.Cosine, s.PSNR)
	}
	fmt.Fprintf(&b, "\n%s, int8 against %s, %d prompts: pictures differ by %.1f dB PSNR on average, %.1f dB at worst.\n", model, dtype, prompts, r.Picture, r.Worst)
	return b.String()
}
