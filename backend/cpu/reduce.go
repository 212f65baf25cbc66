package cpu

import (
	"slices"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/graph/interp"
	"github.com/gesso-go/gesso/tensor"
)

// reduces reports whether n is a sum or a maximum over its last axes that reduce can plan.
func reduces(n *graph.Node) bool {
	if n.DType != tensor.F32 && !n.DType.IsHalf() || n.In[0].Bytes() == 0 {
		return false
	}
	a := n.Attr.(graph.ReduceAttr)
	axes := slices.Sorted(slices.Values(a.Axes))
	for i, ax := range axes {
		if ax != len(n.In[0].Shape)-len(axes)+i {
			return false
		}
	}
	return a.Kind == graph.ReduceSum || a.Kind == graph.ReduceMax
}

// reduce plans a reduction of rows that lie in one piece. Chunks of a row are summed in float32 and added up in float64.
func (p *planner) reduce(n *graph.Node) {
	x, to := p.dense(n.In[0]), p.place(n)
	rows := n.Shape.Size()
	width := x.shape.Size() / rows
	client, fn, most := p.c, p.c.vec, n.Attr.(graph.ReduceAttr).Kind == graph.ReduceMax
	p.add(n.Op, func(f *frame) error {
		client.par.For(rows, rowGrain(rows, width), func(worker, lo, hi int) {
			s := &client.scratch[worker]
			var out [1]float32
			for i := lo; i < hi; i++ {
				sum := 0.0
				for at := 0; at < width; at += chunk {
					part := floats(fn, &x, f.mem[x.st.slot], x.offset+i*width+at, min(chunk, width-at), &s.alt)
					switch {
					case !most:
						sum += float64(fn.Sum(part))
					case at == 0:
						sum = float64(fn.MaxOf(part))
					default:
						fn.Max(out[:], []float32{float32(sum)}, []float32{fn.MaxOf(part)}) // NaN stays
						sum = float64(out[0])
					}
				}
				out[0] = float32(sum)
				narrow(fn, n.DType, f.mem[to.st.slot], to.offset+i, out[:])
			}
		})
		return nil
	}, x, to)
}

// iota makes n a constant of the program.
func (p *planner) iota(n *graph.Node) error {
	a, err := interp.Apply(n, nil)
	if err != nil {
		return err
	}
	st := p.storage(constant, n.Bytes())
	st.data = aligned(a)
	p.val[n] = denseView(st, n.Type)
	return nil
}
