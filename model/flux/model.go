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

// Inputs of one call.
type Inputs struct {
	Hidden   engine.Value // packed latents (B, N, in_channels)
	Text     engine.Value // prompt embeddings (B, L, joint_attention_dim)
	Pooled   engine.Value // pooled prompt embeddings (B, pooled_projection_dim)
	Timestep engine.Value // in [0, 1], (B), of the latents' dtype
	Guidance engine.Value // (B) in f32; ignored by a model without guidance
	Rope     nn.Rope      // rows L+N
}

// Forward returns the predicted velocity (B, N, out_channels).
func (m *Model) Forward(in Inputs) engine.Value {
	img := m.XEmbedder.Forward(in.Hidden) // (B, N, D)
	d := in.Hidden.DType()
	timestep := in.Timestep.Convert(d).MulScalar(1000) // rounded to the model's dtype, as Diffusers does
	guidance := in.Guidance
	if m.Config.GuidanceEmbed {
		guidance = guidance.Convert(d).MulScalar(1000)
	}
	temb := m.TimeText.Forward(timestep, guidance, in.Pooled) // (B, D)
	txt := m.ContextEmbedder.Forward(in.Text)                 // (B, L, D)
	m.TapChild("pos_embed.out0", in.Rope.Cos)
	m.TapChild("pos_embed.out1", in.Rope.Sin)
	for _, b := range m.Blocks {
		img, txt = b.Forward(img, txt, temb, in.Rope)
	}
	l, n := txt.Dim(1), img.Dim(1)
	x := engine.Concat(1, txt, img) // (B, L+N, D)
	for _, b := range m.Singles {
		x = b.Forward(x, temb, in.Rope, l)
	}
	x = x.Split(1, l, n)[1]
	return m.ProjOut.Forward(m.NormOut.Forward(x, temb))
}
