package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/demo"
	"github.com/gesso-go/gesso/imageio"
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
	for flag, path := range map[string]string{"output": o.paths[0], "dump": f.dump, "stats": f.stats} {
		if path == "" {
			continue
		}
		if err := writable(path); err != nil {
			return nil, fmt.Errorf("--%s %s: %w", flag, path, err)
		}
	}
	return o, nil
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

// writable says why a file cannot be written to path; it leaves nothing behind.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("is a folder")
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("there is no folder %s", dir)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	t, err := os.CreateTemp(dir, ".gesso-*")
	if err != nil {
		return fmt.Errorf("folder %s cannot be written to: %w", dir, errors.Unwrap(err))
	}
	t.Close()
	return os.Remove(t.Name())
}

// picture is what a PNG carries about itself, and what --json prints.
type picture struct {
	Path     string   `json:"path,omitempty"`
	Prompt   string   `json:"prompt"`
	Prompt2  string   `json:"prompt_2,omitempty"`
	Negative string   `json:"negative_prompt,omitempty"`
	Seed     uint64   `json:"seed"`
	Model    string   `json:"model"`
	Repo     string   `json:"repository,omitempty"` // on the Hub, and its commit
	Commit   string   `json:"commit,omitempty"`
	Pipeline string   `json:"pipeline"`
	Width    int      `json:"width"`
	Height   int      `json:"height"`
	Steps    int      `json:"steps"`
	Guidance *float64 `json:"guidance,omitempty"`
	TrueCFG  float64  `json:"true_cfg_scale,omitempty"`
	LoRAs    []string `json:"loras,omitempty"`
	Image    string   `json:"image,omitempty"`
	Mask     string   `json:"mask,omitempty"`
	Strength float64  `json:"strength,omitempty"`
	DType    string   `json:"dtype,omitempty"`
	Version  string   `json:"version"`
}

// previewColumns is how wide a picture is drawn in a terminal that only knows text.
const previewColumns = 64

// parametersKey is the PNG text that holds a picture's parameters as JSON.
const parametersKey = "gesso"

func (o *outputs) write(env *environment, f *generateFlags, from source, prompt string, pipe *gesso.Pipeline, res *gesso.Result) error {
	all := make([]picture, len(res.Images))
	for i, img := range res.Images {
		p := picture{
			Path: o.paths[i], Prompt: prompt, Prompt2: f.prompt2, Negative: f.negative, Seed: res.Seeds[i], Model: cmp.Or(f.model, demo.Name),
			Pipeline: pipe.Class(), Width: res.Width, Height: res.Height, Steps: res.Steps, TrueCFG: f.trueCFG, DType: f.dtype, LoRAs: f.loras, Image: f.image, Mask: f.mask, Strength: f.strength,
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
		b, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return err
		}
		return env.printf("%s\n", b)
	}
	for _, p := range all {
		if err := env.printf("%s\n", p.Path); err != nil {
			return err
		}
	}
	return nil
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
