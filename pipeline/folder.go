package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/jsonwords"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// IndexFile describes a pipeline: its class and its components.
const IndexFile = "model_index.json"

// Folder is a Diffusers repository on disk.
type Folder struct {
	Dir        string
	Class      string               // _class_name
	Components map[string]Component // by name; a component that is [null, null] is left out
}

// Component is one entry of model_index.json.
type Component struct{ Library, Class string }

// OpenFolder reads dir/model_index.json.
func OpenFolder(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such folder", dir)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s: not a folder; a model is a Diffusers folder with %s", dir, IndexFile)
	}
	path := filepath.Join(dir, IndexFile)
	var raw map[string]json.RawMessage
	if err := ReadJSON(path, &raw); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no %s, so this is not a Diffusers pipeline", dir, IndexFile)
		}
		return nil, err
	}
	f := &Folder{Dir: dir, Components: map[string]Component{}}
	for key, v := range raw {
		if key == "_class_name" {
			if json.Unmarshal(v, &f.Class) != nil {
				return nil, fmt.Errorf("%s: key \"_class_name\" must be a string", path)
			}
			continue
		}
		var pair []*string
		if strings.HasPrefix(key, "_") || json.Unmarshal(v, &pair) != nil || len(pair) != 2 {
			continue // a setting of the pipeline
		}
		if pair[0] != nil && pair[1] != nil {
			f.Components[key] = Component{*pair[0], *pair[1]}
		}
	}
	if f.Class == "" {
		return nil, fmt.Errorf("%s: key \"_class_name\" is missing", path)
	}
	return f, nil
}

// Path returns the folder of a component.
func (f *Folder) Path(component string) string { return filepath.Join(f.Dir, component) }

// Require returns an error unless the component is there with one of the given classes.
func (f *Folder) Require(component string, classes ...string) error {
	c, ok := f.Components[component]
	if !ok {
		return fmt.Errorf("%s: %s has no component %q, which %s needs", f.Dir, IndexFile, component, f.Class)
	}
	for _, want := range classes {
		if c.Class == want {
			return nil
		}
	}
	return fmt.Errorf("%s: component %q is a %s, which is not supported (known: %s)",
		filepath.Join(f.Dir, IndexFile), component, c.Class, strings.Join(classes, ", "))
}

// ReadJSON decodes a file into v. Unknown keys are ignored; an error names the file and the key or the place.
func ReadJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, jsonwords.Explain(b, err))
	}
	return nil
}

// Config is a component's configuration after decoding.
type Config interface{ Validate() error }

// ReadConfig decodes a component's config.json over the defaults that v holds, and validates it.
func (f *Folder) ReadConfig(component string, v Config) error {
	path := filepath.Join(f.Path(component), "config.json")
	if err := ReadJSON(path, v); err != nil {
		return err
	}
	if err := v.Validate(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Weights are a component's bound parameters.
type Weights struct {
	*placement.Resident
	ckpt  *weights.Checkpoint
	DType tensor.DType // of the component: what it computes in
}

// Bind opens the weights of a component and binds model to them. DType Invalid takes the type that most of the stored
// parameters have.
func (f *Folder) Bind(e *engine.Engine, o Options, component string, model any, p placement.Options, ignore ...string) (*Weights, error) {
	if o.Abstract != nil {
		return bindAbstract(e, o, component, model, p)
	}
	ckpt, err := weights.Open(f.Path(component), weights.Options{Variant: o.Variant})
	if err != nil {
		return nil, err
	}
	if o.Warn != nil {
		for _, w := range ckpt.Warnings {
			o.Warn(w)
		}
	}
	p.DType = o.DType
	if p.DType == tensor.Invalid {
		p.DType = storedType(ckpt)
	}
	r := placement.NewResident(e, ckpt, p)
	if err := nn.Bind(model, r, component, ignore...); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Path(component), err), ckpt.Close())
	}
	return &Weights{Resident: r, ckpt: ckpt, DType: p.DType}, nil
}

// storedType is the floating-point type with the most bytes; 8-bit types, which nothing computes in, count as bf16.
func storedType(c *weights.Checkpoint) tensor.DType {
	best, bytes := tensor.F32, int64(-1)
	for d, n := range c.DTypes() {
		if d.IsFloat() && n.Bytes > bytes {
			best, bytes = d, n.Bytes
		}
	}
	switch best {
	case tensor.F8E4M3, tensor.F8E5M2:
		return tensor.BF16
	case tensor.F64:
		return tensor.F32
	}
	return best
}

// Close frees the parameters and closes the files.
func (w *Weights) Close() error {
	if w == nil {
		return nil
	}
	w.Resident.Close()
	if w.ckpt == nil {
		return nil
	}
	return w.ckpt.Close()
}
