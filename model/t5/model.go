// Package t5 is the encoder of T5: v1.1 with gated GELU, as FLUX.1 and Stable Diffusion 3 use it, and the original with
// ReLU.
//
// Source: Raffel et al. 2020, Shazeer 2020 (gated GELU); key names as in transformers' T5EncoderModel.
package t5

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// Config is the text encoder's config.json.
type Config struct {
	VocabSize       int     `json:"vocab_size"`
	DModel          int     `json:"d_model"`
	DKV             int     `json:"d_kv"`
	DFF             int     `json:"d_ff"`
	Layers          int     `json:"num_layers"`
	Heads           int     `json:"num_heads"`
	Buckets         int     `json:"relative_attention_num_buckets"`
	MaxDistance     int     `json:"relative_attention_max_distance"`
	Eps             float64 `json:"layer_norm_epsilon"`
	FeedForwardProj string  `json:"feed_forward_proj"`
}

// Defaults returns transformers' defaults for keys that a config.json may leave out.
func Defaults() Config {
	return Config{
		VocabSize: 32128, DModel: 512, DKV: 64, DFF: 2048, Layers: 6, Heads: 8, Buckets: 32, MaxDistance: 128, Eps: 1e-6,
		FeedForwardProj: "relu",
	}
}

// Validate says which key is unusable.
func (c *Config) Validate() error {
	for _, f := range []struct {
		key string
		v   int
	}{
		{"vocab_size", c.VocabSize}, {"d_model", c.DModel}, {"d_kv", c.DKV}, {"d_ff", c.DFF},
		{"num_heads", c.Heads}, {"relative_attention_num_buckets", c.Buckets}, {"relative_attention_max_distance", c.MaxDistance},
	} {
		if f.v <= 0 {
			return fmt.Errorf("%s must be positive, got %d", f.key, f.v)
		}
	}
	if err := nn.CheckLayers("num_layers", c.Layers, 1); err != nil {
		return err
	}
	_, _, err := c.feedForward()
	return err
}

// SelfAttention has no bias and no scale. The first block's holds the table of relative positions.
type SelfAttention struct {
	nn.Module
	Q        nn.Linear     `weight:"q"`
	K        nn.Linear     `weight:"k"`
	V        nn.Linear     `weight:"v"`
	O        nn.Linear     `weight:"o"`
	Relative *nn.Embedding `weight:"relative_attention_bias"` // (buckets, heads); nil but in block 0
	heads    int
}

// AttentionLayer is norm and attention.
type AttentionLayer struct {
	Attn SelfAttention `weight:"SelfAttention"`
	Norm nn.RMSNorm    `weight:"layer_norm"`
}

// FFLayer is norm and feed-forward.
type FFLayer struct {
	FF   FeedForward `weight:"DenseReluDense"`
	Norm nn.RMSNorm  `weight:"layer_norm"`
}

// Block is one layer of the encoder.
type Block struct {
	nn.Block
	Attn AttentionLayer `weight:"layer.0"`
	FF   FFLayer        `weight:"layer.1"`
}

// Encoder is the stack of blocks.
type Encoder struct {
	Blocks    []*Block   `weight:"block"`
	FinalNorm nn.RMSNorm `weight:"final_layer_norm"`
}

// Model is the encoder with its token embedding.
type Model struct {
	Config  Config
	Shared  nn.Embedding `weight:"shared"`
	Encoder Encoder      `weight:"encoder"`
}

// New returns an unbound model. The configuration must be valid.
func New(c Config) *Model {
	inner := c.Heads * c.DKV
	m := &Model{
		Config: c, Shared: nn.NewEmbedding(c.VocabSize, c.DModel),
		Encoder: Encoder{FinalNorm: nn.NewRMSNorm(c.DModel, c.Eps, true)},
	}
	for i := range c.Layers {
		b := &Block{
			Attn: AttentionLayer{
				Attn: SelfAttention{
					Q: nn.NewLinear(c.DModel, inner, false), K: nn.NewLinear(c.DModel, inner, false),
					V: nn.NewLinear(c.DModel, inner, false), O: nn.NewLinear(inner, c.DModel, false), heads: c.Heads,
				},
				Norm: nn.NewRMSNorm(c.DModel, c.Eps, true),
			},
			FF: FFLayer{
				FF: newFeedForward(&c), Norm: nn.NewRMSNorm(c.DModel, c.Eps, true),
			},
		}
		if i == 0 {
			rel := nn.NewEmbedding(c.Buckets, c.Heads)
			b.Attn.Attn.Relative = &rel
		}
		m.Encoder.Blocks = append(m.Encoder.Blocks, b)
	}
	return m
}

// Names of the token embedding: checkpoints hold one or both, and the encoder's wins where they differ.
const (
	SharedKey  = "shared.weight"
	EncoderKey = "encoder.embed_tokens.weight"
)

// KeepF32 reports whether transformers keeps a parameter in f32 when the model is loaded as f16 (T5's output projections
// overflow otherwise).
func KeepF32(key string, d tensor.DType) bool {
	const suffix = ".wo.weight"
	return d == tensor.F16 && len(key) > len(suffix) && key[len(key)-len(suffix):] == suffix
}

// Buckets returns the bucket of every pair of positions, (n, n) row-major with the query first.
// Source: T5Attention._relative_position_bucket, bidirectional.
func (c *Config) BucketTable(n int) *tensor.Array {
	half := c.Buckets / 2
	exact := half / 2
	out := make([]int32, n*n)
	for q := range n {
		for k := range n {
			b, d := 0, k-q
			if d > 0 {
				b = half
			} else {
				d = -d
			}
			if d < exact {
				b += d
			} else {
				// in f32, as torch does; the cast truncates
				f := float32(math.Log(float64(float32(d)/float32(exact)))) / float32(math.Log(float64(c.MaxDistance)/float64(exact)))
				b += min(exact+int(f*float32(half-exact)), half-1)
			}
			out[q*n+k] = int32(b)
		}
	}
	return tensor.FromInt32(out, n, n)
}

// Forward takes ids (B, L) and the bucket table (L, L, i32) to the final states (B, L, D). Padding is attended to, as
// the pipelines do.
func (m *Model) Forward(ids, buckets engine.Value) engine.Value {
	x := m.Shared.Forward(ids) // (B, L, D)
	l := ids.Dim(1)
	// (L, L, H) → (1, H, L, L), shared by all blocks
	bias := m.Encoder.Blocks[0].Attn.Attn.Relative.Forward(buckets).Transpose(2, 0, 1).Reshape(1, m.Config.Heads, l, l)
	for _, b := range m.Encoder.Blocks {
		x = b.Forward(x.Donate(), bias)
	}
	return m.Encoder.norm(&m.Encoder.FinalNorm, x)
}

// Forward keeps the shape of x (B, L, D); bias is (1, H, L, L).
func (b *Block) Forward(x, bias engine.Value) engine.Value {
	return b.Run(func(in []engine.Value) []engine.Value {
		x, bias := in[0], in[1]
		half := bias.DType()
		x = add(x, b.Attn.Attn.Forward(norm(&b.Attn.Norm, x, half), bias))
		x = clampF16(x)
		h := norm(&b.FF.Norm, x, half)
		x = clampF16(add(x, b.FF.FF.Forward(h)))
		b.TapAll(x, bias)
		return []engine.Value{x}
	}, x, bias)[0]
}

func (e *Encoder) norm(n *nn.RMSNorm, x engine.Value) engine.Value {
	return norm(n, x, n.Weight.DType())
}

// norm is the layer's norm with the result in dtype d; the residual stream of an f16 model becomes f32 after the first
// f32 output projection.
func norm(n *nn.RMSNorm, x engine.Value, d tensor.DType) engine.Value {
	if x.DType() == d {
		return n.Forward(x)
	}
	return n.Tap(engine.RMSNorm(x, engine.Value{}, n.Eps, true).Convert(d).Mul(n.Weight.Value))
}

// add promotes to f32 when one side is f32, as torch does.
func add(x, y engine.Value) engine.Value {
	if x.DType() != y.DType() && x.DType() != tensor.Invalid && y.DType() != tensor.Invalid {
		return x.Convert(tensor.F32).Add(y.Convert(tensor.F32))
	}
	return x.Add(y)
}

// clampF16 replaces infinities of an f16 value by a large finite number, as T5 does to survive overflow.
func clampF16(x engine.Value) engine.Value {
	if x.DType() != tensor.F16 {
		return x
	}
	const limit = 65504 - 1000
	return engine.Record(graph.IsFinite, nil, x).Select(x, x.Clamp(-limit, limit))
}

// Forward takes x (B, L, D) to (B, L, D).
func (a *SelfAttention) Forward(x, bias engine.Value) engine.Value {
	q := nn.Heads(a.Q.Forward(x), a.heads)
	k := nn.Heads(a.K.Forward(x), a.heads)
	v := nn.Heads(a.V.Forward(x), a.heads)
	return a.O.Forward(nn.Merge(engine.Attention(q, k, v, engine.AttentionOptions{Scale: 1, Bias: bias})))
}
