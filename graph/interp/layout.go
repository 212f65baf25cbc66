package interp

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// gatherStrided fills a new array of n's type with the elements of x that start at offset and advance by strides.
func gatherStrided(n *graph.Node, x *tensor.Array, offset int, strides []int) *tensor.Array {
	out := tensor.New(n.DType, n.Shape...)
	size := n.DType.Size()
	walk(n.Shape, func(k int, at []int) {
		i := (offset + at[0]) * size
		copy(out.Data[k*size:(k+1)*size], x.Data[i:i+size])
	}, strides)
	return out
}

// scatterStrided writes the elements of x into out, from offset on, advancing by strides per axis of x.
func scatterStrided(out, x *tensor.Array, offset int, strides []int) {
	size := x.DType.Size()
	walk(x.Shape, func(k int, at []int) {
		copy(out.Data[(offset+at[0])*size:], x.Data[k*size:(k+1)*size])
	}, strides)
}

func iota(n *graph.Node) *tensor.Array {
	out := zeros(n.DType, n.Shape.Size())
	strides := make([]int, len(n.Shape))
	strides[n.Attr.(graph.IotaAttr).Axis] = 1
	walk(n.Shape, func(k int, at []int) {
		if out.f != nil {
			out.f[k] = float64(at[0])
		} else {
			out.i[k] = int64(at[0])
		}
	}, strides)
	return out.store(n.DType, n.Shape)
}

func transpose(n *graph.Node, x *tensor.Array) *tensor.Array {
	dense := x.Shape.Strides()
	strides := make([]int, len(n.Shape))
	for i, p := range n.Attr.(graph.TransposeAttr).Perm {
		strides[i] = dense[p]
	}
	return gatherStrided(n, x, 0, strides)
}

func broadcastInDim(n *graph.Node, x *tensor.Array) *tensor.Array {
	dense := x.Shape.Strides()
	strides := make([]int, len(n.Shape))
	for i, ax := range n.Attr.(graph.BroadcastInDimAttr).Axes {
		if x.Shape[i] != 1 {
			strides[ax] = dense[i]
		}
	}
	return gatherStrided(n, x, 0, strides)
}

func slice(n *graph.Node, x *tensor.Array) *tensor.Array {
	a := n.Attr.(graph.SliceAttr)
	offset := 0
	strides := x.Shape.Strides()
	for i := range strides {
		offset += a.Start[i] * strides[i]
		strides[i] *= a.Stride[i]
	}
	return gatherStrided(n, x, offset, strides)
}

func pad(n *graph.Node, in []*tensor.Array) *tensor.Array {
	a := n.Attr.(graph.PadAttr)
	x, size := in[0], n.DType.Size()
	out := tensor.New(n.DType, n.Shape...)
	for k := 0; k < len(out.Data); k += size {
		copy(out.Data[k:], in[1].Data[:size])
	}
	dense := n.Shape.Strides()
	// Negative padding can put an element outside, so every one is placed by its own index.
	index := make([]int, len(x.Shape))
	for k := range x.Shape.Size() {
		to, inside := 0, true
		for i, e := range index {
			p := a.Low[i] + e*(1+a.Interior[i])
			inside = inside && p >= 0 && p < n.Shape[i]
			to += p * dense[i]
		}
		if inside {
			copy(out.Data[to*size:(to+1)*size], x.Data[k*size:])
		}
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < x.Shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}

func concatenate(n *graph.Node, in []*tensor.Array) *tensor.Array {
	axis := n.Attr.(graph.ConcatenateAttr).Axis
	out := tensor.New(n.DType, n.Shape...)
	dense := n.Shape.Strides()
	at := 0
	for _, x := range in {
		scatterStrided(out, x, at*dense[axis], dense)
		at += x.Shape[axis]
	}
	return out
}

func gather(n *graph.Node, in []*tensor.Array) *tensor.Array {
	table := in[0]
	rows := int64(table.Shape[0])
	out := tensor.New(n.DType, n.Shape...)
	row := len(table.Data) / table.Shape[0]
	for k, r := range load(in[1]).i {
		r = min(max(r, 0), rows-1)
		copy(out.Data[k*row:(k+1)*row], table.Data[int(r)*row:])
	}
	return out
}

// starts reads one scalar per axis and clamps it so that sizes fit into shape; it returns the offset in elements.
func starts(scalars []*tensor.Array, shape, sizes tensor.Shape) int {
	offset := 0
	for i, stride := range shape.Strides() {
		s := load(scalars[i]).i[0]
		offset += int(min(max(s, 0), int64(shape[i]-sizes[i]))) * stride
	}
	return offset
}

func dynamicSlice(n *graph.Node, in []*tensor.Array) *tensor.Array {
	x := in[0]
	return gatherStrided(n, x, starts(in[1:], x.Shape, n.Shape), x.Shape.Strides())
}

func dynamicUpdate(n *graph.Node, in []*tensor.Array) *tensor.Array {
	x, update := in[0], in[1]
	out := x.Clone()
	scatterStrided(out, update, starts(in[2:], x.Shape, update.Shape), x.Shape.Strides())
	return out
}
