// Package clip is OpenAI's CLIP text encoder, as FLUX.1 and Stable Diffusion 3 use it.
//
// Source: Radford et al. 2021; key names as in transformers' CLIPTextModel and CLIPTextModelWithProjection.
package clip

import (
	"fmt"
	"math"
	"strings"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
)

// Config is the text encoder's config.json.
type Config struct {
	VocabSize        int     `json:"vocab_size"`
	HiddenSize       int     `json:"hidden_size"`
	IntermediateSize int     `json:"intermediate_size"`
	Layers           int     `json:"num_hidden_layers"`
	Heads            int     `json:"num_attention_heads"`
	MaxPositions     int     `json:"max_position_embeddings"`
	HiddenAct        string  `json:"hidden_act"`
	LayerNormEps     float64 `json:"layer_norm_eps"`
	ProjectionDim    int     `json:"projection_dim"`
	EOS              int64   `json:"eos_token_id"`
	ModelType        string  `json:"model_type"`
}

// Defaults returns transformers' defaults for keys that a config.json may leave out.
func Defaults() Config {
	return Config{
		VocabSize: 49408, HiddenSize: 512, IntermediateSize: 2048, Layers: 12, Heads: 8, MaxPositions: 77,
		HiddenAct: "quick_gelu", LayerNormEps: 1e-5, ProjectionDim: 512, EOS: 49407,
	}
}

// Validate says which key is unusable.
func (c *Config) Validate() error {
	for _, f := range []struct {
		key string
		v   int
	}{
		{"vocab_size", c.VocabSize}, {"hidden_size", c.HiddenSize}, {"intermediate_size", c.IntermediateSize},
		{"num_attention_heads", c.Heads}, {"max_position_embeddings", c.MaxPositions},
	} {
		if f.v <= 0 {
			return fmt.Errorf("%s must be positive, got %d", f.key, f.v)
		}
	}
	if err := nn.CheckLayers("num_hidden_layers", c.Layers, 1); err != nil {
		return err
	}
	if c.HiddenSize%c.Heads != 0 {
		return fmt.Errorf("num_attention_heads %d does not divide hidden_size %d", c.Heads, c.HiddenSize)
	}
	_, err := nn.ActivationByName(c.HiddenAct)
	return err
}

// legacyEOS is the end token that OpenAI's own configurations name by mistake. Checkpoints with it pool the row of the
// largest token id instead.
const legacyEOS = 2

// PoolRow returns the row whose state is the pooled one: that of the first end token, or without one the first.
func (c *Config) PoolRow(ids []int64) int {
	if c.EOS == legacyEOS {
		best := 0
		for i, id := range ids {
			if id > ids[best] {
				best = i
			}
		}
		return best
	}
	for i, id := range ids {
		if id == c.EOS {
			return i
		}
	}
	return 0
}

// Embeddings adds learned position embeddings to the tokens'.
type Embeddings struct {
	nn.Module
	Token    nn.Embedding `weight:"token_embedding"`
	Position nn.Embedding `weight:"position_embedding"`
}

// Attention is causal self-attention.
type Attention struct {
	nn.Module
	Q     nn.Linear `weight:"q_proj"`
	K     nn.Linear `weight:"k_proj"`
	V     nn.Linear `weight:"v_proj"`
	Out   nn.Linear `weight:"out_proj"`
	heads int
}

// MLP is two linear layers with the configured activation.
type MLP struct {
	nn.Module
	FC1 nn.Linear `weight:"fc1"`
	FC2 nn.Linear `weight:"fc2"`
	act graph.Activation
}

// Layer is a pre-norm transformer layer.
type Layer struct {
	nn.Block
	Norm1 nn.LayerNorm `weight:"layer_norm1"`
	Attn  Attention    `weight:"self_attn"`
	Norm2 nn.LayerNorm `weight:"layer_norm2"`
	MLP   MLP          `weight:"mlp"`
}

// Encoder is the stack of layers.
type Encoder struct {
	Layers []*Layer `weight:"layers"`
}

// Model is the text encoder.
type Model struct {
	Config     Config
	Embeddings Embeddings   `weight:"embeddings"`
	Encoder    Encoder      `weight:"encoder"`
	FinalNorm  nn.LayerNorm `weight:"final_layer_norm"`
}

// New returns an unbound model. The configuration must be valid.
func New(c Config) *Model {
	act, _ := nn.ActivationByName(c.HiddenAct)
	d := c.HiddenSize
	m := &Model{
		Config: c,
		Embeddings: Embeddings{
			Token:    nn.NewEmbedding(c.VocabSize, d),
			Position: nn.NewEmbedding(c.MaxPositions, d),
		},
		FinalNorm: nn.NewLayerNorm(d, c.LayerNormEps, true),
	}
	for range c.Layers {
		m.Encoder.Layers = append(m.Encoder.Layers, &Layer{
			Norm1: nn.NewLayerNorm(d, c.LayerNormEps, true),
			Attn: Attention{
				Q: nn.NewLinear(d, d, true), K: nn.NewLinear(d, d, true), V: nn.NewLinear(d, d, true),
				Out: nn.NewLinear(d, d, true), heads: c.Heads,
			},
			Norm2: nn.NewLayerNorm(d, c.LayerNormEps, true),
			MLP:   MLP{FC1: nn.NewLinear(d, c.IntermediateSize, true), FC2: nn.NewLinear(c.IntermediateSize, d, true), act: act},
		})
	}
	return m
}

// Rename takes a checkpoint key to the name used here: transformers 4 stores everything below "text_model.", which
// transformers 5 may leave out.
func Rename(key string) string { return strings.TrimPrefix(key, "text_model.") }

// Ignored lists keys that checkpoints hold and the encoder doesn't need.
var Ignored = []string{"embeddings.position_ids", "text_projection.weight", "logit_scale"}

// Forward takes ids (B, L) of integers to the final states (B, L, D), after the last norm.
func (m *Model) Forward(ids engine.Value) engine.Value {
	l := ids.Dim(1)
	x := m.Embeddings.Token.Forward(ids) // (B, L, D)
	pos := m.Embeddings.Position.Weight.Slice(0, 0, l)
	x = m.Embeddings.Tap(x.Add(pos.Reshape(1, l, m.Config.HiddenSize)))
	for _, layer := range m.Encoder.Layers {
		x = layer.Forward(x.Donate())
	}
	return m.FinalNorm.Forward(x)
}

// Forward keeps the shape of x (B, L, D).
func (l *Layer) Forward(x engine.Value) engine.Value {
	return l.Run(func(in []engine.Value) []engine.Value {
		x := in[0]
		x = x.Add(l.Attn.Forward(l.Norm1.Forward(x)))
		x = x.Add(l.MLP.FC2.Forward(l.MLP.FC1.Act(l.Norm2.Forward(x), l.MLP.act)))
		return []engine.Value{l.Tap(x)}
	}, x)[0]
}

// Forward keeps the shape of x (B, L, D).
func (a *Attention) Forward(x engine.Value) engine.Value {
	q := nn.Heads(a.Q.Forward(x), a.heads)
	k := nn.Heads(a.K.Forward(x), a.heads)
	v := nn.Heads(a.V.Forward(x), a.heads)
	scale := 1 / math.Sqrt(float64(x.Dim(2)/a.heads))
	return a.Out.Forward(nn.Merge(engine.Attention(q, k, v, engine.AttentionOptions{Scale: scale, Causal: true})))
}

// Pool returns the rows of states (B, L, D) that rows (B, i32, b·L + row) point at: (B, D).
func Pool(states, rows engine.Value) engine.Value {
	return states.Reshape(states.Dim(0)*states.Dim(1), states.Dim(2)).Gather(rows)
}
