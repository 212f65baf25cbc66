// Package placement says where parameters live and when they move. It is the only code that does: models see values,
// and a program asks for a parameter's buffer when it runs.
//
//	ckpt, err := weights.Open("FLUX.1-schnell/transformer", weights.Options{})
//	params := placement.NewResident(eng, ckpt, placement.Options{DType: tensor.BF16})
//	err = nn.Bind(model, params, "transformer")
package placement

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// Options say how a checkpoint's tensors become a model's parameters.
type Options struct {
	// DType is the type that floating-point parameters are converted to. Invalid keeps each as it is stored.
	DType tensor.DType
	// Keep, if set, reports parameters that stay in f32 whatever DType is.
	Keep func(name string, d tensor.DType) bool
	// Quantize, if set, reports the weights of linear layers that are rounded to 8 bits when they are placed; see
	// graph.QuantizeRows.
	Quantize func(name string) bool
	// Rename, if set, takes a checkpoint's key to the model's name.
	Rename func(key string) string
	// Alias, if set, gives names under which a tensor is also known when nothing else has them.
	Alias map[string]string
}

// Resident keeps parameters on the device from their first use on. Weights whose stored type is the wanted one are used
// in place where the device is the host: mapped, never copied. It implements nn.Params.
type Resident struct {
	eng    *engine.Engine
	opts   Options
	byName map[string]*weights.Tensor
	bytes  atomic.Int64

	mu        sync.Mutex
	params    []*param
	quantized []*quantized
}

// NewResident returns the parameters of a checkpoint, which must stay open as long as they are used.
func NewResident(e *engine.Engine, ckpt *weights.Checkpoint, opts Options) *Resident {
	r := &Resident{eng: e, opts: opts, byName: make(map[string]*weights.Tensor, ckpt.Len())}
	for t := range ckpt.All() {
		name := t.Name
		if opts.Rename != nil {
			name = opts.Rename(name)
		}
		r.byName[name] = t
	}
	for alias, name := range opts.Alias {
		if t, ok := r.byName[name]; ok {
			r.byName[alias] = t
			delete(r.byName, name)
		}
	}
	return r
}

// Names lists every tensor.
func (r *Resident) Names() []string {
	names := make([]string, 0, len(r.byName))
	for n := range r.byName {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Shape returns the shape of a tensor.
func (r *Resident) Shape(name string) (tensor.Shape, bool) {
	t, ok := r.byName[name]
	if !ok {
		return nil, false
	}
	return t.Shape, true
}

// BytesRead returns how many bytes of weights have been placed so far, as stored.
func (r *Resident) BytesRead() int64 { return r.bytes.Load() }

// Value returns a parameter. Nothing is read before a program needs it.
func (r *Resident) Value(name string) (engine.Value, error) {
	t, ok := r.byName[name]
	if !ok {
		return engine.Value{}, fmt.Errorf("no tensor %s", name)
	}
	d := t.DType
	switch {
	case !d.IsFloat():
		return engine.Value{}, fmt.Errorf("stored as %v in %s, expected floating-point numbers; weights that another program has quantised are not supported", d, filepath.Base(t.Path()))
	case r.opts.Keep != nil && r.opts.Keep(name, r.opts.DType):
		d = tensor.F32
	case r.opts.DType != tensor.Invalid:
		d = r.opts.DType
	}
	p := &param{r: r, t: t, dtype: d}
	r.mu.Lock()
	r.params = append(r.params, p)
	r.mu.Unlock()
	return r.eng.Param(graph.Type{DType: d, Shape: t.Shape}, p), nil
}

// Close frees every parameter's buffer. Values made from it must not be used afterwards.
func (r *Resident) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.params {
		p.free()
	}
	for _, q := range r.quantized {
		q.free()
	}
	r.params, r.quantized = nil, nil
}

// param is one parameter: where it comes from, and its buffer once a program has needed it.
type param struct {
	r     *Resident
	t     *weights.Tensor
	dtype tensor.DType

	mu  sync.Mutex
	buf backend.Buffer
	err error
}

// Buffer places the parameter on the first call.
func (p *param) Buffer() (backend.Buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf != nil || p.err != nil {
		return p.buf, p.err
	}
	p.buf, p.err = p.place()
	return p.buf, p.err
}

func (p *param) place() (backend.Buffer, error) {
	stored := p.t.Array()
	p.r.bytes.Add(int64(len(stored.Data)))
	var buf backend.Buffer
	var err error
	switch {
	case stored.DType == p.dtype:
		buf, err = p.r.eng.UploadMappedParam(stored, p.t.Release)
	case computed(stored.DType) && computed(p.dtype):
		buf, err = p.r.eng.ConvertParam(stored, p.dtype)
	default:
		var a *tensor.Array
		if a, err = stored.Convert(p.dtype); err == nil {
			buf, err = p.r.eng.UploadParam(a)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %s: %w", p.t.Path(), p.t, err)
	}
	if stored.DType != p.dtype {
		p.t.Release() // the copy is what will be used
	}
	return buf, nil
}

// computed reports whether devices compute in d, and so convert it themselves.
func computed(d tensor.DType) bool { return d == tensor.F32 || d.IsHalf() }

func (p *param) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf != nil {
		p.buf.Free()
		p.buf = nil
	}
}
