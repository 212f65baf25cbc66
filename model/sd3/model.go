package sd3

import (
	"slices"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// Model is the transformer.
type Model struct {
	nn.Module
	Config          Config
	PosEmbed        PatchEmbed                `weight:"pos_embed"`
	TimeText        nn.TimeTextEmbedding      `weight:"time_text_embed"`
	ContextEmbedder nn.Linear                 `weight:"context_embedder"`
	Blocks          []*Block                  `weight:"transformer_blocks"`
	NormOut         nn.AdaLayerNormContinuous `weight:"norm_out"`
	ProjOut         nn.Linear                 `weight:"proj_out"`
}

// New returns an unbound model. The configuration must be valid.
func New(c Config) *Model {
	d := c.Width()
	m := &Model{
		Config:          c,
		PosEmbed:        newPatchEmbed(&c),
		TimeText:        nn.NewTimeTextEmbedding(d, c.PooledDim, false),
		ContextEmbedder: nn.NewLinear(c.JointDim, c.CaptionDim, true),
		NormOut:         nn.NewAdaLayerNormContinuous(d, d),
		ProjOut:         nn.NewLinear(d, c.PatchSize*c.PatchSize*c.Out(), true),
	}
	for i := range c.Layers {
		m.Blocks = append(m.Blocks, newBlock(&c, i))
	}
	return m
}

// PatchEmbed turns latents into tokens and adds their place in the picture, from a table that is cut out of its middle.
type PatchEmbed struct {
	nn.Module
	Proj  nn.Conv2D `weight:"proj"`
	Table nn.Param  `weight:"pos_embed"` // (1, max², D)
	max   int
}

func newPatchEmbed(c *Config) PatchEmbed {
	return PatchEmbed{
		Proj:  nn.NewConv2D(c.InChannels, c.Width(), c.PatchSize, c.PatchSize, 0),
		Table: nn.P(1, c.PosEmbedMax*c.PosEmbedMax, c.Width()), max: c.PosEmbedMax,
	}
}

// Forward takes latents (B, C, H, W) to tokens (B, h·w, D), h and w in patches.
func (p *PatchEmbed) Forward(latents engine.Value) engine.Value {
	x := p.Proj.Forward(nn.ToNHWC(latents)) // (B, h, w, D)
	b, h, w, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	top, left := (p.max-h)/2, (p.max-w)/2
	// Rows are cut out before the table gets its second axis: an operation on a parameter alone is a program of its own,
	// whose result is a copy.
	table := p.Table.Value.Slice(1, top*p.max, (top+h)*p.max).Reshape(1, h, p.max, d).Slice(2, left, left+w)
	return p.Tap(x.Reshape(b, h*w, d).Add(table.Reshape(1, h*w, d)))
}

// Conditions are what modulates the norms, in rows: those of a call, or of many calls to come.
type Conditions struct {
	Pooled   engine.Value // pooled prompt embeddings (R, pooled_projection_dim)
	Timestep engine.Value // in [0, 1000], (R) in f32: not rounded, unlike in FLUX
}

// Modulation returns what each norm makes of the conditions, (R, parts·D): the picture's and the text's of each block, and
// the last norm's. It is a third of the model's weights and takes as long as reading them, for one row or for several.
func (m *Model) Modulation(c Conditions) []engine.Value {
	silu := m.TimeText.Forward(c.Timestep, engine.Value{}, c.Pooled).Silu() // (R, D)
	var out []engine.Value
	for _, b := range m.Blocks {
		out = append(out, b.ahead(silu)...)
	}
	return append(out, m.NormOut.Ahead(silu))
}

// Inputs of one call.
type Inputs struct {
	Hidden     engine.Value   // latents (B, in_channels, H, W)
	Text       engine.Value   // prompt embeddings (B, L, joint_attention_dim)
	Modulation []engine.Value // as Model.Modulation returns it
	Rows       engine.Value   // those of Modulation that belong to the call (B), integers
	Skip       []int          // blocks that are left out (skip-layer guidance)
}

// Forward returns the predicted velocity (B, out_channels, H, W).
func (m *Model) Forward(in Inputs) engine.Value {
	c := &m.Config
	img := m.PosEmbed.Forward(in.Hidden)      // (B, N, D)
	txt := m.ContextEmbedder.Forward(in.Text) // (B, L, D)
	for i, b := range m.Blocks {
		if !slices.Contains(in.Skip, i) {
			img, txt = b.Forward(img.Donate(), txt.Donate(), in.Modulation[2*i], in.Modulation[2*i+1], in.Rows)
		}
	}
	last := in.Modulation[2*len(m.Blocks)].Gather(in.Rows)
	x := m.ProjOut.Forward(m.NormOut.Apply(img, last)) // (B, N, p·p·C)
	b, p, o := x.Dim(0), c.PatchSize, c.Out()
	h, w := in.Hidden.Dim(2)/p, in.Hidden.Dim(3)/p
	x = x.Reshape(b, h, w, p, p, o).Transpose(0, 5, 1, 3, 2, 4) // (B, C, h, p, w, p)
	return m.Tap(x.Reshape(b, o, h*p, w*p))
}
