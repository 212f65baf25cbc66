package vae

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// Encoder takes pictures to the moments of latents.
type Encoder struct {
	nn.Module
	ConvIn  nn.Conv2D    `weight:"conv_in"`
	Down    []*DownBlock `weight:"down_blocks"`
	Mid     Mid          `weight:"mid_block"`
	NormOut nn.GroupNorm `weight:"conv_norm_out"`
	ConvOut nn.Conv2D    `weight:"conv_out"`
}

// Decoder takes latents to pictures.
type Decoder struct {
	nn.Module
	ConvIn  nn.Conv2D    `weight:"conv_in"`
	Mid     Mid          `weight:"mid_block"`
	Up      []*UpBlock   `weight:"up_blocks"`
	NormOut nn.GroupNorm `weight:"conv_norm_out"`
	ConvOut nn.Conv2D    `weight:"conv_out"`
}

// Model is the autoencoder.
type Model struct {
	Config    Config
	Encoder   Encoder    `weight:"encoder"`
	Decoder   Decoder    `weight:"decoder"`
	Quant     *nn.Conv2D `weight:"quant_conv"`      // nil unless configured
	PostQuant *nn.Conv2D `weight:"post_quant_conv"` // nil unless configured
}

// New returns an unbound model. The configuration must be valid.
func New(c Config) *Model {
	m := &Model{Config: c, Encoder: newEncoder(&c), Decoder: newDecoder(&c)}
	if c.UseQuantConv {
		q := nn.NewConv2D(2*c.LatentChannels, 2*c.LatentChannels, 1, 1, 0)
		m.Quant = &q
	}
	if c.UsePostQuant {
		q := nn.NewConv2D(c.LatentChannels, c.LatentChannels, 1, 1, 0)
		m.PostQuant = &q
	}
	return m
}

func newEncoder(c *Config) Encoder {
	e := Encoder{ConvIn: nn.NewConv2D(c.InChannels, c.BlockOut[0], 3, 1, 1)}
	in := c.BlockOut[0]
	for level, out := range c.BlockOut {
		b := &DownBlock{}
		for range c.LayersPerBlock {
			b.Resnets = append(b.Resnets, newResnet(c, in, out))
			in = out
		}
		if level < len(c.BlockOut)-1 {
			s := &Sampler{Conv: nn.NewConv2D(out, out, 3, 2, 0)}
			s.Conv.High = [2]int{1, 1} // Diffusers pads right and bottom only
			b.Down = []*Sampler{s}
		}
		e.Down = append(e.Down, b)
	}
	e.Mid = newMid(c, in)
	e.NormOut = c.norm(in)
	e.ConvOut = nn.NewConv2D(in, 2*c.LatentChannels, 3, 1, 1)
	return e
}

func newDecoder(c *Config) Decoder {
	levels := c.decoderChannels()
	in := levels[len(levels)-1]
	d := Decoder{ConvIn: nn.NewConv2D(c.LatentChannels, in, 3, 1, 1), Mid: newMid(c, in)}
	for level := len(levels) - 1; level >= 0; level-- {
		out := levels[level]
		b := &UpBlock{}
		for range c.LayersPerBlock + 1 {
			b.Resnets = append(b.Resnets, newResnet(c, in, out))
			in = out
		}
		if level > 0 {
			b.Up = []*Sampler{{Conv: nn.NewConv2D(out, out, 3, 1, 1)}}
		}
		d.Up = append(d.Up, b)
	}
	d.NormOut = c.norm(in)
	d.ConvOut = nn.NewConv2D(in, c.OutChannels, 3, 1, 1)
	return d
}

// Encode takes pictures (B, 3, H, W) in [-1, 1] to moments (B, 2·latent, H/s, W/s): mean, then log variance.
func (m *Model) Encode(x engine.Value) engine.Value {
	e := &m.Encoder
	x = e.ConvIn.Forward(nn.ToNHWC(x))
	for _, b := range e.Down {
		x = b.Forward(x)
	}
	x = e.NormOut.Forward(e.Mid.Forward(x), true)
	x = e.ConvOut.Forward(x)
	if m.Quant != nil {
		x = m.Quant.Forward(x)
	}
	return nn.ToNCHW(x)
}

// Decode takes latents (B, latent, h, w), unscaled, to pictures (B, 3, s·h, s·w), not clamped.
func (m *Model) Decode(z engine.Value) engine.Value {
	d := &m.Decoder
	x := nn.ToNHWC(z)
	if m.PostQuant != nil {
		x = m.PostQuant.Forward(x)
	}
	x = d.Mid.Forward(d.ConvIn.Forward(x))
	for _, b := range d.Up {
		x = b.Forward(x)
	}
	return nn.ToNCHW(d.ConvOut.Forward(d.NormOut.Forward(x, true)))
}
