package flux2

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// Model is the transformer.
type Model struct {
	nn.Module
	Config          Config
	TimeGuidance    TimeGuidanceEmbedding     `weight:"time_guidance_embed"`
	ModImg          Modulation                `weight:"double_stream_modulation_img"`
	ModTxt          Modulation                `weight:"double_stream_modulation_txt"`
	ModSingle       Modulation                `weight:"single_stream_modulation"`
	XEmbedder       nn.Linear                 `weight:"x_embedder"`
	ContextEmbedder nn.Linear                 `weight:"context_embedder"`
	Blocks          []*DoubleBlock            `weight:"transformer_blocks"`
	Singles         []*SingleBlock            `weight:"single_transformer_blocks"`
	NormOut         nn.AdaLayerNormContinuous `weight:"norm_out"`
	ProjOut         nn.Linear                 `weight:"proj_out"`
}

// New returns an unbound model. The configuration must be valid.
func New(c Config) *Model {
	d := c.Width()
	m := &Model{
		Config: c, TimeGuidance: newTimeGuidanceEmbedding(&c),
		ModImg: newModulation(d, 2), ModTxt: newModulation(d, 2), ModSingle: newModulation(d, 1),
		XEmbedder: linear(c.InChannels, d), ContextEmbedder: linear(c.JointDim, d),
		NormOut: nn.NewAdaLayerNormContinuous(d, d), ProjOut: linear(d, c.Out()),
	}
	m.NormOut.Linear = linear(d, 2*d)
	m.NormOut.Eps = c.Eps
	for range c.Layers {
		m.Blocks = append(m.Blocks, newDoubleBlock(&c))
	}
	for range c.SingleLayers {
		m.Singles = append(m.Singles, newSingleBlock(&c))
	}
	return m
}

// Rope returns the rotations for rows at the given positions (text rows first), one number an axis: cos and sin
// (rows, head dimension).
func (c *Config) Rope(ids [][]float64) (cos, sin *tensor.Array) {
	return nn.RopeTable(ids, c.RopeAxes, c.RopeTheta)
}

// Inputs of one call.
type Inputs struct {
	Hidden   engine.Value // packed latents (B, N, in_channels)
	Text     engine.Value // prompt embeddings (B, L, joint_attention_dim)
	Timestep engine.Value // in [0, 1], (B)
	Guidance engine.Value // (B) in f32; ignored by a model without guidance
	Rope     nn.Rope      // rows L+N
}

// Forward returns the predicted velocity (B, N, out_channels).
func (m *Model) Forward(in Inputs) engine.Value {
	d := in.Hidden.DType()
	timestep := in.Timestep.Convert(d).MulScalar(1000) // rounded to the model's dtype, as Diffusers does
	guidance := in.Guidance
	if m.Config.GuidanceEmbed {
		guidance = guidance.Convert(d).MulScalar(1000)
	}
	temb := m.TimeGuidance.Forward(timestep, guidance) // (B, D)
	modImg, modTxt, modSingle := m.ModImg.Forward(temb), m.ModTxt.Forward(temb), m.ModSingle.Forward(temb)
	img := m.XEmbedder.Forward(in.Hidden)     // (B, N, D)
	txt := m.ContextEmbedder.Forward(in.Text) // (B, L, D)
	l, n := txt.Dim(1), img.Dim(1)
	if e := img.Engine(); e != nil && e.Tapping() { // Diffusers' module is called for the picture first
		m.TapChild("pos_embed.out0", in.Rope.Cos.Slice(0, l, l+n))
		m.TapChild("pos_embed.out1", in.Rope.Sin.Slice(0, l, l+n))
	}
	for _, b := range m.Blocks {
		img, txt = b.Forward(img.Donate(), txt.Donate(), modImg, modTxt, in.Rope)
	}
	x := engine.Concat(1, txt, img) // (B, L+N, D)
	for _, b := range m.Singles {
		x = b.Forward(x.Donate(), modSingle, in.Rope)
	}
	x = x.Split(1, l, n)[1]
	return m.ProjOut.Forward(m.NormOut.Forward(x, temb))
}
