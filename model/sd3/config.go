// Package sd3 is the transformer of Stable Diffusion 3 and 3.5: one stream of picture tokens and one of text tokens that
// meet in attention.
//
// Source: Esser et al. 2024 (MMDiT) and Stability AI 2024 (MMDiT-X); key names as in Diffusers' SD3Transformer2DModel.
//
//	m := sd3.New(sd3.Defaults())
//	err := nn.Bind(m, params, "transformer")
//	mod := m.Modulation(sd3.Conditions{Pooled: pooled, Timestep: timesteps}) // of many steps
//	velocity := m.Forward(sd3.Inputs{Hidden: latents, Text: embeds, Modulation: mod, Rows: rows})
package sd3

import (
	"fmt"
	"slices"

	"github.com/gesso-go/gesso/nn"
)

// Config is transformer/config.json.
type Config struct {
	SampleSize  int     `json:"sample_size"` // of training, in latents
	PatchSize   int     `json:"patch_size"`
	InChannels  int     `json:"in_channels"`
	OutChannels *int    `json:"out_channels"` // null: as in_channels
	Layers      int     `json:"num_layers"`
	HeadDim     int     `json:"attention_head_dim"`
	Heads       int     `json:"num_attention_heads"`
	JointDim    int     `json:"joint_attention_dim"`
	CaptionDim  int     `json:"caption_projection_dim"`
	PooledDim   int     `json:"pooled_projection_dim"`
	PosEmbedMax int     `json:"pos_embed_max_size"`    // rows and columns of the table of positions, in patches
	DualLayers  []int   `json:"dual_attention_layers"` // blocks with a second attention over the picture alone
	QKNorm      *string `json:"qk_norm"`               // null or "rms_norm"
}

// Defaults returns Diffusers' defaults for keys that a config.json may leave out.
func Defaults() Config {
	return Config{
		SampleSize: 128, PatchSize: 2, InChannels: 16, Layers: 18, HeadDim: 64, Heads: 18, JointDim: 4096, CaptionDim: 1152,
		PooledDim: 2048, PosEmbedMax: 96,
	}
}

// Width is the model's hidden size.
func (c *Config) Width() int { return c.Heads * c.HeadDim }

// Out is the number of output channels.
func (c *Config) Out() int {
	if c.OutChannels == nil {
		return c.InChannels
	}
	return *c.OutChannels
}

// rmsNorm is the only qk_norm that the published models use.
const rmsNorm = "rms_norm"

// Validate says which key is unusable.
func (c *Config) Validate() error {
	for _, f := range []struct {
		key string
		v   int
	}{
		{"patch_size", c.PatchSize}, {"in_channels", c.InChannels}, {"out_channels", c.Out()},
		{"attention_head_dim", c.HeadDim}, {"num_attention_heads", c.Heads}, {"joint_attention_dim", c.JointDim},
		{"pooled_projection_dim", c.PooledDim}, {"pos_embed_max_size", c.PosEmbedMax},
	} {
		if f.v <= 0 {
			return fmt.Errorf("%s must be positive, got %d", f.key, f.v)
		}
	}
	if err := nn.CheckLayers("num_layers", c.Layers, 1); err != nil {
		return err
	}
	if c.CaptionDim != c.Width() {
		return fmt.Errorf("caption_projection_dim %d must be the hidden size %d", c.CaptionDim, c.Width())
	}
	if c.QKNorm != nil && *c.QKNorm != rmsNorm {
		return fmt.Errorf("qk_norm %q is not supported (known: null, %s)", *c.QKNorm, rmsNorm)
	}
	for _, l := range c.DualLayers {
		if l < 0 {
			return fmt.Errorf("dual_attention_layers %v must not be negative", c.DualLayers)
		}
	}
	return nil
}

// dual reports whether a block has the second attention.
func (c *Config) dual(layer int) bool { return slices.Contains(c.DualLayers, layer) }

// CheckSize says why a picture of h×w latents cannot be made.
func (c *Config) CheckSize(h, w int) error {
	for _, d := range []struct {
		what string
		v    int
	}{{"height", h}, {"width", w}} {
		if d.v < c.PatchSize || d.v%c.PatchSize != 0 {
			return fmt.Errorf("%s of %d latents: expected a multiple of patch_size %d", d.what, d.v, c.PatchSize)
		}
		if p := d.v / c.PatchSize; p > c.PosEmbedMax {
			return fmt.Errorf("%s of %d patches is more than pos_embed_max_size %d", d.what, p, c.PosEmbedMax)
		}
	}
	return nil
}
