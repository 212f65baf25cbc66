package mosaic

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Options returns how programs are written for a chip: with kernels, or without them where the compiler doesn't take them.
func Options(c Chip, kernels bool) stablehlo.Options {
	return stablehlo.Options{
		Apart: apart,
		Rewrite: func(g *graph.Graph) (*graph.Graph, error) {
			r := &rewriter{chip: c, plain: !kernels}
			return r.rewrite(g)
		},
		Kernel: func(n *graph.Node) stablehlo.Kernel {
			switch n.Attr.(type) {
			case attentionAttr:
				return func(w *stablehlo.Writer, n *graph.Node, in []stablehlo.Value) (stablehlo.Value, error) {
					return c.writeAttention(w, n, in, kernels)
				}
			case normRopeAttr:
				return writeNormRope
			case normModulateAttr:
				return writeNormModulate
			case unsetAttr:
				return func(w *stablehlo.Writer, n *graph.Node, _ []stablehlo.Value) (stablehlo.Value, error) {
					return w.Op(n.Type, "stablehlo.custom_call @AllocateBuffer() : () -> %s", stablehlo.TypeText(n.Type)), nil
				}
			}
			return nil
		},
	}
}

// writeAttention takes q (B, N, H, D), k and v (B, M, H, D).
func (c Chip) writeAttention(w *stablehlo.Writer, n *graph.Node, in []stablehlo.Value, kernels bool) (stablehlo.Value, error) {
	a := n.Attr.(attentionAttr)
	scale := a.scale
	s, ok := c.attentionShape(n)
	s.scale, s.width = scale, a.width
	if !kernels || !ok || s.vmemBytes() > c.vmem {
		return c.writePlain(w, n, in, scale)
	}
	k := attentionKernel(s)
	return perPicture(w, n, in, func(in []stablehlo.Value) (stablehlo.Value, error) {
		keys := w.Constant(tensor.FromInt32([]int32{int32(s.keys)}, 1))
		return k.write(w, keys, in[0], in[1], in[2])
	})
}

// perPicture calls write with matrices (N, H·D) for each element of the batch of n's operands (B, N, H, D) or (B, N, H·D).
func perPicture(w *stablehlo.Writer, n *graph.Node, in []stablehlo.Value, write func(in []stablehlo.Value) (stablehlo.Value, error)) (stablehlo.Value, error) {
	batch := n.Shape[0]
	flat := make([]stablehlo.Value, len(in))
	for i, v := range in {
		flat[i] = w.Reshape(v, batch, v.Shape[1], v.Shape[2:].Size())
	}
	outs := make([]stablehlo.Value, batch)
	for b := range batch {
		row := make([]stablehlo.Value, len(flat))
		for i, v := range flat {
			row[i] = w.Reshape(slice(w, v, 0, b, b+1), v.Shape[1:]...)
		}
		o, err := write(row)
		if err != nil {
			return stablehlo.Value{}, err
		}
		outs[b] = w.Reshape(o, append([]int{1}, o.Shape...)...)
	}
	out := outs[0]
	if batch > 1 {
		out = concatenate(w, outs, 0)
	}
	return w.Reshape(out, n.Shape...), nil
}

// writeNormRope takes x (B, N, H, D), weight (D), cos and sin (M, D).
func writeNormRope(w *stablehlo.Writer, n *graph.Node, in []stablehlo.Value) (stablehlo.Value, error) {
	a := n.Attr.(normRopeAttr)
	rows, heads, d := n.Shape[1], n.Shape[2], n.Shape[3]
	s := normRopeShape{
		heads: heads, headSize: d, rows: rows, block: min(normRopeRows, ceil(rows, 16)*16), eps: a.norm.Eps, roundFirst: a.norm.RoundFirst, scale: a.scale,
	}
	if a.rows > 0 {
		s.rows, s.block, s.total, s.start = a.rows, normRopeRows, rows, a.first/normRopeRows
	}
	cos, sin := in[2], in[3]
	if a.first%s.block == 0 {
		s.offset = a.first / s.block
	} else {
		cos, sin = slice(w, cos, 0, a.first, a.first+rows), slice(w, sin, 0, a.first, a.first+rows)
	}
	weight := w.Reshape(in[1], 1, d)
	k := normRopeKernel(s, cos.Shape[0])
	return perPicture(w, n, in[:1], func(x []stablehlo.Value) (stablehlo.Value, error) {
		return k.write(w, x[0], weight, cos, sin)
	})
}

// writeNormModulate takes x (B, N, D), scale and shift (B, 1, D).
func writeNormModulate(w *stablehlo.Writer, n *graph.Node, in []stablehlo.Value) (stablehlo.Value, error) {
	rows := n.Shape[1]
	k := normModulateKernel(normModulateShape{
		rows: rows, width: n.Shape[2], block: min(normRopeRows, ceil(rows, normModulateChunk)*normModulateChunk),
		eps: n.Attr.(normModulateAttr).eps,
	})
	return perPicture(w, n, in, func(in []stablehlo.Value) (stablehlo.Value, error) { return k.write(w, in...) })
}

// slice cuts [from, to) of an axis.
func slice(w *stablehlo.Writer, x stablehlo.Value, axis, from, to int) stablehlo.Value {
	if from == 0 && to == x.Shape[axis] {
		return x
	}
	t := typeOf(x.DType, x.Shape.Clone()...)
	t.Shape[axis] = to - from
	cuts := ""
	for i, d := range x.Shape {
		lo, hi := 0, d
		if i == axis {
			lo, hi = from, to
		}
		if i > 0 {
			cuts += ", "
		}
		cuts += fmt.Sprintf("%d:%d", lo, hi)
	}
	return w.Op(t, "stablehlo.slice %s [%s] : (%s) -> %s", x.Name, cuts, x.TypeText(), stablehlo.TypeText(t))
}

func concatenate(w *stablehlo.Writer, vs []stablehlo.Value, axis int) stablehlo.Value {
	t := typeOf(vs[0].DType, vs[0].Shape.Clone()...)
	t.Shape[axis] = 0
	names, types := "", ""
	for i, v := range vs {
		if i > 0 {
			names, types = names+", ", types+", "
		}
		names, types = names+v.Name, types+v.TypeText()
		t.Shape[axis] += v.Shape[axis]
	}
	return w.Op(t, "stablehlo.concatenate %s, dim = %d : (%s) -> %s", names, axis, types, stablehlo.TypeText(t))
}
