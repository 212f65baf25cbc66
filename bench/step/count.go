package step

import (
	"context"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/graph"
)

// counter is a client that adds up the operations of what it runs.
type counter struct {
	*cpu.Client
	flops atomic.Int64
}

// Compile counts the program once.
func (c *counter) Compile(ctx context.Context, g *graph.Graph, device int) (backend.Executable, error) {
	e, err := c.Client.Compile(ctx, g, device)
	if err != nil {
		return nil, err
	}
	n := int64(0)
	for _, node := range g.Nodes {
		n += flops(node)
	}
	return &counted{Executable: e, flops: n, c: c}, nil
}

type counted struct {
	backend.Executable
	flops int64
	c     *counter
}

// Run counts one execution.
func (e *counted) Run(args []backend.Buffer) ([]backend.Buffer, backend.Event, error) {
	e.c.flops.Add(e.flops)
	return e.Executable.Run(args)
}

// flops returns the multiplications and additions of a product, a convolution or attention; what moves or changes
// elements one by one counts for nothing, as is the custom.
func flops(n *graph.Node) int64 {
	size := int64(n.Shape.Size())
	switch a := n.Attr.(type) {
	case graph.LinearAttr: // (…, K)·(N, K)ᵀ
		return 2 * size * int64(n.In[1].Shape[1])
	case graph.QuantizedLinearAttr:
		return 2 * size * int64(n.In[1].Shape[1])
	case graph.DotGeneralAttr:
		k := int64(1)
		for _, ax := range a.LhsContract {
			k *= int64(n.In[0].Shape[ax])
		}
		return 2 * size * k
	case graph.ConvolutionAttr: // weight (O, C, KH, KW)
		w := n.In[1].Shape
		return 2 * size * int64(w.Size()/max(w[0], 1))
	case graph.UpsampleConvAttr: // as if it were done after the upsampling
		w := n.In[1].Shape
		return 2 * size * int64(w.Size()/max(w[0], 1))
	case graph.AttentionAttr: // (B, N, H, D) with M keys: two products
		f := 4 * size * int64(n.In[1].Shape[1])
		if a.Causal {
			f /= 2
		}
		return f
	}
	return 0
}
