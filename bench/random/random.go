// Package random makes the parameters of a model of real size, for benchmarks that need no checkpoint.
//
//	w := random.New(tensor.BF16)
//	params := w.Params(eng, m) // implements nn.Params
//	err := nn.Bind(m, params, "transformer")
//
// Numbers are uniform with the variance that keeps activations at their scale. Every parameter is a window on one small
// table of them, so that gigabytes are made as fast as memory is written.
package random

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// tableSize is the number of elements of a table: a prime, so that rows of no weight repeat in step with it.
const tableSize = 1<<20 + 7

// Weights makes parameters of one dtype.
type Weights struct {
	dtype  tensor.DType
	mu     sync.Mutex
	tables map[float32][]byte // by scale
}

// New returns a maker of parameters of dtype d.
func New(d tensor.DType) *Weights { return &Weights{dtype: d, tables: map[float32][]byte{}} }

// Make returns the parameter of that name and shape: ones for the weight of a norm, else numbers of mean 0 and variance
// 1/(inputs of a sum), small ones for a bias.
func (w *Weights) Make(name string, shape tensor.Shape) (*tensor.Array, error) {
	scale := float32(0.02)
	switch {
	case len(shape) > 1:
		scale = float32(1 / math.Sqrt(float64(shape.Size()/max(shape[0], 1))))
	case strings.HasSuffix(name, "weight"):
		scale = 0
	}
	table, err := w.table(scale)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a := tensor.New(w.dtype, shape...)
	h := fnv.New64a()
	h.Write([]byte(name))
	size := w.dtype.Size()
	first := int(h.Sum64()%tableSize) * size
	var wg sync.WaitGroup
	threads := runtime.GOMAXPROCS(0)
	piece := (len(a.Data)/threads/size + 1) * size
	for lo := 0; lo < len(a.Data); lo += piece {
		wg.Go(func() {
			dst := a.Data[lo:min(lo+piece, len(a.Data))]
			for at := (first + lo) % len(table); len(dst) > 0; at = 0 {
				dst = dst[copy(dst, table[at:]):]
			}
		})
	}
	wg.Wait()
	return a, nil
}

// table returns the numbers of one scale; 0 means ones.
func (w *Weights) table(scale float32) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.tables[scale]; t != nil {
		return t, nil
	}
	r := rand.New(rand.NewPCG(1, 2))
	v := make([]float32, tableSize)
	for i := range v {
		v[i] = 1
		if scale != 0 {
			v[i] = scale * 1.7320508 * (2*r.Float32() - 1) // √3: the variance of a uniform number in [-1, 1) is 1/3
		}
	}
	a, err := tensor.FromFloat32(v, tableSize).Convert(w.dtype)
	if err != nil {
		return nil, err
	}
	w.tables[scale] = a.Data
	return a.Data, nil
}

// Params are a model's parameters in memory. It implements nn.Params.
type Params struct {
	w        *Weights
	eng      *engine.Engine
	shapes   map[string]tensor.Shape
	quantize func(name string) bool
}

var _ nn.Quantizer = (*Params)(nil)

// Params returns what the model expects; the weights of linear layers that quantize names, unless it is nil, are in 8 bits.
func (w *Weights) Params(e *engine.Engine, model any, quantize func(name string) bool) *Params {
	if quantize == nil {
		quantize = func(string) bool { return false }
	}
	return &Params{w, e, nn.Shapes(model), quantize}
}

// Names lists the parameters.
func (p *Params) Names() []string { return slices.Sorted(maps.Keys(p.shapes)) }

// Shape returns a parameter's shape.
func (p *Params) Shape(name string) (tensor.Shape, bool) {
	s, ok := p.shapes[name]
	return s, ok
}

// Value makes a parameter.
func (p *Params) Value(name string) (engine.Value, error) {
	typ := graph.Type{DType: p.w.dtype, Shape: p.shapes[name]}
	make := func() (backend.Buffer, error) {
		a, err := p.w.Make(name, typ.Shape)
		if err != nil {
			return nil, err
		}
		return p.eng.UploadParam(a)
	}
	if p.quantize(name) { // where a linear layer has it, its 8-bit form will be asked for in its place
		return p.eng.Param(typ, deferred(sync.OnceValues(make))), nil
	}
	buf, err := make()
	if err != nil {
		return engine.Value{}, err
	}
	return p.eng.Param(typ, resident{buf}), nil
}

// deferred is a parameter that is made when a program first needs it.
type deferred func() (backend.Buffer, error)

// Buffer implements engine.Source.
func (d deferred) Buffer() (backend.Buffer, error) { return d() }

// Quantized implements nn.Quantizer.
func (p *Params) Quantized(name string) (weight, scale engine.Value, ok bool, err error) {
	if !p.quantize(name) {
		return weight, scale, false, nil
	}
	a, err := p.w.Make(name, p.shapes[name])
	if err != nil {
		return weight, scale, false, err
	}
	q, s, err := p.eng.QuantizeParam(a)
	if err != nil {
		return weight, scale, false, err
	}
	weight = p.eng.Param(graph.Type{DType: tensor.I8, Shape: a.Shape}, resident{q})
	scale = p.eng.Param(graph.Type{DType: tensor.F32, Shape: a.Shape[:1]}, resident{s})
	return weight, scale, true, nil
}

// resident is a parameter that is on the device.
type resident struct{ buf backend.Buffer }

// Buffer implements engine.Source.
func (r resident) Buffer() (backend.Buffer, error) { return r.buf, nil }
