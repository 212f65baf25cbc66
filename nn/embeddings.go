package nn

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Sinusoid returns Diffusers' Timesteps(width, flip_sin_to_cos=True, downscale_freq_shift=0) of t (B) in f32:
// (B, width) with [cos(t·f) | sin(t·f)] and f_i = 10000^(-i/(width/2)).
func Sinusoid(t engine.Value, width int) engine.Value {
	if t.Err() != nil {
		return t
	}
	half := width / 2
	freq := make([]float32, half)
	scale := float32(-math.Log(10000))
	for i := range freq {
		// torch: exp of an f32 exponent that was divided in f32
		freq[i] = float32(math.Exp(float64(scale * float32(i) / float32(half))))
	}
	if half == 128 {
		// The exp that PyTorch calls (MKL, on Intel processors with AVX-512) rounds these four of the frequencies that
		// every model uses the other way. At t = 1000 a unit in the last place is up to 6e-5 of the angle.
		for _, i := range []int{13, 44, 119, 126} {
			freq[i] = math.Nextafter32(freq[i], 1)
		}
	}
	b := t.Dim(0)
	angle := t.Convert(tensor.F32).Reshape(b, 1).Mul(upload(t.Engine(), freq, 1, half))
	return engine.Concat(1, angle.Cos(), angle.Sin())
}

// MLPEmbedding is linear_1, SiLU, linear_2: Diffusers' TimestepEmbedding and PixArtAlphaTextProjection.
type MLPEmbedding struct {
	Module
	Linear1 Linear `weight:"linear_1"`
	Linear2 Linear `weight:"linear_2"`
}

// NewMLPEmbedding returns an unbound layer.
func NewMLPEmbedding(in, width int) *MLPEmbedding {
	return &MLPEmbedding{Linear1: NewLinear(in, width, true), Linear2: NewLinear(width, width, true)}
}

// Forward takes x (B, in) to (B, width).
func (m *MLPEmbedding) Forward(x engine.Value) engine.Value {
	return m.Tap(m.Linear2.Forward(m.Linear1.Act(x, graph.ActSilu)))
}

// TimeTextEmbedding adds the embeddings of timestep, guidance (where the model has it) and pooled text:
// CombinedTimestepTextProjEmbeddings and CombinedTimestepGuidanceTextProjEmbeddings.
type TimeTextEmbedding struct {
	Module
	Timestep *MLPEmbedding `weight:"timestep_embedder"`
	Guidance *MLPEmbedding `weight:"guidance_embedder"` // nil without guidance
	Text     *MLPEmbedding `weight:"text_embedder"`
}

// timeChannels is the width of the sinusoid.
const timeChannels = 256

// NewTimeTextEmbedding returns an unbound layer.
func NewTimeTextEmbedding(width, pooled int, guidance bool) TimeTextEmbedding {
	e := TimeTextEmbedding{Timestep: NewMLPEmbedding(timeChannels, width), Text: NewMLPEmbedding(pooled, width)}
	if guidance {
		e.Guidance = NewMLPEmbedding(timeChannels, width)
	}
	return e
}

// Forward takes timestep (B), guidance (B, ignored without an embedder) and pooled text (B, P) to (B, width), in the
// order of addition time, guidance, text.
func (e *TimeTextEmbedding) Forward(timestep, guidance, pooled engine.Value) engine.Value {
	d := pooled.DType()
	out := e.Timestep.Forward(Sinusoid(timestep, timeChannels).Convert(d))
	if e.Guidance != nil {
		out = out.Add(e.Guidance.Forward(Sinusoid(guidance, timeChannels).Convert(d)))
	}
	return e.Tap(out.Add(e.Text.Forward(pooled)))
}

// Rope is the table of rotations for the rows of a sequence: cos and sin (N, D) in f32, pairs interleaved.
type Rope struct{ Cos, Sin engine.Value }

// CheckRopeAxes reports what is wrong with axes_dims_rope: a head of headDim dimensions is divided among so many axes.
func CheckRopeAxes(dims []int, axes, headDim int) error {
	if len(dims) != axes {
		return fmt.Errorf("axes_dims_rope must have %d numbers, got %v", axes, dims)
	}
	sum := 0
	for _, d := range dims {
		if d <= 0 || d%2 != 0 {
			return fmt.Errorf("axes_dims_rope %v must be even and positive", dims)
		}
		sum += d
	}
	if sum != headDim {
		return fmt.Errorf("axes_dims_rope %v must add up to attention_head_dim %d", dims, headDim)
	}
	return nil
}

// RopeTable computes the rotations for rows with the given positions, one position per axis: axis a rotates the next
// dims[a] dimensions of a head. Angles are float64, as Diffusers computes them where the device has float64.
// Source: FluxPosEmbed, get_1d_rotary_pos_embed with repeat_interleave_real.
func RopeTable(positions [][]float64, dims []int, theta float64) (cos, sin *tensor.Array) {
	width := 0
	for _, d := range dims {
		width += d
	}
	cos, sin = tensor.New(tensor.F32, len(positions), width), tensor.New(tensor.F32, len(positions), width)
	c, s := cos.Float32s(), sin.Float32s()
	freqs := make([][]float64, len(dims))
	for a, d := range dims {
		freqs[a] = make([]float64, d/2)
		for i := range freqs[a] {
			freqs[a][i] = 1 / math.Pow(theta, float64(2*i)/float64(d))
		}
	}
	for row, pos := range positions {
		at := row * width
		for a := range dims {
			for _, f := range freqs[a] {
				sn, cs := math.Sincos(pos[a] * f)
				c[at], c[at+1] = float32(cs), float32(cs)
				s[at], s[at+1] = float32(sn), float32(sn)
				at += 2
			}
		}
	}
	return cos, sin
}
