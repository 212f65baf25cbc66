package stablehlo

import "github.com/gesso-go/gesso/graph"

// roundingConstant is what graph's decompositions add and subtract to round to the nearest integer, see graph's nearestEven.
const roundingConstant = 3 << 22

// rounded returns the value that n rounds to integers, if that is what n is the last operation of: x + c, a barrier, - c.
// StableHLO has an operation for it. Written as a sum it could go wrong: a compiler that multiplies and adds at once, as
// XLA's for processors did, would not round the product first.
func rounded(n *graph.Node) (x *graph.Node, between [2]*graph.Node, ok bool) {
	if n.Op != graph.Sub || !isRoundingConstant(n.In[1]) || n.In[0].Op != graph.OptimizeBarrier {
		return nil, between, false
	}
	add := n.In[0].In[0]
	if add.Op != graph.Add || !isRoundingConstant(add.In[1]) || !add.In[0].Type.Equal(n.Type) {
		return nil, between, false
	}
	return add.In[0], [2]*graph.Node{add, n.In[0]}, true
}

func isRoundingConstant(n *graph.Node) bool {
	c, ok := n.Attr.(graph.ConstantAttr)
	return ok && c.Value.Shape.Size() == 1 && c.Value.Float64s()[0] == roundingConstant
}

// roundings finds the roundings of a graph: what each rounds, and the nodes that needn't be written for them.
func roundings(g *graph.Graph) (of map[*graph.Node]*graph.Node, skip map[*graph.Node]bool) {
	for _, n := range g.Nodes {
		if x, between, ok := rounded(n); ok {
			if of == nil {
				of, skip = map[*graph.Node]*graph.Node{}, map[*graph.Node]bool{}
			}
			of[n] = x
			skip[between[0]], skip[between[1]] = true, true
		}
	}
	if of == nil {
		return nil, nil
	}
	for _, n := range g.Nodes { // what somebody else uses is written all the same
		if of[n] == nil && !skip[n] {
			for _, c := range n.In {
				delete(skip, c)
			}
		}
	}
	for _, n := range g.Outputs {
		delete(skip, n)
	}
	for _, n := range g.Nodes { // and so is what it is made of
		if n.Op == graph.OptimizeBarrier && !skip[n] {
			delete(skip, n.In[0])
		}
	}
	return of, skip
}
