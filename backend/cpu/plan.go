package cpu

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// step is one entry of a program.
type step struct {
	op      graph.Op
	run     func(f *frame) error
	uses    []*storage
	inPlace []takeOver
	weight  *storage // among uses: taken packed, where it is
}

// takeOver is a result that may take over an operand's memory if the operand dies in that step.
type takeOver struct{ from, to *storage }

// result says where an output of the program is.
type result struct {
	st   *storage
	node *graph.Node
}

// program is a plan: what a run does, and with which memory.
type program struct {
	steps    []step
	storages []*storage
	inputs   []*storage
	results  []result
	outputs  []*storage // that need a block
	temps    []*storage
	slots    int
	arena    int // bytes of temps
	blocks   int // bytes of outputs
}

// planner turns a graph into a program.
type planner struct {
	c     *Client
	g     *graph.Graph
	prog  *program
	fuser *fuser
	users map[*graph.Node][]*graph.Node
	isOut map[*graph.Node]bool
	val   map[*graph.Node]view
	parts map[*graph.Node][]bool // which operands of a concatenation their steps write in place
}

// plan plans g.
func plan(c *Client, g *graph.Graph) (*program, error) {
	p := &planner{
		c: c, g: g, prog: &program{}, fuser: fuse(g),
		users: make(map[*graph.Node][]*graph.Node), isOut: make(map[*graph.Node]bool),
		val: make(map[*graph.Node]view), parts: make(map[*graph.Node][]bool),
	}
	for i, n := range g.Inputs {
		st := p.storage(input, n.Bytes())
		p.prog.inputs = append(p.prog.inputs, st)
		st.slot = i
		p.val[n] = denseView(st, n.Type)
	}
	for _, n := range p.fuser.order {
		for _, o := range n.In {
			p.users[o] = append(p.users[o], n)
		}
	}
	for _, n := range g.Outputs {
		p.isOut[n] = true
	}
	p.placeConcatenations()
	for _, g := range p.fuser.groups {
		if err := p.lower(g); err != nil {
			return nil, fmt.Errorf("%s: %w", g.nodes[0].Op, err)
		}
	}
	p.finish()
	return p.prog, nil
}

func (p *planner) storage(kind storageKind, bytes int) *storage {
	st := &storage{kind: kind, bytes: bytes, first: -1}
	p.prog.storages = append(p.prog.storages, st)
	return st
}

// add appends a step that uses the given views.
func (p *planner) add(op graph.Op, run func(f *frame) error, uses ...view) *step {
	s := step{op: op, run: run}
	for _, v := range uses {
		s.uses = append(s.uses, v.st)
	}
	p.prog.steps = append(p.prog.steps, s)
	return &p.prog.steps[len(p.prog.steps)-1]
}

// view returns where n's value is.
func (p *planner) view(n *graph.Node) view {
	if v, ok := p.val[n]; ok {
		return v
	}
	var v view
	switch {
	case n.Op == graph.Constant:
		st := p.storage(constant, n.Bytes())
		st.data = aligned(n.Attr.(graph.ConstantAttr).Value)
		v = denseView(st, n.Type)
	case n.Op == graph.Reshape:
		var ok bool
		if v, ok = p.view(n.In[0]).reshape(n.Shape); !ok {
			v, _ = p.dense(n.In[0]).reshape(n.Shape)
		}
	case renames(n):
		v = p.view(n.In[0]).along(n)
	default:
		panic("cpu: the value of " + n.Op.String() + " is used before it is planned")
	}
	p.val[n] = v
	return v
}

// dense returns n's value in row-major order, copied if need be.
func (p *planner) dense(n *graph.Node) view {
	v := p.view(n)
	if !v.dense() {
		v = p.copied(v, n.Op)
		p.val[n] = v
	}
	return v
}

// copied returns a dense copy of v.
func (p *planner) copied(v view, op graph.Op) view {
	t := graph.Type{DType: v.dtype, Shape: v.shape}
	to := denseView(p.storage(temporary, t.Bytes()), t)
	p.copy(op, to, v)
	return to
}

// place returns the memory that n's value is written to.
func (p *planner) place(n *graph.Node) view {
	if v, ok := p.val[n]; ok {
		return v
	}
	v := denseView(p.storage(temporary, n.Bytes()), n.Type)
	p.val[n] = v
	return v
}

// stored reports whether n's value is needed outside its group.
func (p *planner) stored(g *group) func(n *graph.Node) bool {
	return func(n *graph.Node) bool {
		if p.isOut[n] {
			return true
		}
		for _, u := range p.users[n] {
			if p.fuser.group[u] != g {
				return true
			}
		}
		return false
	}
}

// placeConcatenations gives the operands of concatenations their place in the result, where their steps can write
// there. Later concatenations come first: one may lie within another.
func (p *planner) placeConcatenations() {
	for i := len(p.fuser.order) - 1; i >= 0; i-- {
		n := p.fuser.order[i]
		if n.Op != graph.Concatenate {
			continue
		}
		whole := p.place(n)
		axis, at := n.Attr.(graph.ConcatenateAttr).Axis, 0
		p.parts[n] = make([]bool, len(n.In))
		for k, o := range n.In {
			part := piece(whole, axis, at, o.Shape[axis])
			at += o.Shape[axis]
			maker := o
			for maker.Op == graph.Reshape {
				maker = maker.In[0]
			}
			g := p.fuser.group[maker]
			if _, taken := p.val[maker]; taken || g == nil || !(g.fused || maker.Op == graph.Concatenate || attends(maker)) || p.isOut[maker] || p.isOut[o] {
				continue
			}
			v, ok := part.reshape(maker.Shape)
			if last := len(maker.Shape) - 1; maker.Op == graph.Attention && ok && v.strides[last] != 1 {
				ok = false
			}
			if ok {
				p.val[maker] = v
				p.parts[n][k] = true
			}
		}
	}
}

// piece returns n indices of v along axis from at on.
func piece(v view, axis, at, n int) view {
	out := v
	out.shape = v.shape.Clone()
	out.shape[axis] = n
	out.offset += at * v.strides[axis]
	return out
}

// aligned returns a's data, aligned for its elements.
func aligned(a *tensor.Array) []byte {
	if misaligned(a) {
		return append(heapBytes(len(a.Data))[:0], a.Data...)
	}
	return a.Data
}

// finish decides where the outputs are, when each storage is alive, and where the temporary ones lie.
func (p *planner) finish() {
	for _, n := range p.g.Outputs {
		v := p.view(n)
		switch {
		case v.whole() && v.st.kind == temporary:
			v.st.kind = output
		case v.whole() && v.st.kind == input, v.whole() && v.st.kind == output:
		default:
			st := p.storage(output, n.Bytes())
			p.copy(n.Op, denseView(st, n.Type), v)
			p.val[n] = denseView(st, n.Type)
		}
		p.prog.results = append(p.prog.results, result{p.val[n].st, n})
	}
	p.prog.layOut()
}
