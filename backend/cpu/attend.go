package cpu

import (
	"github.com/gesso-go/gesso/backend/cpu/attention"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// attends reports whether the attention kernel takes n: there are keys, and the scale is not 0, which means something else
// to it.
func attends(n *graph.Node) bool {
	return n.Op == graph.Attention && n.DType != tensor.F64 && n.In[1].Shape[1] > 0 && n.Attr.(graph.AttentionAttr).Scale != 0
}

// headsOf returns a (B, N, H, D) value whose heads are contiguous; slices of a projection stay where they are.
func (p *planner) headsOf(n *graph.Node) view {
	v := p.view(n)
	if v.shape[3] > 1 && v.strides[3] != 1 {
		v = p.dense(n)
	}
	return v
}

func (f *frame) heads(v view) attention.View {
	return attention.View{Data: f.from(v), Batch: v.strides[0], Token: v.strides[1], Head: v.strides[2]}
}

// attend plans attention.
func (p *planner) attend(n *graph.Node) {
	a := n.Attr.(graph.AttentionAttr)
	q, k, v := p.headsOf(n.In[0]), p.headsOf(n.In[1]), p.headsOf(n.In[2])
	uses := []view{q, k, v}
	var bias, mask *view
	next := 3
	if a.Bias {
		b := p.dense(n.In[next])
		next++
		s := n.Shape
		b = b.broadcast(tensor.Shape{s[0], s[2], s[1], k.shape[1]})
		bias = &b
		uses = append(uses, b)
	}
	if a.Mask {
		m := p.dense(n.In[next])
		s := n.Shape
		m = m.broadcast(tensor.Shape{s[0], s[2], s[1], k.shape[1]})
		mask = &m
		uses = append(uses, m)
	}
	to := p.place(n)
	if n.Shape.Size() == 0 {
		return
	}
	problem := attention.Problem{
		B: n.Shape[0], Nq: n.Shape[1], Nk: k.shape[1], H: n.Shape[2], Hkv: k.shape[2], D: n.Shape[3], DType: n.DType,
		Scale: float32(a.Scale), Causal: a.Causal,
	}
	client := p.c
	p.add(n.Op, func(f *frame) error {
		r := problem
		r.Q, r.K, r.V, r.Out = f.heads(q), f.heads(k), f.heads(v), f.heads(to)
		if bias != nil {
			data := f.from(*bias)
			r.Bias = attention.Bias{Batch: bias.strides[0], Head: bias.strides[1], Query: bias.strides[2]}
			if bias.dtype == tensor.F32 {
				r.Bias.Data = elements[float32](data, 0, len(data)/4)
			} else {
				r.Bias.Half, r.Bias.HalfType = elements[uint16](data, 0, len(data)/2), bias.dtype
			}
		}
		if mask != nil {
			r.Mask = attention.Mask{Data: f.from(*mask), Batch: mask.strides[0], Head: mask.strides[1], Query: mask.strides[2]}
		}
		return attention.Run(client.par, client.level, &r)
	}, append(uses, to)...)
}
