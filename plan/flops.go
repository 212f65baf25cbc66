package plan

import "github.com/gesso-go/gesso/graph"

// Flops counts the multiplications and additions of a graph's products: what a matrix unit does. Loops that a backend makes
// of an operation don't matter to it.
func Flops(g *graph.Graph) float64 {
	total := 0.0
	for _, n := range g.Nodes {
		out := float64(n.Shape.Size())
		switch n.Op {
		case graph.Linear:
			total += 2 * out * float64(n.In[1].Shape[1])
		case graph.Attention:
			q, k := n.In[0].Shape, n.In[1].Shape
			total += 4 * float64(q.Size()) * float64(k[1])
		case graph.Convolution, graph.UpsampleConv: // the latter as if it were done after the upsampling
			w := n.In[1].Shape // (O, C, KH, KW)
			total += 2 * out * float64(w[1]*w[2]*w[3])
		case graph.DotGeneral:
			k := 1
			for _, a := range n.Attr.(graph.DotGeneralAttr).LhsContract {
				k *= n.In[0].Shape[a]
			}
			total += 2 * out * float64(k)
		}
	}
	return total
}
