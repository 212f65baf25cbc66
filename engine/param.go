package engine

import (
	"crypto/sha256"
	"fmt"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// UploadParam makes a host array a buffer for a parameter. The array must not change while the buffer is in use.
func (e *Engine) UploadParam(a *tensor.Array) (backend.Buffer, error) {
	return e.UploadMappedParam(a, nil)
}

// UploadMappedParam is UploadParam for an array that stays readable for good, such as a mapped file's. release tells that
// its memory is not needed for now, the backend having another copy; it may be called from any goroutine.
func (e *Engine) UploadMappedParam(a *tensor.Array, release func()) (backend.Buffer, error) {
	b := e.base()
	buf, err := b.client.Upload(a, b.device)
	if err == nil {
		markParameter(buf, release)
	}
	return buf, err
}

func markParameter(b backend.Buffer, release func()) {
	if p, ok := b.(backend.Parameter); ok {
		p.MarkParameter(release)
	}
}

// QuantizeParam makes a host array (N, K) the two buffers of a weight in 8 bits: i8 (N, K) and its scale (N) in f32; see
// graph.QuantizeRows. The array is not needed any more when it returns.
func (e *Engine) QuantizeParam(a *tensor.Array) (w, scale backend.Buffer, err error) {
	b := e.base()
	var q, s *tensor.Array
	if z, ok := b.client.(backend.Quantizer); ok {
		if q, s, err = z.QuantizeRows(a); err != nil {
			return nil, nil, err
		}
	} else {
		q, s = graph.QuantizeRows(a)
	}
	if w, err = e.UploadParam(q); err != nil {
		return nil, nil, err
	}
	if scale, err = e.UploadParam(s); err != nil {
		w.Free()
		return nil, nil, err
	}
	return w, scale, nil
}

// ConvertParam makes a host array a buffer of dtype d for a parameter, converting it on the device. The array is not
// needed any more when it returns. Both types must be floating-point types that programs compute in.
func (e *Engine) ConvertParam(a *tensor.Array, d tensor.DType) (backend.Buffer, error) {
	b := e.base()
	from := graph.Type{DType: a.DType, Shape: a.Shape}
	key := from.AppendKey([]byte{'p', byte(d)})
	exe, err := b.executable(sha256.Sum256(key), func() (*graph.Graph, error) {
		in := graph.NewInput(0, from)
		out, err := graph.Make(graph.Convert, graph.ConvertAttr{DType: d}, in)
		if err != nil {
			return nil, err
		}
		return graph.New("convert_parameter", []*graph.Node{in}, []*graph.Node{out})
	})
	if err != nil {
		return nil, err
	}
	arg, err := b.client.Upload(a, b.device)
	if err != nil {
		return nil, err
	}
	defer arg.Free()
	outs, done, err := exe.Run([]backend.Buffer{arg})
	if err != nil {
		return nil, err
	}
	if err := done.Wait(); err != nil {
		outs[0].Free()
		return nil, fmt.Errorf("convert %s to %s: %w", from, d, err)
	}
	markParameter(outs[0], nil)
	return outs[0], nil
}
