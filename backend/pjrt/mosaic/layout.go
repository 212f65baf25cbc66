package mosaic

import (
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// stored is a linear layer whose operand is another's activation, which is stored in bfloat16 in between. Left alone, XLA
// joins the activation to the second product, computes it once for every block of that product's columns, and keeps the sums
// before it in f32 (a double block of FLUX.1 on v6e: 0.2 GB more through the device's memory and 76 MB more of it).
func (r *rewriter) stored(n *graph.Node) *graph.Node {
	x := n.In[0]
	if x.Op != graph.Linear || x.DType != tensor.BF16 || x.Attr.(graph.LinearAttr).Act == graph.NoActivation {
		return nil
	}
	in := []*graph.Node{r.make(graph.OptimizeBarrier, nil, r.new(x))}
	for _, c := range n.In[1:] {
		in = append(in, r.new(c))
	}
	return &graph.Node{Op: n.Op, Attr: n.Attr, In: in, Type: n.Type}
}

// beside is a concatenation of attention (B, N, H·D) and other values along their last axis: the kernel writes into the
// result's columns, and the others are put beside it, which XLA does as it computes them. It would not make the
// concatenation before a product, but read from both operands for each block of the product (a single block of FLUX.1 on v6e:
// 0.3 M cycles).
func (r *rewriter) beside(n *graph.Node) *graph.Node {
	last := len(n.Shape) - 1
	if r.plain || len(n.In) < 2 || last != 2 || n.Shape[0] != 1 || n.Attr.(graph.ConcatenateAttr).Axis != last {
		return nil
	}
	merged := n.In[0]
	if merged.Op != graph.Reshape || len(r.users[merged]) != 1 {
		return nil
	}
	a := merged.In[0]
	if a.Op != graph.Attention || len(r.users[a]) != 1 || !r.attends(a) || !r.covers(a) {
		return nil
	}
	out := r.attention(a, n.Shape[last], n.Type)
	at := merged.Shape[last]
	for _, x := range n.In[1:] {
		zero, from := index(0), index(at)
		out = r.make(graph.DynamicUpdate, nil, out, r.new(x), zero, zero, from)
		at += x.Shape[last]
	}
	return out
}

func index(v int) *graph.Node { return graph.NewConstant(tensor.FromInt32([]int32{int32(v)})) }
