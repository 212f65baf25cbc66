package placement

import (
	"fmt"
	"sync"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

var _ nn.Quantizer = (*Resident)(nil)

// Quantized implements nn.Quantizer. Nothing is read before a program needs it.
func (r *Resident) Quantized(name string) (weight, scale engine.Value, ok bool, err error) {
	if r.opts.Quantize == nil || !r.opts.Quantize(name) {
		return weight, scale, false, nil
	}
	t, ok := r.byName[name]
	if !ok || len(t.Shape) != 2 || !t.DType.IsFloat() || t.Shape[1] < 1 || t.Shape[1] > graph.MaxQuantizedK {
		return weight, scale, false, nil
	}
	q := &quantized{r: r, t: t}
	r.mu.Lock()
	r.quantized = append(r.quantized, q)
	r.mu.Unlock()
	weight = r.eng.Param(graph.Type{DType: tensor.I8, Shape: t.Shape}, half{q, 0})
	scale = r.eng.Param(graph.Type{DType: tensor.F32, Shape: t.Shape[:1]}, half{q, 1})
	return weight, scale, true, nil
}

// quantized is a weight in 8 bits: two buffers, made together.
type quantized struct {
	r *Resident
	t *weights.Tensor

	mu   sync.Mutex
	bufs [2]backend.Buffer // weight and scale
	err  error
}

// half is one of the buffers, as a source of a value.
type half struct {
	q *quantized
	i int
}

// Buffer implements engine.Source.
func (h half) Buffer() (backend.Buffer, error) {
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if h.q.bufs[0] == nil && h.q.err == nil {
		h.q.err = h.q.place()
	}
	return h.q.bufs[h.i], h.q.err
}

func (q *quantized) place() error {
	a := q.t.Array()
	q.r.bytes.Add(int64(len(a.Data)))
	var err error
	if !computed(a.DType) {
		a, err = a.Convert(tensor.F32)
	}
	if err == nil {
		q.bufs[0], q.bufs[1], err = q.r.eng.QuantizeParam(a)
	}
	if err != nil {
		return fmt.Errorf("%s: tensor %s: %w", q.t.Path(), q.t, err)
	}
	q.t.Release()
	return nil
}

func (q *quantized) free() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, b := range q.bufs {
		if b != nil {
			b.Free()
			q.bufs[i] = nil
		}
	}
}
