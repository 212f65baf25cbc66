package cpu

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// lower plans one group.
func (p *planner) lower(g *group) error {
	n := g.nodes[0]
	if g.fused {
		return p.lowerCluster(g)
	}
	switch n.Op {
	case graph.Attention:
		if attends(n) {
			p.attend(n)
			return nil
		}
		p.interpret(n)
	case graph.Concatenate:
		p.concatenate(n)
	case graph.Pad:
		p.pad(n)
	case graph.Gather:
		p.gather(n)
	case graph.UpsampleNearest:
		p.upsample(n)
	case graph.Iota:
		return p.iota(n)
	case graph.Reduce:
		if reduces(n) {
			p.reduce(n)
			return nil
		}
		p.interpret(n)
	default:
		p.interpret(n)
	}
	return nil
}

// interpret evaluates n by the reference interpreter: slow, for what has no kernel.
func (p *planner) interpret(n *graph.Node) {
	in := make([]view, len(n.In))
	for i, o := range n.In {
		in[i] = p.dense(o)
	}
	to := p.place(n)
	if n.Bytes() == 0 {
		return
	}
	args := make([]*tensor.Array, len(in))
	for i, v := range in {
		args[i] = &tensor.Array{DType: v.dtype, Shape: v.shape}
	}
	p.add(n.Op, func(f *frame) error {
		for i, v := range in {
			args[i].Data = f.bytes(v)
		}
		out, err := interp.Apply(n, args)
		if err == nil {
			copy(f.bytes(to), out.Data)
		}
		return err
	}, append(in, to)...)
}

// lowerCluster plans a fused group: one pass over its elements, or its producer with the cluster as epilogue.
func (p *planner) lowerCluster(g *group) error {
	var x source
	if g.anchor != nil {
		x = p.source(g.anchor) // may add copies, which come before
	}
	c := compose(p.c.vec, g, p.view, p.place, p.stored(g))
	if c.size == 0 || len(c.stores) == 0 {
		return nil
	}
	var uses []view
	for i := range c.loads {
		uses = append(uses, c.loads[i].view)
	}
	for i := range c.stores {
		uses = append(uses, c.stores[i].view)
	}
	uses = append(uses, x.uses...)
	run := c.pass(p.c)
	if g.anchor != nil {
		run = x.run(c)
	}
	s := p.add(g.nodes[0].Op, run, uses...)
	s.inPlace = takeOvers(c, &x)
	s.weight = x.weight
	return nil
}

// takeOvers lists the operands whose memory a result may take: both whole, read and written element by element in the
// same order, and the operand not used otherwise.
func takeOvers(c *cluster, x *source) []takeOver {
	var list []takeOver
	taken := make(map[*storage]bool)
	for i := range c.stores {
		s := &c.stores[i].view
		if !s.whole() || s.shape.Size() != c.size {
			continue
		}
		fits := func(v *view) bool {
			if !v.whole() || v.shape.Size() != c.size || v.dtype.Size() != s.dtype.Size() || taken[v.st] {
				return false
			}
			uses := 0
			for k := range c.loads {
				if c.loads[k].view.st == v.st {
					uses++
				}
			}
			for k := range x.uses {
				if x.uses[k].st == v.st {
					uses++
				}
			}
			return uses == 1
		}
		try := func(v *view) bool {
			if fits(v) {
				list = append(list, takeOver{v.st, s.st})
				taken[v.st] = true
				return true
			}
			return false
		}
		if x.byRow && len(x.uses) > 0 && try(&x.uses[0]) {
			continue
		}
		for k := range c.loads {
			if try(&c.loads[k].view) {
				break
			}
		}
	}
	return list
}

// pass evaluates the cluster over its whole space.
func (c *cluster) pass(client *Client) func(f *frame) error {
	var current *frame
	piece := func(worker, lo, hi int) { c.eval(current, &client.scratch[worker], lo, hi-lo, nil) }
	return func(f *frame) error {
		current = f
		client.par.For(c.size, chunk*rowGrain(c.size/chunk, chunk), piece)
		return nil
	}
}
