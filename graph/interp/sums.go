package interp

import (
	"math"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

func reduce(n *graph.Node, x *tensor.Array) *tensor.Array {
	a := n.Attr.(graph.ReduceAttr)
	drop := make([]bool, len(x.Shape))
	for _, ax := range a.Axes {
		drop[ax] = true
	}
	// Strides of the result at the indices of the operand: zero along the axes that disappear.
	to := make([]int, len(x.Shape))
	dense, kept := n.Shape.Strides(), 0
	for i := range x.Shape {
		if !drop[i] {
			to[i] = dense[kept]
			kept++
		}
	}
	v := load(x)
	out := zeros(x.DType, n.Shape.Size())
	for k := range out.f {
		out.f[k] = [...]float64{0, math.Inf(-1), math.Inf(1), 1}[a.Kind]
	}
	for k := range out.i {
		out.i[k] = [...]int64{0, math.MinInt64, math.MaxInt64, 1}[a.Kind]
	}
	walk(x.Shape, func(k int, at []int) {
		if v.f != nil {
			out.f[at[0]] = combine(a.Kind, out.f[at[0]], v.f[k])
		} else {
			out.i[at[0]] = combine(a.Kind, out.i[at[0]], v.i[k])
		}
	}, to)
	return out.store(n.DType, n.Shape)
}

func combine[T float64 | int64](kind graph.Reduction, a, b T) T {
	switch kind {
	case graph.ReduceMax:
		return max(a, b)
	case graph.ReduceMin:
		return min(a, b)
	case graph.ReduceProd:
		return a * b
	}
	return a + b
}

func dotGeneral(n *graph.Node, in []*tensor.Array) *tensor.Array {
	a := n.Attr.(graph.DotGeneralAttr)
	l, r := in[0], in[1]
	ls, rs := l.Shape.Strides(), r.Shape.Strides()
	usedL, usedR := make([]bool, len(ls)), make([]bool, len(rs))
	// The result's axes (batch, free left, free right) as strides of both operands, and likewise the contracted axes.
	var outL, outR, sumL, sumR []int
	var sum tensor.Shape
	for i := range a.LhsContract {
		lx, rx := a.LhsContract[i], a.RhsContract[i]
		sum = append(sum, l.Shape[lx])
		sumL, sumR = append(sumL, ls[lx]), append(sumR, rs[rx])
		usedL[lx], usedR[rx] = true, true
	}
	for i := range a.LhsBatch {
		lx, rx := a.LhsBatch[i], a.RhsBatch[i]
		outL, outR = append(outL, ls[lx]), append(outR, rs[rx])
		usedL[lx], usedR[rx] = true, true
	}
	for i, s := range ls {
		if !usedL[i] {
			outL, outR = append(outL, s), append(outR, 0)
		}
	}
	for i, s := range rs {
		if !usedR[i] {
			outL, outR = append(outL, 0), append(outR, s)
		}
	}
	lv, rv := load(l), load(r)
	terms := sum.Size()
	offL, offR := make([]int, terms), make([]int, terms)
	walk(sum, func(k int, at []int) { offL[k], offR[k] = at[0], at[1] }, sumL, sumR)
	out := zeros(l.DType, n.Shape.Size())
	walk(n.Shape, func(k int, at []int) {
		if l.DType.IsFloat() {
			s := 0.0
			for t, o := range offL {
				s += lv.f[at[0]+o] * rv.f[at[1]+offR[t]]
			}
			out.f[k] = s
			return
		}
		s := int64(0)
		for t, o := range offL {
			s += lv.i[at[0]+o] * rv.i[at[1]+offR[t]]
		}
		out.i[k] = s
	}, outL, outR)
	return out.store(n.DType, n.Shape)
}

func convolution(n *graph.Node, in []*tensor.Array) *tensor.Array {
	a := n.Attr.(graph.ConvolutionAttr)
	x, w := in[0], in[1] // (B, H, W, C), (O, C, KH, KW)
	height, width, c := x.Shape[1], x.Shape[2], x.Shape[3]
	o, kh, kw := w.Shape[0], w.Shape[2], w.Shape[3]
	xv, wv := load(x).f, load(w).f
	bias := make([]float64, o)
	if a.Bias {
		bias = load(in[2]).f
	}
	sum := make([]float64, 0, n.Shape.Size())
	for b := range n.Shape[0] {
		for i := range n.Shape[1] {
			for j := range n.Shape[2] {
				for f := range o {
					s := bias[f]
					for di := range kh {
						for dj := range kw {
							y, z := i*a.Stride[0]+di-a.Low[0], j*a.Stride[1]+dj-a.Low[1]
							if y < 0 || y >= height || z < 0 || z >= width {
								continue
							}
							px := xv[((b*height+y)*width+z)*c:][:c]
							for ch, p := range px {
								s += p * wv[((f*c+ch)*kh+di)*kw+dj]
							}
						}
					}
					sum = append(sum, s)
				}
			}
		}
	}
	return values{f: sum}.store(n.DType, n.Shape)
}
