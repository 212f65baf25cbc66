package cpu

import (
	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// momentRows is how many positions are summed before sums are merged. It is fixed, and the merges have a fixed order, so
// that the result doesn't depend on the number of threads.
const momentRows = 256

// groupNorm plans two passes over x (B, …, C): moments of pieces of momentRows positions, merged in order; then
// scale and shift of every channel, with the cluster as epilogue.
func (p *planner) groupNorm(n *graph.Node, a graph.GroupNormAttr) source {
	client, fn := p.c, p.c.vec
	x := p.dense(n.In[0])
	weight, loadWeight := p.vectorOf(n.In[1])
	bias, loadBias := p.vectorOf(n.In[2])
	batch, channels := n.Shape[0], n.Shape[len(n.Shape)-1]
	positions := n.Shape.Size() / max(batch*channels, 1)
	pieces := (positions + momentRows - 1) / momentRows
	moments := make([]vec.Moments, batch*pieces*a.Groups)
	// What is applied to each channel of each image: (x-mean)·scale+bias.
	mean, scale := make([]float32, batch*channels), make([]float32, batch*channels)
	// A segment is several positions, so that few channels make no short segments.
	rows := max(1, chunk/max(channels, 1))
	segments := (positions + rows - 1) / rows

	run := func(c *cluster) func(f *frame) error {
		var current *frame
		var offset []float32
		words := x.dtype == tensor.BF16
		measure := func(worker, lo, hi int) {
			s := &client.scratch[worker]
			scratch := room(&s.row, 3*channels)
			for i := lo; i < hi; i++ {
				b, first := i/pieces, i%pieces*momentRows
				count := min(momentRows, positions-first) * channels
				at, out := x.offset+(b*positions+first)*channels, moments[i*a.Groups:(i+1)*a.Groups]
				if mem := current.mem[x.st.slot]; words {
					fn.GroupMomentsBF16(out, elements[uint16](mem, at, count), channels, scratch)
				} else {
					fn.GroupMoments(out, floats(fn, &x, mem, at, count, &s.alt), channels, scratch)
				}
			}
		}
		apply := func(worker, lo, hi int) {
			s := &client.scratch[worker]
			for i := lo; i < hi; i++ {
				b, first := i/segments, i%segments*rows
				count := min(rows, positions-first) * channels
				at := (b*positions + first) * channels
				m, s2 := mean[b*channels:(b+1)*channels], scale[b*channels:(b+1)*channels]
				mem := current.mem[x.st.slot]
				switch {
				case c.bare && words:
					fn.CentredBF16(elements[uint16](c.memory(current, at, count), 0, count), elements[uint16](mem, x.offset+at, count), m, s2, offset, a.Silu)
				case c.bare && x.dtype == tensor.F32:
					fn.Centred(elements[float32](c.memory(current, at, count), 0, count), elements[float32](mem, x.offset+at, count), m, s2, offset, a.Silu)
				default:
					out := room(&s.row, count)
					fn.Centred(out, floats(fn, &x, mem, x.offset+at, count, &s.alt), m, s2, offset, false)
					c.eval(current, s, at, count, out)
				}
			}
		}
		return func(f *frame) error {
			current = f
			client.par.For(batch*pieces, 1, measure)
			w := loadWeight(f)
			offset = loadBias(f)
			for b := range batch {
				total := moments[b*pieces*a.Groups:][:a.Groups]
				for i := 1; i < pieces; i++ {
					part := moments[(b*pieces+i)*a.Groups:][:a.Groups]
					for g := range total {
						total[g].Merge(part[g])
					}
				}
				vec.GroupScale(mean[b*channels:(b+1)*channels], scale[b*channels:(b+1)*channels], total, w, a.Eps)
			}
			client.par.For(batch*segments, rowGrain(batch*segments, rows*channels), apply)
			return nil
		}
	}
	return source{uses: []view{x, weight, bias}, byRow: true, run: run}
}
