package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/demo"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/hub"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/rng"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// generateFlags are the flags of gesso generate.
type generateFlags struct {
	modelFlags
	imageFlags
	model, variant, scheduler      string
	revision                       string
	prompt2, negative, negative2   string
	height, width, steps, images   int
	guidance, trueCFG              float64
	maxLength                      int
	seed, output, dump, stats      string
	trace                          string
	tiling, slicing, quiet, asJSON bool
	show                           bool
	sigmas                         []float64
	loras                          []string
}

func newGenerateCommand(env *environment) *cobra.Command {
	var f generateFlags
	cmd := &cobra.Command{
		Use:   "generate PROMPT",
		Short: "Make a picture from a prompt",
		Long: `Make a picture from a prompt with a Diffusers checkpoint.

PROMPT "-" reads the prompt from standard input. The paths of the pictures go to standard output.`,
		Args: exactArgs(1, "one prompt (in quotes)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return generate(cmd.Context(), env, &f, cmd.Flags(), args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "Diffusers folder, or a repository on the Hugging Face Hub such as org/name, downloaded if need be (default: the small model that ships with Gesso)")
	fl.StringVar(&f.revision, "revision", "", "branch, tag or commit of a repository (default main)")
	fl.StringVar(&f.variant, "variant", "", "variant of the weight files, such as fp16")
	fl.StringVar(&f.scheduler, "scheduler", "", "scheduler class in place of the checkpoint's")
	fl.StringArrayVar(&f.loras, "lora", nil, "FILE or FILE:WEIGHT, a LoRA to apply; FILE may be on the Hub (org/name, hf://org/name/FILE); may be given several times")
	fl.StringVar(&f.prompt2, "prompt-2", "", "prompt of the second text encoder (default: PROMPT)")
	fl.StringVar(&f.negative, "negative-prompt", "", "what the picture should not show; needs --true-cfg-scale above 1")
	fl.StringVar(&f.negative2, "negative-prompt-2", "", "negative prompt of the second text encoder")
	fl.IntVar(&f.height, "height", 0, "height in pixels (default: the model's)")
	fl.IntVar(&f.width, "width", 0, "width in pixels (default: the model's)")
	fl.IntVar(&f.steps, "steps", 0, "denoising steps (default: the model's, mostly 28)")
	fl.Float64Var(&f.guidance, "guidance", 0, "embedded guidance (default: the pipeline's)")
	fl.Float64Var(&f.trueCFG, "true-cfg-scale", 0, "classifier-free guidance with a negative prompt: two evaluations a step")
	fl.StringVar(&f.seed, "seed", "", "seed of the first picture; the next ones count up (default: random, printed)")
	fl.IntVarP(&f.images, "num-images", "n", 1, "number of pictures")
	fl.IntVar(&f.maxLength, "max-sequence-length", 0, "tokens of the long text encoder (default: the pipeline's)")
	fl.Float64SliceVar(&f.sigmas, "sigmas", nil, "noise levels in place of the scheduler's, such as 1,0.7,0.3")
	fl.BoolVar(&f.tiling, "vae-tiling", false, "decode large pictures in tiles")
	fl.BoolVar(&f.slicing, "vae-slicing", false, "decode one picture at a time")
	fl.StringVarP(&f.output, "output", "o", "", "FILE.png or FILE.jpg; %d stands for the picture's number (default gesso-SEED.png)")
	fl.StringVar(&f.dump, "dump", "", "write every stage to FILE.safetensors")
	fl.StringVar(&f.trace, "trace", "", "write when operations were issued and when they ran to FILE.json, for Chrome's tracing page or Perfetto")
	fl.StringVar(&f.stats, "stats", "", "write times, compiles and memory to FILE.json")
	fl.BoolVar(&f.show, "show", false, "show the pictures in the terminal")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks")
	fl.BoolVar(&f.asJSON, "json", false, "print paths and seeds as JSON")
	f.modelFlags.register(fl)
	f.imageFlags.register(fl)
	return cmd
}

// request turns the flags into a request. Flags that were given are checked even where their value is a default.
func (f *generateFlags) request(fl *pflag.FlagSet, prompt string) (gesso.Request, error) {
	r := gesso.Request{
		Prompts: []string{prompt}, Height: f.height, Width: f.width, Steps: f.steps, ImagesPerPrompt: f.images,
		TrueCFGScale: f.trueCFG, MaxSequenceLength: f.maxLength, VAETiling: f.tiling, VAESlicing: f.slicing, Sigmas: f.sigmas,
	}
	for _, c := range []struct {
		flag string
		v    int
	}{{"height", f.height}, {"width", f.width}, {"steps", f.steps}, {"num-images", f.images}, {"max-sequence-length", f.maxLength}} {
		if fl.Changed(c.flag) && c.v < 1 {
			return r, usagef("--%s must be positive, got %d", c.flag, c.v)
		}
	}
	if f.height > pipeline.MaxSide || f.width > pipeline.MaxSide {
		return r, usagef("--height and --width must be at most %d, got %d and %d", pipeline.MaxSide, f.height, f.width)
	}
	if f.steps > pipeline.MaxSteps {
		return r, usagef("--steps must be at most %d, got %d", pipeline.MaxSteps, f.steps)
	}
	if f.images > maxImages {
		return r, usagef("--num-images must be at most %d, got %d", maxImages, f.images)
	}
	if fl.Changed("guidance") {
		r.Guidance = &f.guidance
	}
	if fl.Changed("prompt-2") {
		r.Prompts2 = []string{f.prompt2}
	}
	if fl.Changed("negative-prompt") {
		r.NegativePrompts = []string{f.negative}
	}
	if fl.Changed("negative-prompt-2") {
		r.NegativePrompt2 = []string{f.negative2}
	}
	var seed uint64
	var err error
	if fl.Changed("seed") {
		if seed, err = rng.ParseSeed(f.seed); err != nil {
			return r, usagef("--seed: %w", err)
		}
	} else if seed, err = rng.RandomSeed(nil); err != nil {
		return r, err
	}
	r.Seeds = pipeline.SeedsFrom(seed, f.images)
	return r, nil
}

// maxPrompt is the most bytes of a prompt that are read from standard input.
const maxPrompt = 16 << 20

// maxImages is the most pictures of one run; they are made as one batch.
const maxImages = 1000

func generate(ctx context.Context, env *environment, f *generateFlags, fl *pflag.FlagSet, prompt string) error {
	if prompt == "-" {
		b, err := io.ReadAll(io.LimitReader(env.stdin, maxPrompt+1))
		if err != nil {
			return err
		}
		if len(b) > maxPrompt {
			return usagef("the prompt on standard input is longer than %d bytes", maxPrompt)
		}
		prompt = strings.TrimRight(string(b), "\r\n")
	}
	for flag, value := range map[string]string{"model": f.model, "image": f.image, "mask": f.mask} {
		if fl.Changed(flag) && value == "" {
			return usagef("--%s is empty: name one, or leave the flag out", flag)
		}
	}
	if fl.Changed("revision") && f.model == "" {
		return usagef("--revision needs --model")
	}
	req, err := f.request(fl, prompt)
	if err != nil {
		return err
	}
	if err := f.imageFlags.apply(fl, &req); err != nil {
		return err
	}
	opts, err := f.options(env)
	if err != nil {
		return err
	}
	out, err := newOutputs(f, req.Seeds)
	if err != nil {
		return err
	}
	if err := gesso.CheckDevice(ctx, opts); err != nil { // before anything is downloaded
		return err
	}
	opts.Variant, opts.Scheduler = f.variant, f.scheduler
	if opts.LoRAs, err = parseLoRAs(ctx, env, f.loras, f.quiet); err != nil {
		return err
	}
	if !f.quiet {
		opts.Warn = func(s string) { env.notef("warning: %s", s) }
		req.Warn = opts.Warn
		if !fl.Changed("seed") {
			env.notef("seed %d", req.Seeds[0])
		}
	}
	var dump *dumper
	if f.dump != "" {
		dump = &dumper{}
		req.Dump = dump.add
	}

	if f.trace != "" {
		opts.Trace = timeline.New()
		defer opts.Trace.Close()
	}

	from, err := f.resolve(ctx, env)
	if err != nil {
		return err
	}
	started := env.now()
	pipe, err := gesso.Load(ctx, from.dir, opts)
	if err != nil {
		return err
	}
	defer pipe.Close()
	bar := newProgress(env, f.quiet)
	req.Progress = bar.update
	res, err := pipe.Generate(ctx, req)
	bar.close()
	if err != nil {
		return err
	}
	if err := out.write(env, f, from, &req, pipe, res); err != nil {
		return err
	}
	errs := []error{}
	if dump != nil {
		errs = append(errs, dump.save(f.dump))
	}
	if f.trace != "" {
		errs = append(errs, writeTrace(f.trace, opts.Trace))
	}
	if f.stats != "" {
		errs = append(errs, writeStats(f.stats, pipe, res, opts, env.now().Sub(started)))
	}
	return errors.Join(errs...)
}

// source is where a model's files are, and of which repository and commit they are, if of one.
type source struct{ dir, repository, commit string }

// resolve finds the folder of --model; without the flag, that of the built-in model. What isn't a local path is a
// repository on the Hub: its files come from the cache, and what is missing there is downloaded.
func (f *generateFlags) resolve(ctx context.Context, env *environment) (from source, err error) {
	if f.model == "" {
		from.dir, err = demo.Folder(env.cacheDir())
		return from, err
	}
	local, err := localPath(f.model)
	if err != nil {
		return from, fmt.Errorf("--model: %w", err)
	}
	if local {
		if f.revision != "" {
			return from, usagef("--revision is for repositories, and --model %s is a folder", f.model)
		}
		return source{dir: f.model}, nil
	}
	cfg, ref, err := hubConfig(env, f.model, f.revision, f.quiet)
	if err != nil {
		return from, fmt.Errorf("--model: %w", err)
	}
	bars := newTransfers(env, f.quiet)
	r, err := hub.Pull(ctx, cfg, f.model, hub.Options{Revision: f.revision, Variant: f.variant, Progress: bars.update})
	bars.close()
	if err != nil {
		return from, orFolder(f.model, resumable(ctx, err))
	}
	from = source{dir: filepath.Join(r.Dir, filepath.FromSlash(ref.Path)), repository: ref.Repo, commit: r.Commit}
	if ref.Kind != hub.Model {
		from.repository = hub.Ref{Kind: ref.Kind, Repo: ref.Repo}.String()
	}
	return from, nil
}
