// Package interp evaluates graphs on host arrays, slowly and plainly. It is the oracle that backends are tested
// against, and the fallback for what a backend has no kernel for.
//
//	out, err := interp.Eval(g, []*tensor.Array{x})
//
// Floating-point operations are computed in float64 and every primitive's result is rounded to the node's dtype: to f32
// directly, to a half type through f32 (which gives what computing in f32 and rounding once gives, for the operations
// that IEEE 754 rounds correctly). Sums accumulate in float64. Integers are computed in int64 and wrap. A composite is
// evaluated as its decomposition.
//
// Where StableHLO leaves a choice, the interpreter makes XLA's: an integer divided by zero is -1 (all ones), the
// remainder then is the dividend; a float outside an integer's range converts to the nearest integer, NaN to 0.
package interp

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Eval returns the outputs of g for the given inputs, which must match g.Inputs in number and type. Outputs may share
// memory with inputs, with constants and with each other.
func Eval(g *graph.Graph, in []*tensor.Array) ([]*tensor.Array, error) {
	if len(in) != len(g.Inputs) {
		return nil, fmt.Errorf("graph %s: %d inputs given, expected %d", g.Name, len(in), len(g.Inputs))
	}
	value := make(map[*graph.Node]*tensor.Array, len(in)+len(g.Nodes))
	for i, n := range g.Inputs {
		if !n.Type.Equal(graph.Type{DType: in[i].DType, Shape: in[i].Shape}) {
			return nil, fmt.Errorf("graph %s: input %d is %s, expected %s", g.Name, i, in[i], n.Type)
		}
		if err := in[i].Check(); err != nil {
			return nil, fmt.Errorf("graph %s: input %d: %w", g.Name, i, err)
		}
		value[n] = in[i]
	}
	for _, n := range g.Nodes {
		args := make([]*tensor.Array, len(n.In))
		for i, c := range n.In {
			args[i] = value[c]
		}
		v, err := Apply(n, args)
		if err != nil {
			return nil, fmt.Errorf("graph %s: %w", g.Name, err)
		}
		value[n] = v
	}
	out := make([]*tensor.Array, len(g.Outputs))
	for i, n := range g.Outputs {
		out[i] = value[n]
	}
	return out, nil
}

// Apply evaluates one node on the values of its operands. The result may share memory with an operand.
func Apply(n *graph.Node, in []*tensor.Array) (*tensor.Array, error) {
	if n.Op.IsComposite() {
		return composite(n, in)
	}
	switch {
	case n.Op == graph.Convert:
		return convert(in[0], n.DType), nil
	case n.Op == graph.Compare:
		return compare(n, in), nil
	case n.Op.IsUnary():
		return unary(n, in[0]), nil
	case n.Op.IsBinary():
		return binary(n, in), nil
	}
	switch n.Op {
	case graph.Constant:
		return n.Attr.(graph.ConstantAttr).Value, nil
	case graph.Select:
		return selectValues(n, in), nil
	case graph.Iota:
		return iota(n), nil
	case graph.Reshape, graph.OptimizeBarrier:
		return &tensor.Array{DType: n.DType, Shape: n.Shape, Data: in[0].Data}, nil
	case graph.Transpose:
		return transpose(n, in[0]), nil
	case graph.BroadcastInDim:
		return broadcastInDim(n, in[0]), nil
	case graph.Slice:
		return slice(n, in[0]), nil
	case graph.Pad:
		return pad(n, in), nil
	case graph.Concatenate:
		return concatenate(n, in), nil
	case graph.Gather:
		return gather(n, in), nil
	case graph.DynamicSlice:
		return dynamicSlice(n, in), nil
	case graph.DynamicUpdate:
		return dynamicUpdate(n, in), nil
	case graph.Reduce:
		return reduce(n, in[0]), nil
	case graph.DotGeneral:
		return dotGeneral(n, in), nil
	case graph.Convolution:
		return convolution(n, in), nil
	}
	return nil, fmt.Errorf("interp: %s is not an operation that can be evaluated", n.Op)
}

// composite evaluates the decomposition of n over fresh inputs.
func composite(n *graph.Node, in []*tensor.Array) (*tensor.Array, error) {
	inputs := make([]*graph.Node, len(in))
	for i, c := range n.In {
		inputs[i] = graph.NewInput(i, c.Type)
	}
	d, err := graph.Decompose(&graph.Node{Op: n.Op, In: inputs, Attr: n.Attr, Type: n.Type})
	if err != nil {
		return nil, err
	}
	g, err := graph.New(n.Op.String(), inputs, []*graph.Node{d})
	if err != nil {
		return nil, err
	}
	out, err := Eval(g, in)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}
