// Package vae is Diffusers' AutoencoderKL: the autoencoder between pictures and latents. Inside, values are channels
// last (B, H, W, C); the boundary is (B, C, H, W), as Diffusers has it.
//
// Source: Rombach et al. 2022; key names as in Diffusers' AutoencoderKL.
package vae

import (
	"errors"
	"fmt"

	"github.com/gesso-go/gesso/nn"
)

// Config is vae/config.json.
type Config struct {
	InChannels      int       `json:"in_channels"`
	OutChannels     int       `json:"out_channels"`
	LatentChannels  int       `json:"latent_channels"`
	BlockOut        []int     `json:"block_out_channels"`
	DownTypes       []string  `json:"down_block_types"`
	UpTypes         []string  `json:"up_block_types"`
	LayersPerBlock  int       `json:"layers_per_block"`
	NormGroups      int       `json:"norm_num_groups"`
	ActFn           string    `json:"act_fn"`
	SampleSize      int       `json:"sample_size"`
	ScalingFactor   float64   `json:"scaling_factor"`
	ShiftFactor     *float64  `json:"shift_factor"`
	UseQuantConv    bool      `json:"use_quant_conv"`
	UsePostQuant    bool      `json:"use_post_quant_conv"`
	MidBlockAttn    bool      `json:"mid_block_add_attention"`
	LatentsMean     []float64 `json:"latents_mean"`
	LatentsStd      []float64 `json:"latents_std"`
	ForceUpcast     bool      `json:"force_upcast"`
	DecoderBlockOut []int     `json:"decoder_block_out_channels"`
}

// Defaults returns Diffusers' defaults for keys that a config.json may leave out.
func Defaults() Config {
	return Config{
		InChannels: 3, OutChannels: 3, LatentChannels: 4, BlockOut: []int{64}, LayersPerBlock: 1, NormGroups: 32, ActFn: "silu",
		SampleSize: 32, ScalingFactor: 0.18215, UseQuantConv: true, UsePostQuant: true, MidBlockAttn: true,
	}
}

// Validate says which key is unusable.
func (c *Config) Validate() error {
	for _, f := range []struct {
		key string
		v   int
	}{
		{"in_channels", c.InChannels}, {"out_channels", c.OutChannels}, {"latent_channels", c.LatentChannels},
		{"norm_num_groups", c.NormGroups}, {"sample_size", c.SampleSize},
	} {
		if f.v <= 0 {
			return fmt.Errorf("%s must be positive, got %d", f.key, f.v)
		}
	}
	if err := errors.Join(nn.CheckLayers("layers_per_block", c.LayersPerBlock, 1), nn.CheckLayers("block_out_channels (number)", len(c.BlockOut), 1)); err != nil {
		return err
	}
	for _, ch := range append(append([]int(nil), c.BlockOut...), c.DecoderBlockOut...) {
		if ch <= 0 || ch%c.NormGroups != 0 {
			return fmt.Errorf("block_out_channels %v: norm_num_groups %d must divide each", c.BlockOut, c.NormGroups)
		}
	}
	for _, t := range c.DownTypes {
		if t != "DownEncoderBlock2D" {
			return fmt.Errorf("down_block_types: %q is not supported (known: DownEncoderBlock2D)", t)
		}
	}
	for _, t := range c.UpTypes {
		if t != "UpDecoderBlock2D" {
			return fmt.Errorf("up_block_types: %q is not supported (known: UpDecoderBlock2D)", t)
		}
	}
	if c.ActFn != "silu" {
		return fmt.Errorf("act_fn: %q is not supported (known: silu)", c.ActFn)
	}
	if c.ScalingFactor == 0 {
		return fmt.Errorf("scaling_factor must not be 0")
	}
	return nil
}

// Scale is the factor between pixels and latents, per side.
func (c *Config) Scale() int { return 1 << (len(c.BlockOut) - 1) }

// Shift is shift_factor, 0 where there is none.
func (c *Config) Shift() float64 {
	if c.ShiftFactor == nil {
		return 0
	}
	return *c.ShiftFactor
}

// decoderChannels are the channels of the decoder's levels, from the finest to the coarsest.
func (c *Config) decoderChannels() []int {
	if len(c.DecoderBlockOut) > 0 {
		return c.DecoderBlockOut
	}
	return c.BlockOut
}

// normEps is the epsilon of every group norm here.
const normEps = 1e-6

func (c *Config) norm(channels int) nn.GroupNorm {
	return nn.NewGroupNorm(c.NormGroups, channels, normEps)
}
