package flux

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// Model is the transformer.
type Model struct {
	nn.Module
	Config          Config
	TimeText        nn.TimeTextEmbedding      `weight:"time_text_embed"`
	ContextEmbedder nn.Linear                 `weight:"context_embedder"`
	XEmbedder       nn.Linear                 `weight:"x_embedder"`
	Blocks          []*DoubleBlock            `weight:"transformer_blocks"`
	Singles         []*SingleBlock            `weight:"single_transformer_blocks"`
	NormOut         nn.AdaLayerNormContinuous `weight:"norm_out"`
	ProjOut         nn.Linear                 `weight:"proj_out"`
}

// New returns an unbound model. The configuration must be valid.
func New(c Config) *Model {
	d := c.Width()
	m := &Model{
		Config:          c,
		TimeText:        nn.NewTimeTextEmbedding(d, c.PooledDim, c.GuidanceEmbed),
		ContextEmbedder: nn.NewLinear(c.JointDim, d, true),
		XEmbedder:       nn.NewLinear(c.InChannels, d, true),
		NormOut:         nn.NewAdaLayerNormContinuous(d, d),
		ProjOut:         nn.NewLinear(d, c.Out(), true),
	}
	for range c.Layers {
		m.Blocks = append(m.Blocks, newDoubleBlock(&c))
	}
	for range c.SingleLayers {
		m.Singles = append(m.Singles, newSingleBlock(&c))
	}
	return m
}

// ropeTheta is fixed in Diffusers' FluxTransformer2DModel.
const ropeTheta = 10000

// Rope returns the rotations for rows at the given positions (text rows first), one number an axis: cos and sin
// (rows, head dimension).
func (c *Config) Rope(ids [][]float64) (cos, sin *tensor.Array) {
	return nn.RopeTable(ids, c.RopeAxes, ropeTheta)
}

// Conditions are what modulates the norms, in rows: those of a call, or of many calls to come.
type Conditions struct {
	Pooled   engine.Value // pooled prompt embeddings (R, pooled_projection_dim), of the model's dtype
	Timestep engine.Value // in [0, 1], (R), of the latents' dtype
	Guidance engine.Value // (R) in f32; ignored by a model without guidance
}

// Modulation returns what each norm makes of the conditions, (R, parts·D): the picture's and the text's of each double
// block, that of each single block, and the last norm's. It is a quarter of the model's weights and takes as long as
// reading them, for one row or for several.
func (m *Model) Modulation(c Conditions) []engine.Value {
	d := c.Pooled.DType()
	timestep := c.Timestep.Convert(d).MulScalar(1000) // rounded to the model's dtype, as Diffusers does
	guidance := c.Guidance
	if m.Config.GuidanceEmbed {
		guidance = guidance.Convert(d).MulScalar(1000)
	}
	silu := m.TimeText.Forward(timestep, guidance, c.Pooled).Silu() // (R, D)
	var out []engine.Value
	for _, b := range m.Blocks {
		out = append(out, b.Norm.Ahead(silu), b.NormTxt.Ahead(silu))
	}
	for _, b := range m.Singles {
		out = append(out, b.Norm.Ahead(silu))
	}
	return append(out, m.NormOut.Ahead(silu))
}

// Inputs of one call.
type Inputs struct {
	Hidden     engine.Value   // packed latents (B, N, in_channels)
	Text       engine.Value   // prompt embeddings (B, L, joint_attention_dim)
	Rope       nn.Rope        // rows L+N
	Modulation []engine.Value // as Model.Modulation returns it
	Rows       engine.Value   // those of Modulation that belong to the call (B), integers
}

// Forward returns the predicted velocity (B, N, out_channels).
func (m *Model) Forward(in Inputs) engine.Value {
	img := m.XEmbedder.Forward(in.Hidden)     // (B, N, D)
	txt := m.ContextEmbedder.Forward(in.Text) // (B, L, D)
	m.TapChild("pos_embed.out0", in.Rope.Cos)
	m.TapChild("pos_embed.out1", in.Rope.Sin)
	mod := in.Modulation
	for _, b := range m.Blocks {
		img, txt = b.Forward(img.Donate(), txt.Donate(), mod[0], mod[1], in.Rows, in.Rope)
		mod = mod[2:]
	}
	l, n := txt.Dim(1), img.Dim(1)
	x := engine.Concat(1, txt, img) // (B, L+N, D)
	for _, b := range m.Singles {
		x = b.Forward(x.Donate(), mod[0], in.Rows, in.Rope, l)
		mod = mod[1:]
	}
	x = x.Slice(1, l, l+n)
	return m.ProjOut.Forward(m.NormOut.Apply(x, mod[0].Gather(in.Rows)))
}
