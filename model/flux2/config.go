// Package flux2 is the transformer of FLUX.2 (dev) and FLUX.2 klein: double blocks, then single blocks whose attention and
// MLP share one projection in and one out. Modulation is computed once a call and shared by all blocks; nothing has a bias.
//
// Source: Black Forest Labs 2025; key names as in Diffusers' Flux2Transformer2DModel.
//
//	m := flux2.New(flux2.Defaults())
//	err := nn.Bind(m, params, "transformer")
//	velocity := m.Forward(flux2.Inputs{Hidden: latents, Text: embeds, Timestep: t, Guidance: g, Rope: rope})
package flux2

import (
	"errors"
	"fmt"

	"github.com/gesso-go/gesso/nn"
)

// Config is transformer/config.json.
type Config struct {
	PatchSize     int     `json:"patch_size"`
	InChannels    int     `json:"in_channels"`
	OutChannels   *int    `json:"out_channels"` // null: as in_channels
	Layers        int     `json:"num_layers"`
	SingleLayers  int     `json:"num_single_layers"`
	HeadDim       int     `json:"attention_head_dim"`
	Heads         int     `json:"num_attention_heads"`
	JointDim      int     `json:"joint_attention_dim"`
	TimeChannels  int     `json:"timestep_guidance_channels"`
	MLPRatio      float64 `json:"mlp_ratio"`
	RopeAxes      []int   `json:"axes_dims_rope"`
	RopeTheta     float64 `json:"rope_theta"`
	Eps           float64 `json:"eps"`
	GuidanceEmbed bool    `json:"guidance_embeds"`
}

// Defaults returns Diffusers' defaults for keys that a config.json may leave out: FLUX.2-dev.
func Defaults() Config {
	return Config{
		PatchSize: 1, InChannels: 128, Layers: 8, SingleLayers: 48, HeadDim: 128, Heads: 48, JointDim: 15360, TimeChannels: 256,
		MLPRatio: 3, RopeAxes: []int{32, 32, 32, 32}, RopeTheta: 2000, Eps: 1e-6, GuidanceEmbed: true,
	}
}

// Width is the model's hidden size.
func (c *Config) Width() int { return c.Heads * c.HeadDim }

// Hidden is the width of the MLPs, after their gate.
func (c *Config) Hidden() int { return int(float64(c.Width()) * c.MLPRatio) }

// Out is the number of output channels.
func (c *Config) Out() int {
	if c.OutChannels == nil {
		return c.InChannels
	}
	return *c.OutChannels
}

// Validate says which key is unusable.
func (c *Config) Validate() error {
	for _, f := range []struct {
		key string
		v   int
	}{
		{"in_channels", c.InChannels}, {"out_channels", c.Out()}, {"attention_head_dim", c.HeadDim}, {"num_attention_heads", c.Heads},
		{"joint_attention_dim", c.JointDim},
	} {
		if f.v <= 0 {
			return fmt.Errorf("%s must be positive, got %d", f.key, f.v)
		}
	}
	if err := errors.Join(nn.CheckLayers("num_layers", c.Layers, 0), nn.CheckLayers("num_single_layers", c.SingleLayers, 0)); err != nil {
		return err
	}
	switch {
	case c.PatchSize != 1:
		return fmt.Errorf("patch_size %d is not supported (known: 1)", c.PatchSize)
	case c.TimeChannels <= 0 || c.TimeChannels%2 != 0:
		return fmt.Errorf("timestep_guidance_channels %d must be even and positive", c.TimeChannels)
	case !(c.MLPRatio > 0) || c.Hidden() < 1 || c.MLPRatio > 64:
		return fmt.Errorf("mlp_ratio %g must be positive and at most 64", c.MLPRatio)
	case !(c.RopeTheta > 0):
		return fmt.Errorf("rope_theta %g must be positive", c.RopeTheta)
	case !(c.Eps >= 0):
		return fmt.Errorf("eps %g must not be negative", c.Eps)
	}
	return nn.CheckRopeAxes(c.RopeAxes, 4, c.HeadDim)
}
