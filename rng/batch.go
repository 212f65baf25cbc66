package rng

import (
	"fmt"

	"github.com/gesso-go/gesso/tensor"
)

// RandnBatch draws an array whose first axis is the batch. One generator draws the whole array in one call; several,
// one an image, draw (1, shape[1:]...) each.
// Source: randn_tensor (diffusers/utils/torch_utils.py).
func RandnBatch(generators []*Generator, d tensor.DType, shape ...int) (*tensor.Array, error) {
	if len(generators) == 1 {
		return generators[0].Randn(d, shape...)
	}
	if len(shape) == 0 || len(generators) != shape[0] {
		return nil, fmt.Errorf("draw normal numbers: %d generators for shape %v, expected one or as many as the batch",
			len(generators), tensor.Shape(shape))
	}
	out := &tensor.Array{DType: d, Shape: tensor.Shape(shape).Clone()}
	one := tensor.Shape(shape).Clone()
	one[0] = 1
	for _, g := range generators {
		a, err := g.Randn(d, one...)
		if err != nil {
			return nil, err
		}
		if out.Data == nil {
			out.Data = tensor.New(d, shape...).Data[:0]
		}
		out.Data = append(out.Data, a.Data...)
	}
	return out, nil
}
