package cpu

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// group is what one step computes: a producer with an epilogue, a run of elementwise operations, or a single node.
type group struct {
	first  int         // position of its first node; every operand from outside stands before it
	anchor *graph.Node // the producer, or nil
	nodes  []*graph.Node
	shape  tensor.Shape
	fused  bool // evaluated as a cluster
}

// maxGroup bounds the operations of a group, and so the registers that it may need.
const maxGroup = 48

// fuser orders the nodes of a graph and cuts them into groups.
//
// A node joins the group of one of its operands when all its other operands stand before that group's first node. So
// an edge between two groups always goes from an earlier first node to a later one: the groups have no cycles, and run in
// the order of their first nodes.
type fuser struct {
	order  []*graph.Node
	pos    map[*graph.Node]int // of a renaming: of what it renames; -1 for inputs and constants
	group  map[*graph.Node]*group
	groups []*group
}

// renames reports whether n's value is its operand's memory, read by other indices.
func renames(n *graph.Node) bool {
	switch n.Op {
	case graph.Reshape, graph.OptimizeBarrier, graph.Slice, graph.Transpose, graph.BroadcastInDim:
		return true
	}
	return false
}

// inRegisters reports whether values of d are computed as float32 in clusters.
func inRegisters(d tensor.DType) bool {
	return d == tensor.F32 || d.IsHalf() || d == tensor.Bool
}

// elementwise reports whether a cluster can compute n.
func elementwise(n *graph.Node) bool {
	if !n.Op.IsElementwise() {
		return false
	}
	if n.Op == graph.Convert {
		from := n.In[0].DType
		if !inRegisters(n.DType) { // to an integer: stored from a register
			return n.DType.IsInt() && inRegisters(from)
		}
		return inRegisters(from) || from.IsInt() && from != tensor.I16
	}
	for _, o := range n.In {
		if !inRegisters(o.DType) {
			return false
		}
	}
	return inRegisters(n.DType)
}

// fuse orders and groups the nodes of g.
func fuse(g *graph.Graph) *fuser {
	f := &fuser{pos: make(map[*graph.Node]int), group: make(map[*graph.Node]*group)}
	f.sort(g)
	for i, n := range f.order {
		switch {
		case n.Op == graph.Constant:
			f.pos[n] = -1
		case renames(n):
			f.pos[n] = f.pos[n.In[0]]
		default:
			f.pos[n] = i
			f.add(n)
		}
	}
	return f
}

func (f *fuser) add(n *graph.Node) {
	ew := elementwise(n)
	if ew {
		var best *group
		for _, o := range n.In {
			if g := f.group[o]; g != nil && (best == nil || g.first > best.first) && f.fits(n, g) {
				best = g
			}
		}
		if best != nil {
			best.nodes = append(best.nodes, n)
			f.group[n] = best
			return
		}
	}
	g := &group{first: f.pos[n], nodes: []*graph.Node{n}, shape: n.Shape, fused: ew || anchors(n)}
	if g.fused && !ew {
		g.anchor = n
	}
	f.group[n] = g
	f.groups = append(f.groups, g)
}

// fits reports whether n can join g.
func (f *fuser) fits(n *graph.Node, g *group) bool {
	if !g.fused || len(g.nodes) >= maxGroup || !n.Shape.Equal(g.shape) {
		return false
	}
	for _, o := range n.In {
		if f.group[o] == g {
			// A value that is rounded to an integer when it is stored cannot be used in a register.
			if !o.Shape.Equal(g.shape) || !inRegisters(o.DType) {
				return false
			}
		} else if f.pos[o] >= g.first {
			return false
		}
	}
	return true
}

// anchors reports whether n's kernel hands its result to a cluster, segment by segment.
func anchors(n *graph.Node) bool {
	if n.DType != tensor.F32 && !n.DType.IsHalf() {
		return false
	}
	for _, o := range n.In {
		if o.DType == tensor.F64 {
			return false
		}
	}
	switch n.Op {
	case graph.Linear, graph.QuantizedLinear, graph.Convolution, graph.UpsampleConv, graph.RMSNorm, graph.LayerNorm, graph.GroupNorm, graph.Softmax, graph.Rope:
		return true
	case graph.DotGeneral:
		d := n.In[0].DType
		return d == tensor.F32 || d.IsHalf()
	}
	return false
}

// sort orders the nodes, each after its operands. Operands that a node could be fused with come last, so that everything
// else the fused step needs stands before it.
func (f *fuser) sort(g *graph.Graph) {
	seen := make(map[*graph.Node]bool, len(g.Nodes)+len(g.Inputs))
	for _, n := range g.Inputs {
		f.pos[n] = -1
		seen[n] = true
	}
	type frame struct {
		n    *graph.Node
		in   []*graph.Node
		next int
	}
	var stack []frame
	push := func(n *graph.Node) {
		if !seen[n] {
			seen[n] = true
			stack = append(stack, frame{n: n, in: f.visits(n)})
		}
	}
	for _, out := range g.Outputs {
		push(out)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next < len(top.in) {
				top.next++
				push(top.in[top.next-1])
				continue
			}
			f.order = append(f.order, top.n)
			stack = stack[:len(stack)-1]
		}
	}
}

// visits returns n's operands in the order in which they are made.
func (f *fuser) visits(n *graph.Node) []*graph.Node {
	if !elementwise(n) || len(n.In) == 1 {
		return n.In
	}
	var first, last []*graph.Node
	for _, o := range n.In {
		if o.Shape.Equal(n.Shape) && (elementwise(o) || anchors(o)) {
			last = append(last, o)
		} else {
			first = append(first, o)
		}
	}
	return append(first, last...)
}
