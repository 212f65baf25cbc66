package backendtest

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// layoutPrograms move elements without computing.
func layoutPrograms() []program {
	m := newMaker(2)
	var ps []program
	one := func(name string, in []*tensor.Array, build func(b *graph.Builder, in []*graph.Node) []*graph.Node) {
		ps = append(ps, program{name, in, build, bits})
	}
	for _, d := range join(floats, ints, []tensor.DType{tensor.Bool}) {
		arr := func(shape ...int) *tensor.Array { return m.normal(d, shape...) }
		if d != tensor.Bool {
			one("iota "+d.String(), nil, func(b *graph.Builder, _ []*graph.Node) []*graph.Node {
				var out []*graph.Node
				for axis, s := range []tensor.Shape{{65, 1}, {3, 17}, {2, 3, 64}, {0}} {
					out = append(out, b.Make(graph.Iota, graph.IotaAttr{Type: graph.Type{DType: d, Shape: s}, Axis: axis % len(s)}))
				}
				return out
			})
		}
		one("reshape "+d.String(), []*tensor.Array{arr(6, 10), arr(1), arr(), arr(0, 3)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			return []*graph.Node{
				b.Reshape(in[0], 3, 4, 5), b.Reshape(in[0], 60), b.Reshape(in[1]), b.Reshape(in[2], 1, 1), b.Reshape(in[3], 7, 0),
			}
		})
		one("transpose "+d.String(), []*tensor.Array{arr(65, 17), arr(2, 3, 5), arr(2, 17, 3, 16), arr(129, 63), arr(0, 4)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				tr := func(x *graph.Node, perm ...int) *graph.Node {
					return b.Make(graph.Transpose, graph.TransposeAttr{Perm: perm}, x)
				}
				return []*graph.Node{
					tr(in[0], 1, 0), tr(in[0], 0, 1), tr(in[1], 2, 0, 1), tr(in[1], 1, 0, 2), tr(in[1], 2, 1, 0), tr(in[2], 0, 2, 1, 3),
					tr(in[2], 0, 3, 1, 2), tr(in[2], 3, 2, 1, 0), tr(in[3], 1, 0), tr(in[4], 1, 0),
				}
			})
		one("broadcast_in_dim "+d.String(), []*tensor.Array{arr(), arr(17), arr(3, 1), arr(2, 1, 16)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				bc := func(x *graph.Node, shape tensor.Shape, axes ...int) *graph.Node {
					return b.Make(graph.BroadcastInDim, graph.BroadcastInDimAttr{Shape: shape, Axes: axes}, x)
				}
				return []*graph.Node{
					bc(in[0], tensor.Shape{65}), bc(in[0], tensor.Shape{}), bc(in[1], tensor.Shape{3, 17}, 1), bc(in[1], tensor.Shape{17, 3}, 0),
					bc(in[1], tensor.Shape{2, 17, 5}, 1), bc(in[2], tensor.Shape{3, 64}, 0, 1), bc(in[2], tensor.Shape{3, 4, 5}, 0, 2),
					bc(in[3], tensor.Shape{2, 7, 16}, 0, 1, 2), bc(in[3], tensor.Shape{2, 3, 5, 16}, 0, 2, 3), bc(in[1], tensor.Shape{0, 17}, 1),
				}
			})
		one("slice "+d.String(), []*tensor.Array{arr(129), arr(17, 65), arr(3, 5, 64)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			sl := func(x *graph.Node, start, limit, stride []int) *graph.Node {
				return b.Make(graph.Slice, graph.SliceAttr{Start: start, Limit: limit, Stride: stride}, x)
			}
			i := func(v ...int) []int { return v }
			return []*graph.Node{
				sl(in[0], i(0), i(129), i(1)), sl(in[0], i(1), i(128), i(1)), sl(in[0], i(3), i(129), i(7)), sl(in[0], i(5), i(5), i(1)),
				sl(in[1], i(2, 0), i(9, 65), i(1, 1)), sl(in[1], i(0, 16), i(17, 33), i(1, 1)), sl(in[1], i(1, 1), i(16, 64), i(3, 2)),
				sl(in[1], i(16, 64), i(17, 65), i(1, 1)), sl(in[2], i(0, 1, 0), i(3, 4, 64), i(1, 1, 1)), sl(in[2], i(0, 0, 0), i(3, 5, 64), i(2, 2, 2)),
				sl(in[2], i(1, 2, 3), i(2, 5, 63), i(1, 1, 1)),
			}
		})
		one("pad "+d.String(), []*tensor.Array{arr(15), arr(3, 17), arr(2, 3, 5), arr(), arr(0, 2)}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			i := func(v ...int) []int { return v }
			pd := func(x *graph.Node, low, high, interior []int) *graph.Node {
				return b.Make(graph.Pad, graph.PadAttr{Low: low, High: high, Interior: interior}, x, in[3])
			}
			return []*graph.Node{
				pd(in[0], i(1), i(1), i(0)), pd(in[0], i(0), i(0), i(3)), pd(in[0], i(-2), i(-3), i(0)), pd(in[0], i(-1), i(4), i(1)),
				pd(in[1], i(0, 1), i(2, 0), i(0, 0)), pd(in[1], i(1, 2), i(3, 4), i(1, 2)), pd(in[1], i(-1, 3), i(0, -5), i(0, 0)),
				pd(in[2], i(0, 1, 1), i(0, 1, 1), i(0, 0, 0)), pd(in[2], i(0, 0, 0), i(0, 0, 0), i(0, 0, 0)), pd(in[4], i(1, 0), i(1, 0), i(0, 0)),
			}
		})
		one("concatenate "+d.String(), []*tensor.Array{arr(3, 17), arr(5, 17), arr(3, 64), arr(0, 17), arr(2, 3, 5), arr(2, 1, 5)},
			func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				cat := func(axis int, x ...*graph.Node) *graph.Node {
					return b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: axis}, x...)
				}
				return []*graph.Node{
					cat(0, in[0], in[1]), cat(1, in[0], in[2]), cat(0, in[0]), cat(0, in[3], in[1], in[0], in[1]), cat(1, in[2], in[2], in[0]),
					cat(1, in[4], in[5], in[4]), cat(0, in[3], in[3]), cat(2, in[4], in[4]),
				}
			})
		for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
			one("gather "+d.String()+" "+index.String(), []*tensor.Array{
				arr(17, 65), arr(5), arr(3, 2, 4), m.between(index, 0, 17, 7), m.between(index, -3, 9, 2, 3), m.between(index, 0, 3), m.between(index, 0, 3, 0),
			}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				ga := func(x, i *graph.Node) *graph.Node { return b.Make(graph.Gather, nil, x, i) }
				return []*graph.Node{ga(in[0], in[3]), ga(in[1], in[4]), ga(in[2], in[4]), ga(in[2], in[5]), ga(in[0], in[5]), ga(in[0], in[6])}
			})
			one("dynamic_slice "+d.String()+" "+index.String(), []*tensor.Array{
				arr(17, 65), m.between(index, 3, 4), m.between(index, 60, 61), m.between(index, -5, -4),
			}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				ds := func(sizes []int, at ...*graph.Node) *graph.Node {
					return b.Make(graph.DynamicSlice, graph.DynamicSliceAttr{Sizes: sizes}, append([]*graph.Node{in[0]}, at...)...)
				}
				return []*graph.Node{
					ds([]int{5, 17}, in[1], in[2]), ds([]int{17, 65}, in[1], in[1]), ds([]int{1, 1}, in[2], in[2]), ds([]int{3, 64}, in[3], in[1]), ds([]int{0, 3}, in[1], in[1]),
				}
			})
			one("dynamic_update_slice "+d.String()+" "+index.String(), []*tensor.Array{
				arr(17, 65), arr(3, 16), arr(17, 65), m.between(index, 3, 4), m.between(index, 60, 61), m.between(index, -5, -4),
			}, func(b *graph.Builder, in []*graph.Node) []*graph.Node {
				du := func(u, i, j *graph.Node) *graph.Node { return b.Make(graph.DynamicUpdate, nil, in[0], u, i, j) }
				return []*graph.Node{du(in[1], in[3], in[3]), du(in[1], in[5], in[4]), du(in[2], in[4], in[4])}
			})
		}
		one("optimization_barrier "+d.String(), []*tensor.Array{arr(65), arr(0)}, each(func(b *graph.Builder, x *graph.Node) *graph.Node {
			return b.Make(graph.OptimizeBarrier, nil, x)
		}))
		constant := arr(5, 13)
		one("constant "+d.String(), nil, func(*graph.Builder, []*graph.Node) []*graph.Node {
			n := graph.NewConstant(constant)
			return []*graph.Node{n, n, graph.NewConstant(tensor.New(d, 0)), graph.NewConstant(tensor.New(d))}
		})
	}
	return ps
}
