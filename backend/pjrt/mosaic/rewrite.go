package mosaic

import (
	"encoding/binary"
	"math"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// attentionAttr replaces graph.AttentionAttr of attention that this package writes.
type attentionAttr struct {
	scale float64 // times log2(e); 1 where the queries are scaled
	width int     // of the result's rows, of which attention is the first H·D numbers and the rest is unset; 0 for no more
}

// normRopeAttr is the attribute of a rope whose operands are x (B, N, H, D), the norm's weight (D), cos and sin: norm and
// rotation in one.
type normRopeAttr struct {
	norm  graph.RMSNormAttr
	scale float64
	first int // row of the tables that belongs to x's first
	rows  int // from row first of x on, the others are left as they are; 0 for all of x
}

// normModulateAttr is the attribute of a modulation whose first operand is what the norm takes.
type normModulateAttr struct{ eps float64 }

// unsetAttr is the attribute of an attention without operands: a value that is written in parts, and holds anything before.
type unsetAttr struct{}

func (unsetAttr) AppendKey(b []byte) []byte { return append(b, 'u') }

func appendFloats(b []byte, vs ...float64) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func (a attentionAttr) AppendKey(b []byte) []byte {
	return appendFloats(append(b, 'm'), a.scale, float64(a.width))
}
func (a normModulateAttr) AppendKey(b []byte) []byte { return appendFloats(append(b, 'm'), a.eps) }
func (a normRopeAttr) AppendKey(b []byte) []byte {
	return appendFloats(a.norm.AppendKey(append(b, 'm')), a.scale, float64(a.first), float64(a.rows))
}

// rewriter puts what the kernels compute into single nodes.
type rewriter struct {
	chip  Chip
	plain bool // kernels are not to be used
	users map[*graph.Node][]*graph.Node
	at    map[*graph.Node]*graph.Node
	err   error
}

// rewrite returns g with attention, and norm and rotation of queries and keys, as nodes that the kernels write. Parts of a
// sequence are joined as matrices of rows: a join of heads would be a copy into another layout.
func (r *rewriter) rewrite(g *graph.Graph) (*graph.Graph, error) {
	r.users, r.at = map[*graph.Node][]*graph.Node{}, map[*graph.Node]*graph.Node{}
	for _, n := range g.Nodes {
		for _, c := range n.In {
			r.users[c] = append(r.users[c], n)
		}
	}
	for _, o := range g.Outputs {
		r.users[o] = append(r.users[o], nil)
	}
	for _, n := range g.Nodes {
		r.at[n] = r.node(n)
	}
	outs := make([]*graph.Node, len(g.Outputs))
	for i, o := range g.Outputs {
		outs[i] = r.new(o)
	}
	if r.err != nil {
		return nil, r.err
	}
	return graph.New(g.Name, g.Inputs, outs)
}

// new is what has become of n.
func (r *rewriter) new(n *graph.Node) *graph.Node {
	if m, ok := r.at[n]; ok {
		return m
	}
	return n
}

func (r *rewriter) make(op graph.Op, attr graph.Attr, in ...*graph.Node) *graph.Node {
	n, err := graph.Make(op, attr, in...)
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return in[0]
	}
	return n
}

func (r *rewriter) node(n *graph.Node) *graph.Node {
	switch n.Op {
	case graph.Rope:
		if m := r.rope(n); m != nil {
			return m
		}
	case graph.Attention:
		if r.attends(n) {
			return r.attention(n, 0, n.Type)
		}
	case graph.Linear:
		if m := r.stored(n); m != nil {
			return m
		}
	case graph.Modulate:
		if m := r.modulate(n); m != nil {
			return m
		}
	case graph.Concatenate:
		if m := r.join(n); m != nil {
			return m
		}
		if m := r.beside(n); m != nil {
			return m
		}
	}
	in := make([]*graph.Node, len(n.In))
	changed := false
	for i, c := range n.In {
		in[i] = r.new(c)
		changed = changed || in[i] != c
	}
	if !changed {
		return n
	}
	return &graph.Node{Op: n.Op, Attr: n.Attr, In: in, Type: n.Type}
}

// attention is n with a result of type t, whose rows are of the given width.
func (r *rewriter) attention(n *graph.Node, width int, t graph.Type) *graph.Node {
	scale := n.Attr.(graph.AttentionAttr).Scale * math.Log2E
	if r.foldable(n.In[0]) && !r.plain && r.covers(n) {
		scale = 1
	}
	return &graph.Node{Op: n.Op, Attr: attentionAttr{scale, width}, In: []*graph.Node{r.new(n.In[0]), r.new(n.In[1]), r.new(n.In[2])}, Type: t}
}

// attends reports whether this package writes an attention, as a kernel or in plain operations.
func (r *rewriter) attends(n *graph.Node) bool {
	a := n.Attr.(graph.AttentionAttr)
	q, k := n.In[0].Shape, n.In[1].Shape
	return n.DType == tensor.BF16 && a.Scale > 0 && !a.Bias && !a.Mask && !a.Causal && q[2] == k[2] && q[1] > 0 && k[1] > 0
}

// covers reports whether the attention kernel can compute n.
func (r *rewriter) covers(n *graph.Node) bool {
	s, ok := r.chip.attentionShape(n)
	return ok && s.vmemBytes() <= r.chip.vmem
}

// attentionShape returns the shape of the kernel for one row of n's batch.
func (c Chip) attentionShape(n *graph.Node) (attentionShape, bool) {
	q, k := n.In[0].Shape, n.In[1].Shape
	s := attentionShape{heads: q[2], headSize: q[3], queries: q[1], keys: k[1], tile: c.tileFor(q[1], k[1])}
	return s, (s.headSize == 64 || s.headSize == 128) && s.heads%s.headsPerBlock() == 0
}

// normed returns the norm that n is, if the kernel covers it.
func (r *rewriter) normed(n *graph.Node) bool {
	if n.Op != graph.RMSNorm || n.DType != tensor.BF16 || len(n.Shape) != 4 {
		return false
	}
	return n.Attr.(graph.RMSNormAttr).Weight
}

// parts returns the norms that a rope rotates, in the order of the sequence; nil if it rotates something else.
func (r *rewriter) parts(rope *graph.Node) []*graph.Node {
	if r.plain || rope.Attr == nil || rope.DType != tensor.BF16 || rope.Shape[3] != lanes || rope.In[1].DType != tensor.F32 {
		return nil
	}
	if a, ok := rope.Attr.(graph.RopeAttr); !ok || a.HalfSplit {
		return nil
	}
	x := rope.In[0]
	if r.normed(x) {
		return []*graph.Node{x}
	}
	if x.Op != graph.Concatenate || x.Attr.(graph.ConcatenateAttr).Axis != 1 {
		return nil
	}
	for _, p := range x.In {
		if !r.normed(p) {
			return nil
		}
	}
	return x.In
}

// foldable reports whether q is written by the norm-and-rotation kernel for one attention only, which then need not scale.
func (r *rewriter) foldable(q *graph.Node) bool {
	if q.Op != graph.Rope || r.parts(q) == nil || len(r.users[q]) != 1 {
		return false
	}
	a := r.users[q][0]
	return a != nil && a.Op == graph.Attention && a.In[0] == q && a.In[1] != q && a.In[2] != q && r.attends(a) && r.covers(a)
}

// rope writes norm and rotation of each part: in place, within the one value that products are written into, or else joined as
// rows.
func (r *rewriter) rope(n *graph.Node) *graph.Node {
	parts := r.parts(n)
	if parts == nil {
		return nil
	}
	scale := 1.0
	if r.foldable(n) {
		scale = r.users[n][0].Attr.(graph.AttentionAttr).Scale * math.Log2E
	}
	cos, sin := r.new(n.In[1]), r.new(n.In[2])
	if len(parts) > 1 && r.inBlocks(parts) {
		x := r.beneath(n.Type, parts, func(p *graph.Node) *graph.Node { return p.In[0].In[0] })
		first := 0
		for _, p := range parts {
			x = &graph.Node{
				Op: graph.Rope, Attr: normRopeAttr{p.Attr.(graph.RMSNormAttr), scale, first, p.Shape[1]},
				In: []*graph.Node{x, r.new(p.In[1]), cos, sin}, Type: n.Type,
			}
			first += p.Shape[1]
		}
		return x
	}
	rows := make([]*graph.Node, len(parts))
	first := 0
	for i, p := range parts {
		rows[i] = &graph.Node{
			Op: graph.Rope, Attr: normRopeAttr{p.Attr.(graph.RMSNormAttr), scale, first, 0},
			In: []*graph.Node{r.new(p.In[0]), r.new(p.In[1]), cos, sin}, Type: p.Type,
		}
		first += p.Shape[1]
	}
	return r.joined(rows)
}

// join is a concatenation of heads along the sequence, made of rows. Products are written beside each other into one buffer:
// joined, they would be copied (a double block of FLUX.1 on v6e: 0.3 M cycles).
func (r *rewriter) join(n *graph.Node) *graph.Node {
	if len(n.Shape) != 4 || n.Attr.(graph.ConcatenateAttr).Axis != 1 || len(n.In) < 2 {
		return nil
	}
	parts := make([]*graph.Node, len(n.In))
	products := !r.plain
	for i, p := range n.In {
		if p.Op != graph.Reshape || len(p.In[0].Shape) != 3 || p.In[0].Shape[2] != p.Shape[2]*p.Shape[3] {
			return nil
		}
		parts[i] = r.new(p)
		products = products && r.product(p)
	}
	if !products {
		return r.joined(parts)
	}
	return r.beneath(n.Type, n.In, func(p *graph.Node) *graph.Node { return p.In[0] })
}

// beneath writes products (B, N, H·D), each of a part (B, N, H, D), beneath each other into one value of type t.
func (r *rewriter) beneath(t graph.Type, parts []*graph.Node, product func(part *graph.Node) *graph.Node) *graph.Node {
	s := t.Shape
	out := &graph.Node{Op: graph.Attention, Attr: unsetAttr{}, Type: graph.Type{DType: t.DType, Shape: tensor.Shape{s[0], s[1], s[2] * s[3]}}}
	at := 0
	for _, p := range parts {
		out = r.make(graph.DynamicUpdate, nil, out, r.new(product(p)), index(0), index(at), index(0))
		at += p.Shape[1]
	}
	return r.make(graph.Reshape, graph.ReshapeAttr{Shape: s}, out)
}

// product reports whether p is heads (B, N, H, D) of a product (B, N, H·D) that nobody else uses.
func (r *rewriter) product(p *graph.Node) bool {
	return p.Op == graph.Reshape && p.In[0].Op == graph.Linear && len(p.In[0].Shape) == 3 && p.In[0].Shape[2] == p.Shape[2]*p.Shape[3] &&
		len(r.users[p]) == 1 && len(r.users[p.In[0]]) == 1
}

// inBlocks reports whether norm and rotation of parts can work within one value: each is a product, used once, and begins
// where a block of the kernel does.
func (r *rewriter) inBlocks(parts []*graph.Node) bool {
	first := 0
	for _, p := range parts {
		if p.Shape[0] != 1 || first%normRopeRows != 0 || len(r.users[p]) != 1 || !r.product(p.In[0]) {
			return false
		}
		first += p.Shape[1]
	}
	return true
}

// joined concatenates values (B, N, H, D) along N through (B, N, H·D).
func (r *rewriter) joined(parts []*graph.Node) *graph.Node {
	if len(parts) == 1 {
		return parts[0]
	}
	s := parts[0].Shape
	total := 0
	flat := make([]*graph.Node, len(parts))
	for i, p := range parts {
		flat[i] = r.make(graph.Reshape, graph.ReshapeAttr{Shape: tensor.Shape{s[0], p.Shape[1], s[2] * s[3]}}, p)
		total += p.Shape[1]
	}
	x := r.make(graph.Concatenate, graph.ConcatenateAttr{Axis: 1}, flat...)
	return r.make(graph.Reshape, graph.ReshapeAttr{Shape: tensor.Shape{s[0], total, s[2], s[3]}}, x)
}

// modulate is a layer norm without parameters of x (B, N, D), scaled and shifted by rows (1 or B, 1, D).
func (r *rewriter) modulate(n *graph.Node) *graph.Node {
	norm := n.In[0]
	if r.plain || norm.Op != graph.LayerNorm || n.DType != tensor.BF16 || len(n.Shape) != 3 || n.Shape[2]%lanes != 0 || n.Shape[2] > maxWidth {
		return nil
	}
	a := norm.Attr.(graph.LayerNormAttr)
	if a.Affine || !norm.Shape.Equal(n.Shape) || n.Shape[1] < normModulateChunk {
		return nil
	}
	for _, m := range n.In[1:] {
		if len(m.Shape) != 3 || m.Shape[1] != 1 || m.Shape[2] != n.Shape[2] || m.Shape[0] != n.Shape[0] {
			return nil
		}
	}
	return &graph.Node{Op: n.Op, Attr: normModulateAttr{a.Eps}, In: []*graph.Node{r.new(norm.In[0]), r.new(n.In[1]), r.new(n.In[2])}, Type: n.Type}
}

// maxWidth is the widest row whose block fits the chip's own memory beside everything else.
const maxWidth = 8192
