package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/hub"
	"github.com/gesso-go/gesso/plan"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// planFlags say which generation is planned or compiled.
type planFlags struct {
	model, revision          string
	device, dtype, mode      string
	height, width, steps     int
	images, length, workers  int
	trueCFG                  float64
	vaeTiling, plain, asJSON bool
	placement                plan.Placement
}

func (f *planFlags) register(s *pflag.FlagSet) {
	s.StringVar(&f.model, "model", "", "Diffusers folder or Hub repository; its configurations are enough")
	s.StringVar(&f.revision, "revision", "", "branch, tag or commit of the repository")
	s.StringVar(&f.device, "device", "tpu:v6e:1x1", "topologies of TPUs, such as tpu:v6e:2x2; separated by commas")
	s.StringVar(&f.dtype, "dtype", "bf16", "compute in f32, bf16 or f16")
	s.StringVar(&f.mode, "mode", "fused", "fused (a program for each class of blocks) or compiled (a program for each model)")
	s.IntVar(&f.height, "height", 0, "pixels (default: the model's)")
	s.IntVar(&f.width, "width", 0, "pixels (default: the model's)")
	s.IntVar(&f.steps, "steps", 0, "steps of a picture (default 28)")
	s.IntVar(&f.images, "num-images", 1, "pictures at a time")
	s.IntVar(&f.length, "max-sequence-length", 0, "tokens of the long text encoder (default: the pipeline's)")
	s.Float64Var(&f.trueCFG, "true-cfg-scale", 0, "above 1: with a negative prompt")
	s.BoolVar(&f.vaeTiling, "vae-tiling", false, "decode in tiles")
	s.IntVar(&f.workers, "workers", 0, "programs compiled at a time (default: one for each processor)")
	s.BoolVar(&f.plain, "no-kernels", false, "compile without Gesso's own kernels")
	s.BoolVar(&f.asJSON, "json", false, "print the figures as JSON")
}

// options checks the flags. The devices are in the order of --device.
func (f *planFlags) options() (o gesso.PlanOptions, devices []string, err error) {
	if f.model == "" {
		return o, nil, usagef("--model is missing")
	}
	for _, d := range strings.Split(f.device, ",") {
		if d = strings.TrimSpace(d); !strings.HasPrefix(d, "tpu:") {
			d = "tpu:" + d
		}
		if _, err := plan.ParseTopology(strings.TrimPrefix(d, "tpu:")); err != nil {
			return o, nil, usagef("--device: %w", err)
		}
		devices = append(devices, d)
	}
	d, err := tensor.ParseDType(f.dtype)
	if err != nil || (d != tensor.F32 && d != tensor.BF16 && d != tensor.F16) {
		return o, nil, usagef("--dtype %s: expected f32, bf16 or f16", f.dtype)
	}
	mode, err := engine.ParseMode(f.mode)
	if err != nil || (mode != engine.Fused && mode != engine.Compiled) {
		return o, nil, usagef("--mode %s: expected fused or compiled", f.mode)
	}
	for name, v := range map[string]int{"height": f.height, "width": f.width, "steps": f.steps, "max-sequence-length": f.length, "workers": f.workers} {
		if v < 0 {
			return o, nil, usagef("--%s %d: must not be negative", name, v)
		}
	}
	if err := f.placement.Check(); err != nil {
		return o, nil, usageError{err}
	}
	if f.images < 1 || f.images > maxImages {
		return o, nil, usagef("--num-images %d: must be from 1 to %d", f.images, maxImages)
	}
	o = gesso.PlanOptions{Plain: f.plain, Workers: f.workers, Request: plan.Request{
		Height: f.height, Width: f.width, Steps: f.steps, Images: f.images, MaxSequenceLength: f.length, TrueCFGScale: f.trueCFG,
		DType: d, Mode: mode, VAETiling: f.vaeTiling, Placement: f.placement,
	}}
	return o, devices, nil
}

// resolve returns the model's folder. Of a repository only the configurations are fetched.
func (f *planFlags) resolve(ctx context.Context, env *environment) (string, error) {
	local, err := localPath(f.model)
	if err != nil {
		return "", fmt.Errorf("--model: %w", err)
	}
	if local {
		return f.model, nil
	}
	cfg, ref, err := hubConfig(env, f.model, f.revision, false)
	if err != nil {
		return "", fmt.Errorf("--model: %w", err)
	}
	r, err := hub.Pull(ctx, cfg, f.model, hub.Options{Revision: f.revision, Include: []string{"*.json"}})
	if err != nil {
		return "", orFolder(f.model, err)
	}
	return filepath.Join(r.Dir, filepath.FromSlash(ref.Path)), nil
}

// each plans the generation for one device after another, compiling into cache, and calls do with what came of each.
func (f *planFlags) each(ctx context.Context, env *environment, cache *diskcache.Cache, do func(device string, r *plan.Report, programs []*plan.Compiled, took time.Duration) error) error {
	o, devices, err := f.options()
	if err != nil {
		return err
	}
	dir, err := f.resolve(ctx, env)
	if err != nil {
		return err
	}
	o.Finder, o.Cache = env.finder(), cache
	for _, d := range devices {
		start := time.Now()
		o.Device, o.Progress = d, env.compileProgress(d)
		r, programs, err := gesso.Plan(ctx, dir, o)
		if err != nil {
			return err
		}
		if err := do(d, r, programs, time.Since(start)); err != nil {
			return err
		}
	}
	return nil
}

// compileProgress writes a line for each program.
func (env *environment) compileProgress(device string) func(plan.Progress) {
	return func(p plan.Progress) {
		how := fmt.Sprintf("%.1f s", p.Seconds)
		if p.Cached {
			how = "from the cache"
		}
		env.notef("%s: %d/%d %s, %s", device, p.Done, p.Total, p.Program, how)
	}
}

func newPlanCommand(env *environment) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan --model REF|DIR --device tpu:v6e:1x1,tpu:v5p:2x2x1",
		Short: "Say whether a model fits TPUs and how fast it would be, without either",
		Long: `Compiles every program of a generation for TPUs that this machine needn't have, and shows what the compiler says: memory of
each program, whether all fits the device and what would make it fit, and an estimate of the time. The model's config.json
files are enough; no weight is read. The compiler is libtpu (see gesso plugin). What was compiled stays in the cache, and is
what a TPU host with the same libtpu loads. With --tp the programs are those of devices that share each weight, without Gesso's
kernels. --offload and the placements that the answer names are estimates: generate has neither yet.`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var reports []*plan.Report
			err := f.each(cmd.Context(), env, env.finder().Programs(), func(_ string, r *plan.Report, _ []*plan.Compiled, _ time.Duration) error {
				reports = append(reports, r)
				if f.asJSON {
					return nil
				}
				return printReport(env, r)
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(env, reports)
			}
			return nil
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&f.placement.Offload, "offload", "", "judge with one model, or one block, at a time on the device: model or block (an estimate)")
	cmd.Flags().IntVar(&f.placement.TP, "tp", 1, "compile programs that divide each weight among so many devices, and judge those")
	return cmd
}

func printReport(env *environment, r *plan.Report) error {
	kernels := "with Gesso's kernels"
	if !r.Kernels {
		kernels = "without kernels"
	}
	if err := env.printf("\n%s: %d × %s, %s each, %s; %d×%d, %d steps\n\n", r.Topology, r.Devices, r.Chip, sizeText(r.Memory), kernels, r.Height, r.Width, r.Steps); err != nil {
		return err
	}
	w := tabwriter.NewWriter(env.text(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "component\tparameters\tweights\tlargest program beside weights\t")
	for _, c := range r.Components {
		fmt.Fprintf(w, "%s\t%.2f B\t%s\t%s\t\n", c.Name, float64(c.Params)/1e9, sizeText(c.Weights), sizeText(c.Working))
	}
	fmt.Fprintln(w, "\t\t\t\t")
	if err := w.Flush(); err != nil {
		return err
	}
	w = tabwriter.NewWriter(env.text(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "program\truns\targuments\tresults\tof these in place\ttemporaries\tpeak\tTFLOP\tHBM traffic\testimate\t")
	for _, p := range r.Programs {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%.3f\t%s\t%.2f ms\t\n", p.Name, p.Runs, sizeText(p.Arguments), sizeText(p.Outputs),
			sizeText(p.Alias), sizeText(p.Temporary), sizeText(p.Peak),
			p.Flops/1e12, sizeText(p.HBM), p.Seconds*1e3)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range r.Problems {
		if err := env.printf("\nnot compiled: %s\n", p); err != nil {
			return err
		}
	}
	verdict := fmt.Sprintf("\n%s: fits: %s of %s needed", r.Placement, sizeText(r.Need), sizeText(r.Memory))
	if !r.Fits {
		verdict = fmt.Sprintf("\n%s: does not fit: %s of %s needed; smallest change: %s", r.Placement, sizeText(r.Need), sizeText(r.Memory), r.Change)
	}
	if err := env.printf("%s\n", verdict); err != nil {
		return err
	}
	for _, c := range r.Choices {
		fits := "fits"
		if !c.Fits {
			fits = "does not fit"
		}
		if c.Estimate {
			fits += " (estimate; generate has no such placement yet)"
		}
		if err := env.printf("  %s: weights %s, in all %s a device, %s\n", c.Change, sizeText(c.Weights), sizeText(c.Need), fits); err != nil {
			return err
		}
	}
	return env.printf("estimate: %.0f ms a step, %.2f s a picture (%s; no device has run it)\n", r.StepSeconds*1e3, r.PictureSeconds, r.Formula)
}

func newCompileCommand(env *environment) *cobra.Command {
	var f planFlags
	var output string
	cmd := &cobra.Command{
		Use:   "compile --model REF|DIR --device tpu:v6e:2x2",
		Short: "Compile a model's programs for TPUs that this machine needn't have",
		Long: `Compiles every program of a generation of the given size into the cache, or with --output into a folder: a bundle, which
gesso cache add puts into the cache of a TPU host. The host needs the same libtpu. The model's config.json files are enough.`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, _, err := f.options() // before a folder is made
			if err != nil {
				return err
			}
			var cache *diskcache.Cache
			if cmd.Flags().Changed("output") {
				if cache, err = diskcache.Bundle(output); err != nil {
					return fmt.Errorf("--output: %w", err)
				}
			} else if cache, err = env.finder().Programs().Strict(); err != nil {
				return fmt.Errorf("cache: %w", err)
			}
			var all []compiledSummary
			err = f.each(cmd.Context(), env, cache, func(device string, r *plan.Report, programs []*plan.Compiled, took time.Duration) error {
				if len(r.Problems) > 0 {
					return fmt.Errorf("%d of %d programs are missing: %s", len(r.Problems), len(programs), r.Problems[0])
				}
				s := compiledSummary{Device: device, Programs: len(programs), Cached: r.Cached, Seconds: took.Seconds()}
				for _, p := range programs {
					s.Bytes += int64(len(p.Data))
				}
				all = append(all, s)
				if f.asJSON {
					return nil
				}
				return env.printf("%s: %d programs, %d from the cache, %s, %.1f s, in %s\n", device, s.Programs, s.Cached, sizeText(s.Bytes), s.Seconds, cache.Dir())
			})
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(env, all)
			}
			return nil
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&output, "output", "", "folder to compile into, in place of the cache")
	return cmd
}

// compiledSummary is what gesso compile --json says of a device.
type compiledSummary struct {
	Device   string  `json:"device"`
	Programs int     `json:"programs"`
	Cached   int     `json:"cached"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
}

func newCacheAddCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "add BUNDLE",
		Short: "Put the programs of a bundle that gesso compile made into the cache",
		Args:  exactArgs(1, "a folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := env.finder().Programs().Import(args[0])
			if err != nil {
				return err
			}
			env.notef("%d programs", n)
			return nil
		},
	}
}
