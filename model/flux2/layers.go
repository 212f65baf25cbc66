package flux2

import (
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
)

// linear is a layer without bias, as all are here.
func linear(in, out int) nn.Linear { return nn.NewLinear(in, out, false) }

// TimeGuidanceEmbedding adds the embeddings of timestep and, where the model has it, guidance.
type TimeGuidanceEmbedding struct {
	nn.Module
	Timestep *nn.MLPEmbedding `weight:"timestep_embedder"`
	Guidance *nn.MLPEmbedding `weight:"guidance_embedder"` // nil without guidance
	channels int
}

func newTimeGuidanceEmbedding(c *Config) TimeGuidanceEmbedding {
	d := c.Width()
	mlp := func() *nn.MLPEmbedding {
		return &nn.MLPEmbedding{Linear1: linear(c.TimeChannels, d), Linear2: linear(d, d)}
	}
	e := TimeGuidanceEmbedding{Timestep: mlp(), channels: c.TimeChannels}
	if c.GuidanceEmbed {
		e.Guidance = mlp()
	}
	return e
}

// Forward takes timestep and guidance (B), of the model's dtype and in thousandths, to (B, D).
func (e *TimeGuidanceEmbedding) Forward(timestep, guidance engine.Value) engine.Value {
	d := timestep.DType()
	out := e.Timestep.Forward(nn.Sinusoid(timestep, e.channels).Convert(d))
	if e.Guidance != nil {
		out = out.Add(e.Guidance.Forward(nn.Sinusoid(guidance, e.channels).Convert(d)))
	}
	return e.Tap(out)
}

// Modulation makes shift, scale and gate for so many places of a block: Linear(SiLU(temb)).
type Modulation struct {
	nn.Module
	Linear nn.Linear `weight:"linear"`
}

func newModulation(width, sets int) Modulation {
	return Modulation{Linear: linear(width, 3*sets*width)}
}

// Forward takes temb (B, D) to (B, 1, 3·sets·D).
func (m *Modulation) Forward(temb engine.Value) engine.Value {
	y := m.Tap(m.Linear.Forward(temb.Silu()))
	return y.Reshape(y.Dim(0), 1, y.Dim(1))
}

// set is one of a modulation's sets, (B, 1, D) each.
type set struct{ shift, scale, gate engine.Value }

// sets cuts a modulation (B, 1, 3·n·D).
func sets(mod engine.Value, n int) []set {
	p := mod.Chunk(2, 3*n)
	out := make([]set, n)
	for i := range out {
		out[i] = set{p[3*i], p[3*i+1], p[3*i+2]}
	}
	return out
}

// swiGLU takes [a | b] (…, 2·H) to silu(a)·b (…, H).
func swiGLU(x engine.Value) engine.Value {
	p := x.Chunk(-1, 2)
	return p[0].Silu().Mul(p[1])
}

// FeedForward is linear_in, SwiGLU, linear_out.
type FeedForward struct {
	nn.Module
	In  nn.Linear `weight:"linear_in"`
	Out nn.Linear `weight:"linear_out"`
}

func newFeedForward(c *Config) FeedForward {
	return FeedForward{In: linear(c.Width(), 2*c.Hidden()), Out: linear(c.Hidden(), c.Width())}
}

// Forward keeps the shape of x (B, N, D).
func (f *FeedForward) Forward(x engine.Value) engine.Value {
	return f.Tap(f.Out.Forward(swiGLU(f.In.Forward(x))))
}
