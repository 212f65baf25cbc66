package backendtest

import (
	"fmt"
	"os"
	"slices"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// maxElements bounds the values of random programs, most of the time.
const maxElements = 1 << 13

// randomProgram is a program of operations that nobody chose: planners meet pairs in it that no model has yet.
func randomProgram(seed uint64) program {
	write := func(b *graph.Builder, in []*graph.Node) (*writer, []*graph.Node) {
		w := &writer{maker: newMaker(seed), b: b, given: in}
		return w, w.write()
	}
	first, _ := write(&graph.Builder{}, nil) // for the inputs: the second is the same
	return program{name: fmt.Sprintf("random %d", seed), tol: bits, in: first.arrays,
		build: func(b *graph.Builder, in []*graph.Node) []*graph.Node {
			_, out := write(b, in)
			return out
		}}
}

// writer writes one random program.
type writer struct {
	*maker
	b      *graph.Builder
	given  []*graph.Node // the inputs, unless they are to be made
	arrays []*tensor.Array
	values []*graph.Node // of a float dtype
}

func (w *writer) n(n int) int { return w.r.IntN(n) }

// input is a new input: values as a network has, or weights that keep its magnitude.
func (w *writer) input(d tensor.DType, shape ...int) *graph.Node {
	i := len(w.arrays)
	w.arrays = append(w.arrays, w.between(d, -1, 1, shape...))
	if w.given != nil {
		return w.given[i]
	}
	return graph.NewInput(i, graph.Type{DType: d, Shape: shape})
}

func (w *writer) pick() *graph.Node {
	if n := len(w.values); w.n(2) == 0 { // chains, as well as trees
		return w.values[n-1-w.n(min(n, 3))]
	}
	return w.values[w.n(len(w.values))]
}

// ranked is a value of the given rank: one that is there, reshaped, or a new input.
func (w *writer) ranked(rank int) *graph.Node {
	for range 8 {
		if v := w.pick(); len(v.Shape) == rank {
			return v
		}
	}
	v := w.pick()
	if w.n(2) == 0 && v.Shape.Size() > 0 {
		return w.b.Reshape(v, w.factors(v.Shape.Size(), rank)...)
	}
	return w.input(v.DType, w.shape(rank)...)
}

// like is a value of x's dtype whose shape broadcasts with x's to x's own.
func (w *writer) like(x *graph.Node) *graph.Node {
	for range 8 {
		if v := w.pick(); v.DType == x.DType && len(v.Shape) <= len(x.Shape) {
			if s, err := graph.Broadcast(v.Shape, x.Shape); err == nil && s.Equal(x.Shape) {
				return v
			}
		}
	}
	s := x.Shape.Clone()
	for i := range s {
		if w.n(3) == 0 {
			s[i] = 1
		}
	}
	return w.input(x.DType, s[w.n(len(s)+1):]...)
}

func (w *writer) extent() int {
	return []int{1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33, 48, 64, 65, 128, 130}[w.n(16)]
}

func (w *writer) shape(rank int) []int {
	for {
		s := make(tensor.Shape, rank)
		for i := range s {
			s[i] = w.extent()
		}
		if s.Size() <= maxElements {
			return s
		}
	}
}

// factors is a random shape of the given rank and size.
func (w *writer) factors(size, rank int) []int {
	s := make([]int, rank)
	for i := range s {
		s[i] = 1
	}
	for f := 2; size > 1; {
		if size%f == 0 {
			s[w.n(rank)] *= f
			size /= f
		} else if f++; f*f > size {
			f = size
		}
	}
	return s
}

func (w *writer) write() []*graph.Node {
	dtypes := []tensor.DType{tensor.BF16, tensor.F32, tensor.BF16, tensor.F16}
	d := dtypes[w.n(len(dtypes))]
	for range 1 + w.n(3) {
		w.values = append(w.values, w.input(d, w.shape(1+w.n(4))...))
	}
	for range 4 + w.n(30) {
		if v := w.next(); v.Shape.Size() <= 8*maxElements {
			w.values = append(w.values, v)
		}
	}
	used := map[*graph.Node]bool{}
	for _, v := range w.values {
		for _, o := range v.In {
			used[o] = true
		}
	}
	var out []*graph.Node
	for _, v := range w.values {
		if !used[v] && v.Op != graph.Input || w.n(8) == 0 {
			out = append(out, v)
		}
	}
	return out
}

func (w *writer) flag() bool { return w.n(2) == 0 }

// next is one more value.
func (w *writer) next() *graph.Node {
	b := w.b
	mk := func(op graph.Op, in ...*graph.Node) *graph.Node { return b.Make(op, nil, in...) }
	unary := []graph.Op{graph.Neg, graph.Abs, graph.Tanh, graph.Logistic, graph.Erf, graph.Sin, graph.Silu}
	binary := []graph.Op{graph.Add, graph.Mul, graph.Add, graph.Mul, graph.Sub, graph.Max, graph.Min}
	x := w.pick()
	switch w.n(24) {
	case 0, 1:
		return mk(unary[w.n(len(unary))], x)
	case 2, 3, 4, 5:
		y := w.like(x)
		if w.flag() {
			x, y = y, x
		}
		return mk(binary[w.n(len(binary))], x, y)
	case 6:
		return b.Make(graph.Gelu, graph.GeluAttr{Form: graph.ActGelu + graph.Activation(w.n(3))}, x)
	case 7:
		return b.Convert(x, []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}[w.n(3)])
	case 8:
		return mk(graph.Modulate, x, w.like(x), w.like(x))
	case 9:
		if x.Shape.Size() > 0 {
			return b.Reshape(x, w.factors(x.Shape.Size(), 1+w.n(4))...)
		}
	case 10:
		return b.Make(graph.Transpose, graph.TransposeAttr{Perm: w.r.Perm(len(x.Shape))}, x)
	case 11, 12:
		return w.slice(x)
	case 13:
		return w.concat(x)
	case 14, 15, 16:
		return w.product(x)
	case 17:
		return w.norm(x)
	case 18:
		return w.norm(w.ranked(3))
	case 19:
		return w.image(w.ranked(4))
	case 20:
		return w.attention(w.ranked(4))
	case 21:
		return w.reduce(x)
	case 22:
		y := w.like(x)
		less := b.Make(graph.Compare, graph.CompareAttr{Direction: graph.LT}, x, y)
		return mk(graph.Select, less, x, w.like(x))
	case 23:
		return w.lookup(x)
	}
	return mk(graph.Tanh, x)
}

func (w *writer) slice(x *graph.Node) *graph.Node {
	a := graph.SliceAttr{Start: make([]int, len(x.Shape)), Limit: x.Shape.Clone(), Stride: make([]int, len(x.Shape))}
	for i, n := range x.Shape {
		a.Stride[i] = 1
		if n == 0 || w.flag() {
			continue
		}
		a.Start[i] = w.n(n)
		a.Limit[i] = a.Start[i] + 1 + w.n(n-a.Start[i])
		if w.n(4) == 0 {
			a.Stride[i] = 1 + w.n(3)
		}
	}
	return w.b.Make(graph.Slice, a, x)
}

func (w *writer) concat(x *graph.Node) *graph.Node {
	axis := w.n(max(len(x.Shape), 1))
	if len(x.Shape) == 0 {
		return w.b.Reshape(x, 1)
	}
	parts := []*graph.Node{x}
	for range 1 + w.n(2) {
		y := x
		for range 6 {
			v := w.pick()
			s := v.Shape.Clone()
			if v.DType != x.DType || len(s) != len(x.Shape) {
				continue
			}
			if s[axis] = x.Shape[axis]; s.Equal(x.Shape) {
				y = v
			}
		}
		if y == x && w.flag() {
			s := x.Shape.Clone()
			s[axis] = w.extent()
			y = w.input(x.DType, s...)
		}
		parts = append(parts, y)
	}
	w.r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return w.b.Make(graph.Concatenate, graph.ConcatenateAttr{Axis: axis}, parts...)
}

// product is a linear, of which the weight is mostly an input, or a product of values.
func (w *writer) product(x *graph.Node) *graph.Node {
	if len(x.Shape) == 0 {
		x = w.b.Reshape(x, 1)
	}
	k := x.Shape[len(x.Shape)-1]
	act, bias := graph.Activation(w.n(int(graph.ActSilu)+1)), w.flag()
	switch {
	case k == 0:
		return x
	case w.n(5) == 0 && len(x.Shape) >= 2: // x·xᵀ over the last axis, batched over the first ones
		a := graph.DotGeneralAttr{LhsContract: []int{len(x.Shape) - 1}, RhsContract: []int{len(x.Shape) - 1}}
		for i := range len(x.Shape) - 2 {
			a.LhsBatch, a.RhsBatch = append(a.LhsBatch, i), append(a.RhsBatch, i)
		}
		y := x
		for range 6 {
			if v := w.pick(); v.DType == x.DType && len(v.Shape) == len(x.Shape) && v.Shape[len(v.Shape)-1] == k && slices.Equal(v.Shape[:len(v.Shape)-2], x.Shape[:len(x.Shape)-2]) {
				y = v
			}
		}
		return w.b.Make(graph.DotGeneral, a, x, y)
	case w.n(5) == 0:
		n := w.extent()
		in := []*graph.Node{x, w.input(tensor.I8, n, k), w.input(tensor.F32, n)}
		if bias {
			in = append(in, w.input(x.DType, n))
		}
		w.arrays[len(w.arrays)-len(in)+1] = w.between(tensor.I8, -127, 128, n, k)
		return w.b.Make(graph.QuantizedLinear, graph.QuantizedLinearAttr{Bias: bias, Act: act}, in...)
	}
	weight := w.input(x.DType, w.extent(), k)
	for range 4 { // the same weight for several, or a value
		if v := w.pick(); v.DType == x.DType && len(v.Shape) == 2 && v.Shape[1] == k && v.Shape[0] > 0 {
			weight = v
		}
	}
	in := []*graph.Node{x, weight}
	if bias {
		in = append(in, w.input(x.DType, weight.Shape[0]))
	}
	return w.b.Make(graph.Linear, graph.LinearAttr{Bias: bias, Act: act}, in...)
}

func (w *writer) norm(x *graph.Node) *graph.Node {
	if len(x.Shape) == 0 {
		return x
	}
	c := x.Shape[len(x.Shape)-1]
	vector := func() *graph.Node { return w.input(x.DType, c) }
	switch k := w.n(5); {
	case k == 0:
		return w.b.Make(graph.Softmax, nil, x)
	case k == 1:
		return w.b.Make(graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true, RoundFirst: w.flag()}, x, vector())
	case k == 2:
		return w.b.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6, Affine: true}, x, vector(), vector())
	case k == 3 && len(x.Shape) > 1 && c > 0:
		groups := 1 + w.n(4)
		for c%groups != 0 {
			groups--
		}
		return w.b.Make(graph.GroupNorm, graph.GroupNormAttr{Groups: groups, Eps: 1e-6, Silu: w.flag()}, x, vector(), vector())
	}
	return w.b.Make(graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, x)
}

// image is an operation of an autoencoder on x (B, H, W, C).
func (w *writer) image(x *graph.Node) *graph.Node {
	c, o := x.Shape[3], w.extent()
	if c == 0 || x.Shape.Size()*9 > 8*maxElements {
		return w.b.Make(graph.Neg, nil, x)
	}
	switch w.n(4) {
	case 0:
		return w.b.Make(graph.UpsampleNearest, graph.UpsampleAttr{Factor: 2}, x)
	case 1:
		return w.b.Make(graph.UpsampleConv, graph.UpsampleConvAttr{Bias: true}, x, w.input(x.DType, o, c, 3, 3), w.input(x.DType, o))
	}
	size := 1 + 2*w.n(2)
	stride, pad := 1+w.n(2), w.n(2)
	if x.Shape[1]+2*pad < size || x.Shape[2]+2*pad < size {
		pad = size / 2
	}
	a := graph.ConvolutionAttr{Stride: [2]int{stride, stride}, Low: [2]int{pad, pad}, High: [2]int{pad, pad}, Bias: true}
	return w.b.Make(graph.Convolution, a, x, w.input(x.DType, o, c, size, size), w.input(x.DType, o))
}

// attention has x (B, N, H, D) as its queries.
func (w *writer) attention(x *graph.Node) *graph.Node {
	s := x.Shape
	if s.Size() == 0 || s[0]*s[1]*s[1]*s[2] > 16*maxElements {
		return w.b.Make(graph.Abs, nil, x)
	}
	rope := func(x *graph.Node) *graph.Node {
		if s[3]%2 != 0 || w.flag() {
			return x
		}
		return w.b.Make(graph.Rope, graph.RopeAttr{HalfSplit: w.flag()}, x, w.input(tensor.F32, x.Shape[1], s[3]), w.input(tensor.F32, x.Shape[1], s[3]))
	}
	k, v := x, x
	if w.flag() {
		m := w.extent()
		k, v = w.input(x.DType, s[0], m, s[2], s[3]), w.input(x.DType, s[0], m, s[2], s[3])
	}
	a := graph.AttentionAttr{Scale: 0.25, Causal: k == x && w.flag(), Bias: w.n(3) == 0}
	in := []*graph.Node{rope(x), rope(k), v}
	if a.Bias {
		in = append(in, w.input(tensor.F32, 1, s[2], s[1], k.Shape[1]))
	}
	return w.b.Make(graph.Attention, a, in...)
}

func (w *writer) reduce(x *graph.Node) *graph.Node {
	var axes []int
	for i := range x.Shape {
		if w.flag() {
			axes = append(axes, i)
		}
	}
	y := w.b.Make(graph.Reduce, graph.ReduceAttr{Kind: graph.Reduction(w.n(3)), Axes: axes}, x)
	if !w.flag() {
		return y
	}
	s := x.Shape.Clone()
	for _, a := range axes {
		s[a] = 1
	}
	return w.b.Reshape(y, s...)
}

// lookup takes rows of x, or a part of it, by an index.
func (w *writer) lookup(x *graph.Node) *graph.Node {
	if len(x.Shape) == 0 || x.Shape[0] == 0 {
		return x
	}
	rows := x.Shape[0]
	if w.flag() {
		i := w.input(tensor.I32, 1+w.n(5))
		w.arrays[len(w.arrays)-1] = w.between(tensor.I32, 0, float64(rows), i.Shape...)
		return w.b.Make(graph.Gather, nil, x, i)
	}
	in := []*graph.Node{x}
	sizes := make([]int, len(x.Shape))
	for i, n := range x.Shape {
		sizes[i] = min(1+w.n(max(n, 1)), n)
		in = append(in, w.input(tensor.I32))
		w.arrays[len(w.arrays)-1] = w.between(tensor.I32, 0, float64(n))
	}
	return w.b.Make(graph.DynamicSlice, graph.DynamicSliceAttr{Sizes: sizes}, in...)
}

// randomPrograms are 100, or the ones that GESSO_RANDOM_PROGRAMS names: "500" as many, "1000:2000" those seeds.
func randomPrograms() []program {
	from, to := 0, 100
	if v := os.Getenv("GESSO_RANDOM_PROGRAMS"); v != "" {
		if _, err := fmt.Sscanf(v, "%d:%d", &from, &to); err != nil {
			if _, err := fmt.Sscanf(v, "%d", &to); err != nil {
				panic("GESSO_RANDOM_PROGRAMS is " + v + ", expected a number or two with a colon")
			}
		}
	}
	var ps []program
	for seed := from; seed < to; seed++ {
		ps = append(ps, randomProgram(uint64(seed)))
	}
	return ps
}
