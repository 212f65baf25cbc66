package cpu

import (
	"math"
	"slices"

	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// composer writes the micro-operations of a cluster, first on as many virtual registers as there are values.
type composer struct {
	c      *cluster
	shape  tensor.Shape
	ops    []micro
	next   int16
	still  map[int16]bool // registers that hold one element, for all
	value  map[*graph.Node]int16
	loadOf map[*graph.Node]int
	full   map[int16]int16 // still registers that were spread over a whole one
}

// compose makes the cluster of g: its producer's epilogue, if it has one, and its elementwise operations. View gives
// the operands from outside, place the memory of the nodes that outside needs.
func compose(fn *vec.Funcs, g *group, view, place func(*graph.Node) view, stored func(*graph.Node) bool) *cluster {
	b := &composer{
		c: &cluster{fn: fn, size: g.shape.Size(), direct: -1}, shape: g.shape,
		still: make(map[int16]bool), value: make(map[*graph.Node]int16), loadOf: make(map[*graph.Node]int), full: make(map[int16]int16),
	}
	inside := make(map[*graph.Node]bool)
	for _, n := range g.nodes {
		inside[n] = true
	}
	operands := func(n *graph.Node) []*graph.Node {
		if n == g.anchor {
			if bias := biasOf(n); bias != nil {
				return []*graph.Node{bias}
			}
			return nil
		}
		return n.In
	}
	for _, n := range g.nodes {
		for _, o := range operands(n) {
			if _, seen := b.loadOf[o]; seen || (inside[o] && n != g.anchor) {
				continue
			}
			if _, scalar := immediate(o); scalar {
				continue
			}
			b.loadOf[o] = len(b.c.loads)
			b.c.loads = append(b.c.loads, access{view: view(o).broadcast(g.shape)})
		}
	}
	for _, n := range g.nodes {
		if stored(n) {
			b.c.stores = append(b.c.stores, access{view: place(n)})
		}
	}
	b.merge()
	if g.anchor != nil {
		b.c.fed = true
		b.next = 1
		b.anchor(g.anchor)
	}
	for _, n := range g.nodes {
		if n != g.anchor {
			b.node(n)
		}
	}
	k := 0
	for _, n := range g.nodes {
		if stored(n) {
			b.c.stores[k].reg = b.own(b.value[n])
			k++
		}
	}
	b.c.bare = g.anchor != nil && len(g.nodes) == 1 && len(b.c.stores) == 1 && b.c.stores[0].view.dense()
	b.leaveToStores()
	b.asWhole()
	b.allocate()
	return b.c
}

// operands returns the registers that m reads.
func (m *micro) operands() []int16 {
	switch m.code {
	case codeUnary, codeRound:
		return []int16{m.x}
	case codeBinary, codeScalar:
		return []int16{m.x, m.y}
	case codeSelect, codeModulate:
		return []int16{m.x, m.y, m.z}
	}
	return nil
}

// leaveToStores takes the rounding out of operations whose result goes to memory of the same half type and nowhere else:
// storing rounds, to the same bits.
func (b *composer) leaveToStores() {
	read := make([]bool, b.next)
	loaded := make([]bool, b.next)
	for i := range b.ops {
		loaded[b.ops[i].dst] = b.ops[i].code == codeLoad
		for _, r := range b.ops[i].operands() {
			read[r] = true
		}
	}
	kept := b.ops[:0]
	for _, m := range b.ops {
		m.raw = m.code >= codeUnary && m.dtype.IsHalf() && !read[m.dst]
		for i := range b.c.stores {
			if s := &b.c.stores[i]; s.reg == m.dst && s.view.dtype != m.dtype {
				m.raw = false
			}
		}
		// A rounding alone leaves nothing to do. An operand's own memory may be overwritten by another result before it
		// is stored.
		if m.raw && m.code == codeRound && (!loaded[m.x] || len(b.c.stores) == 1) {
			for i := range b.c.stores {
				if s := &b.c.stores[i]; s.reg == m.dst {
					s.reg = m.x
				}
			}
			continue
		}
		m.raw = m.raw && m.code != codeRound
		kept = append(kept, m)
	}
	b.ops = kept
}

// wholeFuncs are the operations on bfloat16 words.
var wholeFuncs = map[graph.Op]func(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16){
	graph.Add: func(fn *vec.Funcs, dst []uint16, _ []float32, x [3][]uint16) { fn.AddBF16(dst, x[0], x[1]) },
	graph.Sub: func(fn *vec.Funcs, dst []uint16, _ []float32, x [3][]uint16) { fn.SubBF16(dst, x[0], x[1]) },
	graph.Mul: func(fn *vec.Funcs, dst []uint16, _ []float32, x [3][]uint16) { fn.MulBF16(dst, x[0], x[1]) },
}

func modulateWhole(fn *vec.Funcs, dst []uint16, _ []float32, x [3][]uint16) {
	fn.ModulateBF16(dst, x[0], x[1], x[2])
}

func biasWhole(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16) {
	fn.AddToBF16(dst, acc, x[0])
}

func biasAddWhole(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16) {
	fn.AddAddToBF16(dst, acc, x[0], x[1])
}

func biasGateWhole(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16) {
	fn.AddMulAddToBF16(dst, acc, x[0], x[1], x[2])
}

func biasGeluWhole(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16) {
	fn.AddGeluTanhToBF16(dst, acc, x[0])
}

func biasQuickGeluWhole(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16) {
	fn.AddQuickGeluToBF16(dst, acc, x[0])
}

// asWhole recognises a cluster that is one operation from bfloat16 memory to bfloat16 memory, or one of the epilogues.
func (b *composer) asWhole() {
	c := b.c
	last := len(c.dims) - 1
	if len(b.ops) == 0 || len(c.stores) != 1 {
		return
	}
	m := &b.ops[len(b.ops)-1]
	s := &c.stores[0]
	plain := func(a *access) bool { return a.view.dtype == tensor.BF16 && a.strides[last] == 1 }
	if !m.raw || m.dtype != tensor.BF16 || s.reg != m.dst || !plain(s) {
		return
	}
	loads := make(map[int16]int)
	var others []*micro
	for i := range b.ops {
		o := &b.ops[i]
		if o.code != codeLoad {
			others = append(others, o)
			continue
		}
		if a := &c.loads[o.load]; !plain(a) || a.period > 0 && !c.fed {
			return
		}
		loads[o.dst] = o.load
	}
	if c.fed {
		b.asEpilogue(others, loads)
		return
	}
	whole := wholeFuncs[m.op]
	if m.code == codeModulate {
		whole = modulateWhole
	}
	if len(others) != 1 || whole == nil || m.code != codeBinary && m.code != codeModulate {
		return
	}
	c.whole = whole
	for _, r := range m.operands() {
		c.operands = append(c.operands, loads[r])
	}
}

// epilogues are the clusters of a producer that one kernel does: operations on its value, each with a loaded operand but
// for activations, rounded after each.
var epilogues = []struct {
	ops   []graph.Op
	act   graph.Activation // of the result, if not NoActivation
	whole func(fn *vec.Funcs, dst []uint16, acc []float32, x [3][]uint16)
}{
	{ops: []graph.Op{graph.Add}, whole: biasWhole},
	{ops: []graph.Op{graph.Add}, act: graph.ActGeluTanh, whole: biasGeluWhole},
	{ops: []graph.Op{graph.Add}, act: graph.ActQuickGelu, whole: biasQuickGeluWhole},
	{ops: []graph.Op{graph.Add, graph.Add}, whole: biasAddWhole},
	{ops: []graph.Op{graph.Add, graph.Mul, graph.Add}, whole: biasGateWhole},
}

// activationOps is how many operations the activations of epilogues are; the last one says which, and reads their argument
// as x.
var activationOps = map[graph.Activation]int{graph.ActGeluTanh: 1, graph.ActQuickGelu: 4}

// asEpilogue recognises one of the epilogues.
func (b *composer) asEpilogue(ops []*micro, loads map[int16]int) {
	c := b.c
	act := graph.NoActivation
	if last := ops[len(ops)-1]; last.act != graph.NoActivation {
		act, ops = last.act, ops[:max(len(ops)-activationOps[last.act], 0)]
		if len(ops) == 0 || last.x != ops[len(ops)-1].dst {
			return
		}
	}
	sum := int16(0)
	var operands []int
	var names []graph.Op
	for _, m := range ops {
		if m.code != codeBinary || m.dtype != tensor.BF16 {
			return
		}
		r := m.y
		if m.y == sum {
			r = m.x
		} else if m.x != sum {
			return
		}
		l, ok := loads[r]
		if !ok {
			return
		}
		operands = append(operands, l)
		names = append(names, m.op)
		sum = m.dst
	}
	for _, e := range epilogues {
		if e.act == act && slices.Equal(e.ops, names) {
			c.whole, c.operands = e.whole, operands
		}
	}
}

// merge joins the axes of the iteration space that all operands and results walk as one.
func (b *composer) merge() {
	c := b.c
	strides := make([][]int, 0, len(c.loads)+len(c.stores))
	for i := range c.loads {
		strides = append(strides, c.loads[i].view.strides)
	}
	for i := range c.stores {
		strides = append(strides, c.stores[i].view.strides)
	}
	dims, merged := mergeAxes(b.shape, strides...)
	c.dims = dims
	for i := range c.loads {
		c.loads[i].strides = merged[i]
	}
	for i := range c.stores {
		c.stores[i].strides = merged[len(c.loads)+i]
	}
	b.unroll()
}

// shortRow is the length below which rows are joined, since every operation on a row costs a call.
const shortRow = chunk / 4

// unroll makes one axis of two where the inner one is short and every operand is dense, stands still, or is the same for
// all of the outer axis; the latter is then repeated.
func (b *composer) unroll() {
	c := b.c
	if len(c.dims) != 2 || c.dims[1] >= shortRow {
		return
	}
	d := c.dims[1]
	dense := func(a *access) bool { return a.strides[0] == d && a.strides[1] == 1 }
	for i := range c.loads {
		if a := &c.loads[i]; !dense(a) && a.strides[0] != 0 || a.strides[1] > 1 {
			return
		}
	}
	for i := range c.stores {
		if !dense(&c.stores[i]) {
			return
		}
	}
	for i := range c.loads {
		a := &c.loads[i]
		if !dense(a) && a.strides[1] == 1 {
			a.period = d
		}
		a.strides = a.strides[1:]
	}
	for i := range c.stores {
		c.stores[i].strides = c.stores[i].strides[1:]
	}
	c.dims = []int{c.dims[0] * d}
}

// immediate returns the value of a scalar constant.
func immediate(n *graph.Node) (float32, bool) {
	if n.Op != graph.Constant || n.Shape.Size() != 1 {
		return 0, false
	}
	return n.Attr.(graph.ConstantAttr).Value.Float32s()[0], true
}

func (b *composer) emit(m micro) int16 {
	m.dst = b.next
	b.next++
	b.ops = append(b.ops, m)
	return m.dst
}

// operand returns the register of n, loading it at its first use.
func (b *composer) operand(n *graph.Node) int16 {
	if r, ok := b.value[n]; ok {
		return r
	}
	var r int16
	if v, ok := immediate(n); ok {
		r = b.emit(micro{code: codeImm, imm: v})
		b.still[r] = true
	} else {
		i := b.loadOf[n]
		r = b.emit(micro{code: codeLoad, load: i})
		a := &b.c.loads[i]
		b.still[r] = a.strides[len(a.strides)-1] == 0
	}
	b.value[n] = r
	return r
}

// whole returns r, or a register with r's one element everywhere.
func (b *composer) whole(r int16) int16 {
	if !b.still[r] {
		return r
	}
	w, ok := b.full[r]
	if !ok {
		w = b.emit(micro{code: codeUnary, f1: spreadFirst, x: r})
		b.full[r] = w
	}
	return w
}

// own returns a register with r's value that is not an operand's memory: a result may overwrite that.
func (b *composer) own(r int16) int16 {
	r = b.whole(r)
	for _, m := range b.ops {
		if m.dst == r && m.code == codeLoad {
			return b.emit(micro{code: codeRound, x: r})
		}
	}
	return r
}

func (b *composer) unary(f unaryFunc, x int16, d tensor.DType) int16 {
	return b.emit(micro{code: codeUnary, f1: f, x: b.whole(x), dtype: d})
}

func (b *composer) binary(op graph.Op, x, y int16, d tensor.DType) int16 {
	switch {
	case b.still[y] && !b.still[x] && scalarFuncs[op] != nil:
		return b.emit(micro{code: codeScalar, fs: scalarFuncs[op], x: x, y: y, dtype: d})
	case b.still[x] && !b.still[y] && scalarLeftFuncs[op] != nil:
		return b.emit(micro{code: codeScalar, fs: scalarLeftFuncs[op], x: y, y: x, dtype: d})
	}
	return b.emit(micro{code: codeBinary, op: op, f2: binaryFuncs[op], x: b.whole(x), y: b.whole(y), dtype: d})
}

// biasOf returns the operand that a producer's epilogue adds, or nil.
func biasOf(n *graph.Node) *graph.Node {
	switch a := n.Attr.(type) {
	case graph.LinearAttr:
		if a.Bias {
			return n.In[2]
		}
	case graph.QuantizedLinearAttr:
		if a.Bias {
			return n.In[3]
		}
	case graph.ConvolutionAttr:
		if a.Bias {
			return n.In[2]
		}
	case graph.UpsampleConvAttr:
		if a.Bias {
			return n.In[2]
		}
	}
	return nil
}

// anchor turns the producer's sums, in register 0, into its value: bias, rounding, activation.
func (b *composer) anchor(n *graph.Node) {
	r := int16(0)
	if bias := biasOf(n); bias != nil {
		r = b.binary(graph.Add, r, b.operand(bias), n.DType)
	} else if n.DType.IsHalf() {
		r = b.emit(micro{code: codeRound, x: r, dtype: n.DType})
	}
	switch a := n.Attr.(type) {
	case graph.LinearAttr:
		r = b.activation(a.Act, r, n.DType)
	case graph.QuantizedLinearAttr:
		r = b.activation(a.Act, r, n.DType)
	case graph.GroupNormAttr:
		if a.Silu {
			r = b.activation(graph.ActSilu, r, n.DType)
		}
	}
	b.value[n] = r
}

func (b *composer) activation(act graph.Activation, x int16, d tensor.DType) int16 {
	switch act {
	case graph.ActGelu:
		return b.unary((*vec.Funcs).Gelu, x, d)
	case graph.ActGeluTanh:
		r := b.unary((*vec.Funcs).GeluTanh, x, d)
		b.ops[len(b.ops)-1].act = act
		return r
	case graph.ActGeluNew:
		if !d.IsHalf() {
			return b.unary((*vec.Funcs).GeluTanh, x, d)
		}
		return b.geluNew(x, d)
	case graph.ActSilu:
		return b.unary((*vec.Funcs).Silu, x, d)
	case graph.ActQuickGelu: // three operations, each rounded
		x = b.whole(x)
		r := b.binary(graph.Mul, x, b.unary((*vec.Funcs).Sigmoid, b.binary(graph.Mul, x, b.number(1.702), d), d), d)
		b.ops[len(b.ops)-1].act = act
		return r
	}
	return x
}

// number emits a constant.
func (b *composer) number(v float32) int16 {
	s := b.emit(micro{code: codeImm, imm: v})
	b.still[s] = true
	return s
}

// geluNew is graph.ActGeluNew in a half type.
func (b *composer) geluNew(x int16, d tensor.DType) int16 {
	x = b.whole(x)
	square := d
	if d == tensor.F16 {
		square = tensor.F32
	}
	cube := b.binary(graph.Mul, b.binary(graph.Mul, x, x, square), x, d)
	in := b.binary(graph.Add, x, b.binary(graph.Mul, cube, b.number(0.044715), d), d)
	t := b.unary((*vec.Funcs).Tanh, b.binary(graph.Mul, in, b.number(math.Sqrt2/math.SqrtPi), d), d)
	return b.binary(graph.Mul, b.binary(graph.Mul, x, b.number(0.5), d), b.binary(graph.Add, t, b.number(1), d), d)
}

// node emits one elementwise operation.
func (b *composer) node(n *graph.Node) {
	in := make([]int16, len(n.In))
	for i, o := range n.In {
		in[i] = b.operand(o)
	}
	d := n.DType
	if exact[n.Op] || !d.IsHalf() {
		d = tensor.F32
	}
	var r int16
	switch a := n.Attr.(type) {
	case graph.CompareAttr:
		r = b.emit(micro{code: codeBinary, f2: compares[a.Direction], x: b.whole(in[0]), y: b.whole(in[1])})
	case graph.ConvertAttr:
		from := n.In[0].DType
		switch {
		case n.DType == tensor.Bool && from != tensor.Bool:
			r = b.unary(isTrue, in[0], tensor.F32)
		case n.DType.IsHalf() && from != n.DType:
			r = b.emit(micro{code: codeRound, x: b.whole(in[0]), dtype: n.DType})
		default:
			r = in[0]
		}
	case graph.GeluAttr:
		r = b.activation(a.Form, in[0], n.DType)
	default:
		switch {
		case n.Op == graph.Select:
			r = b.emit(micro{code: codeSelect, x: b.whole(in[0]), y: b.whole(in[1]), z: b.whole(in[2])})
		case n.Op == graph.Modulate:
			r = b.emit(micro{code: codeModulate, x: b.whole(in[0]), y: b.whole(in[1]), z: b.whole(in[2]), dtype: d})
		case n.Op.IsBinary():
			r = b.binary(n.Op, in[0], in[1], d)
		default:
			r = b.unary(unaryFuncs[n.Op], in[0], d)
		}
	}
	b.value[n] = r
}

// allocate maps virtual to real registers: one is free again after its last use.
func (b *composer) allocate() {
	c := b.c
	lastUse := make([]int, b.next)
	for r := range lastUse {
		lastUse[r] = -1 // of an operation that was left out
	}
	for k := range b.ops {
		lastUse[b.ops[k].dst] = k
		for _, r := range b.ops[k].operands() {
			lastUse[r] = k
		}
	}
	for i := range c.stores {
		lastUse[c.stores[i].reg] = len(b.ops)
	}
	real := make([]int16, b.next)
	var free []int16
	if c.fed {
		c.regs = 1
	}
	dying := make([][]int16, len(b.ops)+1)
	for r, k := range lastUse {
		if k >= 0 {
			dying[k] = append(dying[k], int16(r))
		}
	}
	for k := range b.ops {
		m := b.ops[k]
		// The result must not share a register with its operands: a load is an alias, and its register's memory may be
		// another's. Operands are therefore released after the result has its place.
		v := m.dst
		if n := len(free); n > 0 {
			real[v] = free[n-1]
			free = free[:n-1]
		} else {
			real[v] = int16(c.regs)
			c.regs++
		}
		m.dst = real[v]
		m.x, m.y, m.z = real[m.x], real[m.y], real[m.z]
		if m.dtype == tensor.Invalid {
			m.dtype = tensor.F32
		}
		c.ops = append(c.ops, m)
		for _, r := range dying[k] {
			free = append(free, real[r])
		}
	}
	if n := len(c.ops); n > 0 && c.ops[n-1].code >= codeUnary {
		for i := range c.stores {
			s := &c.stores[i]
			if s.reg == b.ops[n-1].dst && s.view.dtype == tensor.F32 && s.strides[len(s.strides)-1] == 1 {
				c.direct = i
			}
		}
	}
	for i := range c.stores {
		c.stores[i].reg = real[c.stores[i].reg]
	}
}
