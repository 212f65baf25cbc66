// Package flux is the transformer of FLUX.1 (schnell and dev).
//
// Source: Black Forest Labs 2024, after Esser et al. 2024; key names as in Diffusers' FluxTransformer2DModel.
package flux

import (
	"errors"
	"fmt"

	"github.com/gesso-go/gesso/nn"
)

// Config is transformer/config.json.
type Config struct {
	PatchSize     int   `json:"patch_size"`
	InChannels    int   `json:"in_channels"`
	OutChannels   *int  `json:"out_channels"` // null: as in_channels
	Layers        int   `json:"num_layers"`
	SingleLayers  int   `json:"num_single_layers"`
	HeadDim       int   `json:"attention_head_dim"`
	Heads         int   `json:"num_attention_heads"`
	JointDim      int   `json:"joint_attention_dim"`
	PooledDim     int   `json:"pooled_projection_dim"`
	GuidanceEmbed bool  `json:"guidance_embeds"`
	RopeAxes      []int `json:"axes_dims_rope"`
}

// Defaults returns Diffusers' defaults for keys that a config.json may leave out.
func Defaults() Config {
	return Config{
		PatchSize: 1, InChannels: 64, Layers: 19, SingleLayers: 38, HeadDim: 128, Heads: 24, JointDim: 4096, PooledDim: 768,
		RopeAxes: []int{16, 56, 56},
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

// Validate says which key is unusable.
func (c *Config) Validate() error {
	for _, f := range []struct {
		key string
		v   int
	}{
		{"in_channels", c.InChannels}, {"attention_head_dim", c.HeadDim}, {"num_attention_heads", c.Heads},
		{"joint_attention_dim", c.JointDim}, {"pooled_projection_dim", c.PooledDim}, {"out_channels", c.Out()},
	} {
		if f.v <= 0 {
			return fmt.Errorf("%s must be positive, got %d", f.key, f.v)
		}
	}
	if err := errors.Join(nn.CheckLayers("num_layers", c.Layers, 0), nn.CheckLayers("num_single_layers", c.SingleLayers, 0)); err != nil {
		return err
	}
	if c.PatchSize != 1 {
		return fmt.Errorf("patch_size %d is not supported (known: 1)", c.PatchSize)
	}
	return nn.CheckRopeAxes(c.RopeAxes, 3, c.HeadDim)
}
