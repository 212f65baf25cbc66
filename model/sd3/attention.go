package sd3

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// qkEps is the epsilon of the norms of queries and keys.
const qkEps = 1e-6

// projection is one stream's way to queries, keys and values.
type projection struct {
	q, k, v      *nn.Linear
	normQ, normK *nn.RMSNorm // nil where the model has none
}

// forward takes x (B, N, D) to queries, keys and values (B, N, H, D/H).
func (p projection) forward(x engine.Value, heads int) (q, k, v engine.Value) {
	q, k, v = nn.Heads(p.q.Forward(x), heads), nn.Heads(p.k.Forward(x), heads), nn.Heads(p.v.Forward(x), heads)
	if p.normQ != nil {
		q, k = p.normQ.Forward(q), p.normK.Forward(k)
	}
	return q, k, v
}

func newNorm(c *Config) *nn.RMSNorm {
	if c.QKNorm == nil {
		return nil
	}
	n := nn.NewRMSNorm(c.HeadDim, qkEps, true)
	return &n
}

// JointAttention is attention over picture and text together, each with its own projections.
type JointAttention struct {
	nn.Module
	Q        nn.Linear   `weight:"to_q"`
	K        nn.Linear   `weight:"to_k"`
	V        nn.Linear   `weight:"to_v"`
	Out      nn.Linear   `weight:"to_out.0"`
	TxtQ     nn.Linear   `weight:"add_q_proj"`
	TxtK     nn.Linear   `weight:"add_k_proj"`
	TxtV     nn.Linear   `weight:"add_v_proj"`
	TxtOut   *nn.Linear  `weight:"to_add_out"` // nil in the last block, which drops the text
	NormQ    *nn.RMSNorm `weight:"norm_q"`
	NormK    *nn.RMSNorm `weight:"norm_k"`
	TxtNormQ *nn.RMSNorm `weight:"norm_added_q"`
	TxtNormK *nn.RMSNorm `weight:"norm_added_k"`
	heads    int
}

func newJointAttention(c *Config, last bool) JointAttention {
	d := c.Width()
	lin := func() nn.Linear { return nn.NewLinear(d, d, true) }
	a := JointAttention{
		Q: lin(), K: lin(), V: lin(), Out: lin(), TxtQ: lin(), TxtK: lin(), TxtV: lin(),
		NormQ: newNorm(c), NormK: newNorm(c), TxtNormQ: newNorm(c), TxtNormK: newNorm(c), heads: c.Heads,
	}
	if !last {
		out := lin()
		a.TxtOut = &out
	}
	return a
}

// Forward takes img (B, N, D) and txt (B, L, D) to values of the same shapes; the second is the zero Value in the last
// block. The picture's rows come first, unlike in FLUX.
func (a *JointAttention) Forward(img, txt engine.Value) (engine.Value, engine.Value) {
	q, k, v := projection{&a.Q, &a.K, &a.V, a.NormQ, a.NormK}.forward(img, a.heads)
	tq, tk, tv := projection{&a.TxtQ, &a.TxtK, &a.TxtV, a.TxtNormQ, a.TxtNormK}.forward(txt, a.heads)
	o := nn.Attend(engine.Concat(1, q, tq), engine.Concat(1, k, tk), engine.Concat(1, v, tv)) // (B, N+L, D)
	n, l := img.Dim(1), txt.Dim(1)
	outImg := a.Out.Forward(o.Slice(1, 0, n))
	if a.TxtOut == nil {
		a.TapChild("out0", outImg)
		if eng := o.Engine(); eng != nil && eng.Tapping() { // else nobody would ever read it, and o would wait for that
			a.TapChild("out1", o.Slice(1, n, n+l))
		}
		return outImg, engine.Value{}
	}
	outTxt := a.TxtOut.Forward(o.Slice(1, n, n+l))
	a.TapAll(outImg, outTxt)
	return outImg, outTxt
}

// SelfAttention is attention of the picture alone.
type SelfAttention struct {
	nn.Module
	Q     nn.Linear   `weight:"to_q"`
	K     nn.Linear   `weight:"to_k"`
	V     nn.Linear   `weight:"to_v"`
	Out   nn.Linear   `weight:"to_out.0"`
	NormQ *nn.RMSNorm `weight:"norm_q"`
	NormK *nn.RMSNorm `weight:"norm_k"`
	heads int
}

func newSelfAttention(c *Config) *SelfAttention {
	d := c.Width()
	lin := func() nn.Linear { return nn.NewLinear(d, d, true) }
	return &SelfAttention{Q: lin(), K: lin(), V: lin(), Out: lin(), NormQ: newNorm(c), NormK: newNorm(c), heads: c.Heads}
}

// Forward keeps the shape of x (B, N, D).
func (a *SelfAttention) Forward(x engine.Value) engine.Value {
	return a.Tap(a.Out.Forward(nn.Attend(projection{&a.Q, &a.K, &a.V, a.NormQ, a.NormK}.forward(x, a.heads))))
}
