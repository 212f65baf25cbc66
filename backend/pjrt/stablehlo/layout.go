package stablehlo

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// layout writes an operation that moves data.
func (w *Writer) layout(n *graph.Node, in []Value) (Value, error) {
	switch n.Op {
	case graph.Iota:
		return w.iota(n), nil
	case graph.Reshape:
		return w.Reshape(in[0], n.Shape...), nil
	case graph.Transpose:
		return w.Transpose(in[0], n.Attr.(graph.TransposeAttr).Perm...), nil
	case graph.BroadcastInDim:
		a := n.Attr.(graph.BroadcastInDimAttr)
		return w.BroadcastInDim(in[0], a.Shape, a.Axes), nil
	case graph.Slice:
		return w.slice(n, in[0]), nil
	case graph.Pad:
		a := n.Attr.(graph.PadAttr)
		if len(n.Shape) == 0 {
			return in[0], nil
		}
		names, types := join(in...)
		return w.Op(n.Type, "stablehlo.pad %s, low = %s, high = %s, interior = %s : (%s) -> %s",
			names, ints(a.Low), ints(a.High), ints(a.Interior), types, typeText(n.Type)), nil
	case graph.Concatenate:
		names, types := join(in...)
		return w.Op(n.Type, "stablehlo.concatenate %s, dim = %d : (%s) -> %s",
			names, n.Attr.(graph.ConcatenateAttr).Axis, types, typeText(n.Type)), nil
	case graph.Gather:
		return w.gather(n, in[0], in[1]), nil
	case graph.DynamicSlice:
		if len(n.Shape) == 0 {
			return in[0], nil
		}
		names, types := join(append(in[:1:1], w.starts(in[1:])...)...)
		return w.Op(n.Type, "stablehlo.dynamic_slice %s, sizes = %s : (%s) -> %s", names, ints(n.Shape), types, typeText(n.Type)), nil
	case graph.DynamicUpdate:
		if len(n.Shape) == 0 {
			return in[1], nil
		}
		names, types := join(append(in[:2:2], w.starts(in[2:])...)...)
		return w.Op(n.Type, "stablehlo.dynamic_update_slice %s : (%s) -> %s", names, types, typeText(n.Type)), nil
	case graph.OptimizeBarrier:
		return w.same("stablehlo.optimization_barrier", in[0]), nil
	}
	return Value{}, fmt.Errorf("cannot be written")
}

// iota counts in i32 for a half type: its own form need not round each index once.
func (w *Writer) iota(n *graph.Node) Value {
	t := n.Type
	if t.DType.IsHalf() {
		t.DType = tensor.F32
	}
	v := w.Op(t, "stablehlo.iota dim = %d : %s", n.Attr.(graph.IotaAttr).Axis, typeText(t))
	return w.Convert(v, n.DType)
}

func (w *Writer) slice(n *graph.Node, x Value) Value {
	a := n.Attr.(graph.SliceAttr)
	if len(n.Shape) == 0 {
		return x
	}
	parts := make([]string, len(n.Shape))
	for i := range parts {
		parts[i] = fmt.Sprintf("%d:%d", a.Start[i], a.Limit[i])
		if a.Stride[i] != 1 {
			parts[i] += fmt.Sprintf(":%d", a.Stride[i])
		}
	}
	return w.to(n.Type, "stablehlo.slice", x, " ["+strings.Join(parts, ", ")+"]")
}

// gather takes whole rows of the table. An index outside is clamped, which StableHLO defines too; but in a narrow integer
// type the number of rows could not be said, so those become i32 first.
func (w *Writer) gather(n *graph.Node, table, rows Value) Value {
	if rows.DType != tensor.I64 {
		rows = w.Convert(rows, tensor.I32)
	}
	rank := len(rows.Shape)
	offset, sizes := make([]int, len(table.Shape)-1), table.Shape.Clone()
	for i := range offset {
		offset[i] = rank + i
	}
	sizes[0] = 1
	return w.Op(n.Type, "\"stablehlo.gather\"(%s, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = %s, "+
		"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = %d>, slice_sizes = array<i64: %s>}> : (%s, %s) -> %s",
		table.Name, rows.Name, ints(offset), rank, strings.Trim(ints(sizes), "[]"), table.TypeText(), rows.TypeText(), typeText(n.Type))
}

// starts gives start indices one type, as StableHLO wants.
func (w *Writer) starts(in []Value) []Value {
	d := tensor.I32
	for _, v := range in {
		if v.DType == tensor.I64 {
			d = tensor.I64
		}
	}
	out := make([]Value, len(in))
	for i, v := range in {
		out[i] = w.Convert(v, d)
	}
	return out
}
