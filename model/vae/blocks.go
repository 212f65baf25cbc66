package vae

import (
	"math"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// Resnet is norm, SiLU, convolution, twice, around a shortcut (ResnetBlock2D without time embedding).
type Resnet struct {
	nn.Block
	Norm1    nn.GroupNorm `weight:"norm1"`
	Conv1    nn.Conv2D    `weight:"conv1"`
	Norm2    nn.GroupNorm `weight:"norm2"`
	Conv2    nn.Conv2D    `weight:"conv2"`
	Shortcut *nn.Conv2D   `weight:"conv_shortcut"` // nil where the channels stay
}

func newResnet(c *Config, in, out int) *Resnet {
	r := &Resnet{
		Norm1: c.norm(in), Conv1: nn.NewConv2D(in, out, 3, 1, 1),
		Norm2: c.norm(out), Conv2: nn.NewConv2D(out, out, 3, 1, 1),
	}
	if in != out {
		s := nn.NewConv2D(in, out, 1, 1, 0)
		r.Shortcut = &s
	}
	return r
}

// Forward takes x (B, H, W, in) to (B, H, W, out).
func (r *Resnet) Forward(x engine.Value) engine.Value {
	return r.Run(func(v []engine.Value) []engine.Value {
		x := v[0]
		h := r.Conv1.Forward(r.Norm1.Forward(x, true))
		h = r.Conv2.Forward(r.Norm2.Forward(h, true))
		if r.Shortcut != nil {
			x = r.Shortcut.Forward(x)
		}
		return []engine.Value{r.TapNCHW(x.Add(h))}
	}, x)[0]
}

// Attention is self-attention over all pixels, with one head.
type Attention struct {
	nn.Block
	Norm nn.GroupNorm `weight:"group_norm"`
	Q    nn.Linear    `weight:"to_q"`
	K    nn.Linear    `weight:"to_k"`
	V    nn.Linear    `weight:"to_v"`
	Out  nn.Linear    `weight:"to_out.0"`
}

func newAttention(c *Config, ch int) *Attention {
	return &Attention{
		Norm: c.norm(ch), Q: nn.NewLinear(ch, ch, true), K: nn.NewLinear(ch, ch, true),
		V: nn.NewLinear(ch, ch, true), Out: nn.NewLinear(ch, ch, true),
	}
}

// Forward keeps the shape of x (B, H, W, C).
func (a *Attention) Forward(x engine.Value) engine.Value {
	return a.Run(func(v []engine.Value) []engine.Value {
		x := v[0]
		b, h, w, c := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
		n := a.Norm.Forward(x, false).Reshape(b, h*w, c)
		heads := func(l *nn.Linear) engine.Value { return nn.Heads(l.RoundFirst(n), 1) } // (B, H·W, 1, C)
		o := engine.Attention(heads(&a.Q), heads(&a.K), heads(&a.V), engine.AttentionOptions{Scale: 1 / math.Sqrt(float64(c))})
		o = a.Out.Forward(nn.Merge(o)).Reshape(b, h, w, c)
		return []engine.Value{a.TapNCHW(o.Add(x))}
	}, x)[0]
}

// Mid is the coarsest level: resnet, attention (where the configuration has it), resnet.
type Mid struct {
	nn.Module
	Resnets    []*Resnet    `weight:"resnets"`
	Attentions []*Attention `weight:"attentions"`
}

func newMid(c *Config, ch int) Mid {
	m := Mid{Resnets: []*Resnet{newResnet(c, ch, ch), newResnet(c, ch, ch)}}
	if c.MidBlockAttn {
		m.Attentions = []*Attention{newAttention(c, ch)}
	}
	return m
}

// Forward keeps the shape of x (B, H, W, C), which it takes over.
func (m *Mid) Forward(x engine.Value) engine.Value {
	x = m.Resnets[0].Forward(x.Donate())
	for _, a := range m.Attentions {
		x = a.Forward(x.Donate())
	}
	return m.TapNCHW(m.Resnets[1].Forward(x.Donate()))
}

// Sampler is the convolution of a downsampler or an upsampler.
type Sampler struct {
	Conv nn.Conv2D `weight:"conv"`
}

// DownBlock is one level of the encoder.
type DownBlock struct {
	nn.Module
	Resnets []*Resnet  `weight:"resnets"`
	Down    []*Sampler `weight:"downsamplers"` // none at the last level
}

// Forward takes over x (B, H, W, in) and returns (B, H/2, W/2, out), or keeps the size at the last level.
func (d *DownBlock) Forward(x engine.Value) engine.Value {
	for _, r := range d.Resnets {
		x = r.Forward(x.Donate())
	}
	for _, s := range d.Down {
		x = s.Conv.Forward(x)
	}
	return d.TapNCHW(x)
}

// UpBlock is one level of the decoder.
type UpBlock struct {
	nn.Module
	Resnets []*Resnet  `weight:"resnets"`
	Up      []*Sampler `weight:"upsamplers"` // none at the last level
}

// Forward takes over x (B, H, W, in) and returns (B, 2H, 2W, out), or keeps the size at the last level.
func (u *UpBlock) Forward(x engine.Value) engine.Value {
	for _, r := range u.Resnets {
		x = r.Forward(x.Donate())
	}
	for _, s := range u.Up {
		x = s.Conv.ForwardUpsampled(x)
	}
	return u.TapNCHW(x)
}
