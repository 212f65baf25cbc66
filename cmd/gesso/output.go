package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/demo"
	"github.com/gesso-go/gesso/imageio"
	"github.com/gesso-go/gesso/internal/outfile"
	"github.com/gesso-go/gesso/preview"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// outputs are the files that a run will write.
type outputs struct {
	paths []string
}

// newOutputs names the files before anything is computed, and says at once what could not be written.
func newOutputs(f *generateFlags, seeds []uint64) (*outputs, error) {
	name := f.output
	if name == "" {
		name = fmt.Sprintf("gesso-%d.png", seeds[0])
	}
	if _, err := imageio.FormatOf(name); err != nil {
		return nil, usagef("--output %s: %w", name, err)
	}
	o := &outputs{}
	for i := range seeds {
		o.paths = append(o.paths, numbered(name, i, len(seeds)))
	}
	files := []outputFile{}
	for _, path := range o.paths {
		files = append(files, outputFile{"output", path})
	}
	return o, checkOutputs(append(files, outputFile{"dump", f.dump}, outputFile{"trace", f.trace}, outputFile{"stats", f.stats}))
}

// outputFile is a file that a flag names; no path if the flag is absent.
type outputFile struct{ flag, path string }

// checkOutputs says which file cannot be written, or would overwrite another.
func checkOutputs(files []outputFile) error {
	seen := map[string]outputFile{}
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if err := outfile.Check(f.path); err != nil {
			return fmt.Errorf("--%s: %w", f.flag, err)
		}
		target, err := outfile.Target(f.path)
		if err != nil {
			return fmt.Errorf("--%s: %w", f.flag, err)
		}
		if first, ok := seen[target]; ok && target != "" {
			return usagef("--%s %s and --%s %s are the same file: give each a name of its own", first.flag, first.path, f.flag, f.path)
		}
		seen[target] = f
	}
	return nil
}

// numbered puts a picture's number (from 0) in place of %d, or before the extension when there are several.
func numbered(name string, i, n int) string {
	if strings.Contains(name, "%d") {
		return strings.Replace(name, "%d", strconv.Itoa(i), 1)
	}
	if n == 1 {
		return name
	}
	ext := filepath.Ext(name)
	return strings.TrimSuffix(name, ext) + "-" + strconv.Itoa(i) + ext
}

// picture is what a PNG carries about itself, and what --json prints.
type picture struct {
	Path      string    `json:"path,omitempty"`
	Prompt    string    `json:"prompt"`
	Prompt2   *string   `json:"prompt_2,omitempty"`
	Negative  *string   `json:"negative_prompt,omitempty"` // nil if not given: an empty one turns true CFG on too
	Seed      uint64    `json:"seed"`
	Model     string    `json:"model"`
	Repo      string    `json:"repository,omitempty"` // on the Hub, and its commit
	Commit    string    `json:"commit,omitempty"`
	Pipeline  string    `json:"pipeline"`
	Width     int       `json:"width"`
	Height    int       `json:"height"`
	Steps     int       `json:"steps"`
	Guidance  *float64  `json:"guidance,omitempty"`
	TrueCFG   float64   `json:"true_cfg_scale,omitempty"`
	LoRAs     []string  `json:"loras,omitempty"`
	Image     string    `json:"image,omitempty"`
	Mask      string    `json:"mask,omitempty"`
	Strength  float64   `json:"strength,omitempty"`
	DType     string    `json:"dtype,omitempty"`
	Negative2 *string   `json:"negative_prompt_2,omitempty"`
	Sigmas    []float64 `json:"sigmas,omitempty"`
	MaxLength int       `json:"max_sequence_length,omitempty"`
	Tiling    bool      `json:"vae_tiling,omitempty"`
	Quantize  string    `json:"quantize,omitempty"`
	Scheduler string    `json:"scheduler,omitempty"`
	Variant   string    `json:"variant,omitempty"`
	Version   string    `json:"version"`
}

// previewColumns is how wide a picture is drawn in a terminal that only knows text.
const previewColumns = 64

// parametersKey is the PNG text that holds a picture's parameters as JSON.
const parametersKey = "gesso"

func (o *outputs) write(env *environment, f *generateFlags, from source, req *gesso.Request, pipe *gesso.Pipeline, res *gesso.Result) error {
	all := make([]picture, len(res.Images))
	for i, img := range res.Images {
		p := picture{
			Path: o.paths[i], Prompt: req.Prompts[0], Prompt2: first(req.Prompts2), Negative: first(req.NegativePrompts), Negative2: first(req.NegativePrompt2),
			Seed: res.Seeds[i], Model: cmp.Or(f.model, demo.Name), Pipeline: pipe.Class(), Width: res.Width, Height: res.Height, Steps: res.Asked, TrueCFG: f.trueCFG, DType: f.dtype, LoRAs: f.loras, Image: f.image, Mask: f.mask, Strength: res.Strength,
			Sigmas: f.sigmas, MaxLength: f.maxLength, Tiling: f.tiling, Quantize: f.quantize, Scheduler: f.scheduler, Variant: f.variant,
			Repo: from.repository, Commit: from.commit, Version: gesso.Version,
		}
		if !math.IsNaN(res.Guidance) {
			p.Guidance = &res.Guidance
		}
		all[i] = p
		p.Path = ""
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		err = imageio.WriteFile(o.paths[i], img, imageio.Options{Text: []imageio.Text{
			{Key: "Software", Value: "Gesso " + gesso.Version}, {Key: parametersKey, Value: string(text)},
		}})
		if err != nil {
			return err
		}
		if !f.quiet && len(all) > 1 {
			env.notef("%s: seed %d", o.paths[i], p.Seed)
		}
		if f.show {
			if err := preview.Write(env.stderr, img, preview.Detect(env.getenv), previewColumns); err != nil {
				return err
			}
		}
	}
	if f.asJSON {
		return printJSON(env, all)
	}
	for _, p := range all {
		if err := env.println(p.Path); err != nil {
			return err
		}
	}
	return nil
}

// first returns the text that a flag was given, if it was.
func first(texts []string) *string {
	if len(texts) == 0 {
		return nil
	}
	return &texts[0]
}

// dumper collects stages for --dump.
type dumper struct {
	names  []string
	arrays map[string]*tensor.Array
}

func (d *dumper) add(name string, a *tensor.Array) {
	if d.arrays == nil {
		d.arrays = map[string]*tensor.Array{}
	}
	if _, again := d.arrays[name]; !again {
		d.names = append(d.names, name)
	}
	d.arrays[name] = a
}

func (d *dumper) save(path string) error {
	return weights.Save(path, d.arrays, map[string]string{"format": "pt", "producer": "gesso " + gesso.Version})
}
