package mosaic

import (
	"slices"

	"github.com/gesso-go/gesso/graph"
)

// apart reports whether result out of a program should not lie where its input in was: it is the sum of in with a product.
// The compiler adds within the product's loop, and does not fetch ahead what that loop overwrites. (Estimates of libtpu 0.0.52
// for FLUX.1's single block of 1024²: in place 28 MB less, and 8 % more cycles outside kernels on v6e, 28 % on tpu7x.)
func apart(in, out *graph.Node) bool {
	return out.Op == graph.Add && slices.Contains(out.In, in) && slices.ContainsFunc(out.In, endsProduct)
}

// endsProduct reports whether n is a product, or computed from one element by element.
func endsProduct(n *graph.Node) bool {
	switch n.Op {
	case graph.Linear, graph.QuantizedLinear, graph.DotGeneral:
		return true
	}
	return n.Op.IsElementwise() && slices.ContainsFunc(n.In, endsProduct)
}
