// Package verify proves that an installation computes what Diffusers computes: it runs reference cases, which hold every
// stage of a run of the real library, and compares tensor by tensor.
//
//	cases, err := verify.Open("golden")
//	for _, c := range cases {
//		fmt.Println(c.Run(ctx, verify.Options{}))
//	}
//
// A folder of cases is laid out as cases/NAME/{case.json, tensors.safetensors, image_i.png} beside checkpoints/NAME;
// one folder of cases/ will do too.
package verify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/internal/jsonwords"
	"github.com/gesso-go/gesso/pipeline/flux"
	"github.com/gesso-go/gesso/tensor"
)

// Case is one case.json. Options that this version doesn't know make a case unsupported.
type Case struct {
	Name        string                `json:"name"`
	Checkpoint  string                `json:"checkpoint"`
	Pipeline    string                `json:"pipeline"`
	DType       string                `json:"dtype"`
	Variant     string                `json:"variant"`
	Trace       bool                  `json:"trace"`
	VAETiling   bool                  `json:"vae_tiling"`
	VAESlicing  bool                  `json:"vae_slicing"`
	LoRA        string                `json:"lora"` // in inputs/ beside checkpoints/
	ExpectError string                `json:"expect_error"`
	Differences map[string]Difference `json:"differences"`
	Recorded    Recorded              `json:"recorded"`

	call call
	dir  string // of the case
	top  string // folder that holds checkpoints/
	why  string // why the case is not supported, "" if it is
}

// Difference is how far legal runs of the reference differ from one another in one tensor.
type Difference struct {
	AbsMax    float64  `json:"absmax"`
	OneThread *float64 `json:"vs_1_thread"`
	NoOneDNN  *float64 `json:"vs_no_onednn"`
	Float64   *float64 `json:"vs_float64"`
}

// Recorded is what the reference noted about its run.
type Recorded struct {
	Duplicates map[string]string `json:"duplicates_not_stored"` // tensor → the stored one with the same content
}

// call is the pipeline's arguments.
type call struct {
	Prompt    texts    `json:"prompt"`
	Prompt2   texts    `json:"prompt_2"`
	Negative  texts    `json:"negative_prompt"`
	Negative2 texts    `json:"negative_prompt_2"`
	Height    int      `json:"height"`
	Width     int      `json:"width"`
	Steps     int      `json:"num_inference_steps"`
	Guidance  *float64 `json:"guidance_scale"`
	TrueCFG   float64  `json:"true_cfg_scale"`
	MaxLength int      `json:"max_sequence_length"`
	PerPrompt int      `json:"num_images_per_prompt"`
	Output    string   `json:"output_type"`
	Sigmas    []float64
	Timesteps []float64
	Generator struct {
		Seed  *int64  `json:"seed"`
		Seeds []int64 `json:"seeds"`
	} `json:"generator"`
	Image     *file   `json:"image"`
	Mask      *file   `json:"mask_image"`
	Strength  float64 `json:"strength"`
	Attention struct {
		Scale *float64 `json:"scale"` // of the LoRA
	} `json:"joint_attention_kwargs"`
}

// known are the arguments that Run passes on, and settings the options that it honours.
var (
	known = []string{"prompt", "prompt_2", "negative_prompt", "negative_prompt_2", "height", "width", "num_inference_steps", "guidance_scale",
		"true_cfg_scale", "max_sequence_length", "num_images_per_prompt", "output_type", "sigmas", "timesteps", "generator", "joint_attention_kwargs"}
	knownWithImage = []string{"image", "mask_image", "strength"}
	unsupported    = []string{"scheduler", "override", "drop", "controlnet"}
)

// fromImage are Diffusers' classes that start from a picture: here they are requests with an image.
var fromImage = map[string]string{"FluxImg2ImgPipeline": flux.Class, "FluxInpaintPipeline": flux.Class}

// file is a picture among the inputs.
type file struct {
	Name  string `json:"image"`
	times int    // how often a list repeats it
}

// UnmarshalJSON also takes a list of one picture repeated: a request has one for all that it makes.
func (f *file) UnmarshalJSON(b []byte) error {
	type plain file
	var list []plain
	if json.Unmarshal(b, &list) != nil {
		return json.Unmarshal(b, (*plain)(f))
	}
	for _, x := range list {
		if x != list[0] {
			return errors.New("several pictures to start from are not supported")
		}
		*f = file(x)
	}
	f.times = len(list)
	return nil
}

// texts is one string or a list of them.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// Open finds the cases in dir, sorted by name.
func Open(dir string) ([]*Case, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s: no such folder: expected one that holds cases/ and checkpoints/, such as testdata/golden of Gesso's source, or one case", dir)
	}
	if c, err := openCase(dir, filepath.Dir(filepath.Dir(filepath.Clean(dir)))); err == nil || !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, err
		}
		return []*Case{c}, nil
	}
	root := filepath.Join(dir, "cases")
	top := dir
	if _, err := os.Stat(root); err != nil {
		root, top = dir, filepath.Dir(filepath.Clean(dir)) // the folder cases/ itself
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var cases []*Case
	for _, e := range entries {
		c, err := openCase(filepath.Join(root, e.Name()), top)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no case
		}
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s: no reference cases (folders with a case.json)", dir)
	}
	return cases, nil
}

func openCase(dir, top string) (*Case, error) {
	path := filepath.Join(dir, "case.json")
	b, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "not a directory") {
			return nil, fs.ErrNotExist
		}
		return nil, err
	}
	c := &Case{dir: dir, top: top}
	var raw struct {
		Call json.RawMessage `json:"call"`
	}
	var all map[string]json.RawMessage
	for _, v := range []any{c, &raw, &all} {
		if err := json.Unmarshal(b, v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, jsonwords.Explain(b, err))
		}
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal(raw.Call, &args); err != nil {
		return nil, fmt.Errorf("%s: key \"call\": %w", path, jsonwords.Explain(raw.Call, err))
	}
	c.why = c.unsupported(all, args)
	if c.why == "" {
		if err := json.Unmarshal(raw.Call, &c.call); err != nil {
			return nil, fmt.Errorf("%s: key \"call\": %w", path, jsonwords.Explain(raw.Call, err))
		}
	}
	return c, nil
}

// unsupported says why this version cannot run the case.
func (c *Case) unsupported(options, args map[string]json.RawMessage) string {
	class, image := fromImage[c.Pipeline]
	if !slices.Contains(gesso.PipelineClasses(), cmp.Or(class, c.Pipeline)) {
		return c.Pipeline
	}
	for _, o := range unsupported {
		if v, ok := options[o]; ok && string(v) != "null" && string(v) != "false" {
			return "option " + o
		}
	}
	for a := range args {
		if !slices.Contains(known, a) && !(image && slices.Contains(knownWithImage, a)) {
			return "argument " + a
		}
	}
	return ""
}

// dtype returns the case's dtype.
func (c *Case) dtype() (tensor.DType, error) { return tensor.ParseDType(c.DType) }

// Tolerances. Source: the reference data's notes; see docs/design.md.
const (
	tolF32  = 1e-4 // absolute, everywhere
	tolBF16 = 0.06 // at least; or 4 times what legal runs of the reference differ by
	tolF16  = 0.01
	spread  = 4
)

// exact reports tensors that must agree in every bit: ids, masks, schedules, noise, pictures as they enter the encoder.
func (c *Case) exact(name string) bool {
	switch name {
	case "sigmas", "timesteps", "text_ids", "negative_text_ids", "prepare_latents.out1", "prepare_latents.out3", "prepare_mask_latents.out0",
		"vae.encode0.in", "vae.encode1.in":
		return true
	case "latents.initial":
		return c.call.Image == nil // which adds what the encoder computes
	}
	for _, s := range []string{".input_ids", ".attention_mask", "_ids"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// tolerance returns the largest absolute difference allowed for a tensor whose largest element is absMax.
func (c *Case) tolerance(name string, d tensor.DType, absMax float64) float64 {
	if c.exact(name) {
		return 0
	}
	floor, ulps := tolF32, 0.0
	switch d {
	case tensor.BF16:
		floor, ulps = tolBF16, 2.0/(1<<7)
	case tensor.F16:
		floor, ulps = tolF16, 2.0/(1<<10)
	default:
		return floor
	}
	worst := 0.0
	note := func(x Difference) {
		for _, v := range []*float64{x.OneThread, x.NoOneDNN} {
			if v != nil {
				worst = max(worst, spread**v)
			}
		}
	}
	if x, ok := c.Differences[name]; ok {
		note(x)
	} else {
		// Not measured for this one (a module's output inside a model, say): what the run's others differ by, and two
		// units in the last place at its own scale.
		for _, x := range c.Differences {
			note(x)
		}
		worst = max(worst, ulps*absMax)
	}
	return max(floor, worst)
}
