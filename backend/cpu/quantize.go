package cpu

import (
	"fmt"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/tensor"
)

var _ backend.Quantizer = (*Client)(nil)

// QuantizeRows implements backend.Quantizer on all threads.
func (c *Client) QuantizeRows(w *tensor.Array) (q, scale *tensor.Array, err error) {
	if len(w.Shape) != 2 {
		return nil, nil, fmt.Errorf("cpu: quantise %s: needs a matrix", w)
	}
	n, k := w.Shape[0], w.Shape[1]
	q, scale = tensor.New(tensor.I8, n, k), tensor.New(tensor.F32, n)
	err = gemm.QuantizeRows(c.par, c.level, q.Data, scale.Float32s(), gemm.Operand{DType: w.DType, Data: w.Data}, n, k)
	if err != nil {
		return nil, nil, fmt.Errorf("cpu: quantise %s: %w", w, err)
	}
	return q, scale, nil
}
