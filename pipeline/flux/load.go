// Package flux is Diffusers' FluxPipeline: prompt to picture with FLUX.1 schnell and dev. A request with an image is
// FluxImg2ImgPipeline, and with a mask too FluxInpaintPipeline.
//
// Read generate.go first; it follows the pipeline from top to bottom. What starts from a picture is in image.go.
package flux

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/clip"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/scheduler"
	"github.com/gesso-go/gesso/tokenizer"
)

// Class is the name in model_index.json.
const Class = "FluxPipeline"

// Pipeline is a loaded FLUX.1 checkpoint. It implements pipeline.Pipeline.
type Pipeline struct {
	mu  sync.Mutex // one request at a time
	eng *engine.Engine

	tokenizer, tokenizer2 tokenizer.Tokenizer
	clipConfig            clip.Config
	t5Config              t5.Config
	config                flux.Config
	scheduler             scheduler.Scheduler
	vae                   *pipeline.VAE
	settings              pipeline.Settings

	clipWeights, t5Weights, weights *pipeline.Weights
	loras                           *pipeline.LoRAs

	encodeCLIP  *engine.Function // ids (B, 77), rows (B) → states, pooled
	encodeT5    *engine.Function // ids (B, L), buckets (L, L) → states
	modulation  *engine.Function // pooled (R, P), timesteps (R), guidance (R) where the model takes it → flux.Model.Modulation
	transformer *engine.Function // latents, text, rope's cos and sin, rows (B), modulation → velocity
}

// Load opens the components of a FluxPipeline folder. No weight is read before it is used.
func Load(f *pipeline.Folder, o pipeline.Options) (*Pipeline, error) {
	for name, classes := range map[string][]string{
		"tokenizer":      {"CLIPTokenizer", "CLIPTokenizerFast"},
		"tokenizer_2":    {"T5Tokenizer", "T5TokenizerFast"},
		"text_encoder":   {"CLIPTextModel"},
		"text_encoder_2": {"T5EncoderModel"},
		"transformer":    {"FluxTransformer2DModel"},
		"vae":            {"AutoencoderKL"},
	} {
		if err := f.Require(name, classes...); err != nil {
			return nil, err
		}
	}
	p := &Pipeline{eng: o.Engine, clipConfig: clip.Defaults(), t5Config: t5.Defaults(), config: flux.Defaults()}
	if err := p.load(f, o); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pipeline) load(f *pipeline.Folder, o pipeline.Options) (err error) {
	if p.settings, err = f.Settings(); err != nil {
		return err
	}
	if p.tokenizer, err = f.LoadTokenizer(o, "tokenizer"); err != nil {
		return err
	}
	if p.tokenizer2, err = f.LoadTokenizer(o, "tokenizer_2"); err != nil {
		return err
	}
	if p.scheduler, err = pipeline.LoadScheduler(f, o.Scheduler); err != nil {
		return err
	}
	models := map[string]any{}
	if err = p.loadTextEncoders(f, o, models); err != nil {
		return err
	}
	if err = f.ReadConfig("transformer", &p.config); err != nil {
		return err
	}
	m := flux.New(p.config)
	if p.weights, err = f.Bind(o.Engine, o, "transformer", m, placement.Options{Quantize: o.QuantizeRule()}); err != nil {
		return err
	}
	models["transformer"] = m
	p.transformer = o.Engine.Function("transformer", func(in []engine.Value) []engine.Value {
		return []engine.Value{m.Forward(flux.Inputs{
			Hidden: in[0], Text: in[1], Rope: nn.Rope{Cos: in[2], Sin: in[3]}, Rows: in[4], Modulation: in[5:],
		})}
	})
	p.modulation = o.Engine.Function("modulation", func(in []engine.Value) []engine.Value {
		c := flux.Conditions{Pooled: in[0], Timestep: in[1]}
		if len(in) > 2 {
			c.Guidance = in[2]
		}
		return m.Modulation(c)
	})
	if p.vae, err = pipeline.LoadVAE(f, o); err != nil {
		return err
	}
	if err = p.checkFit(f); err != nil {
		return err
	}
	p.loras, err = pipeline.LoadLoRAs(o.Engine, o.LoRAs, models, loraNamings)
	return err
}

// loadTextEncoders also notes the models, by component.
func (p *Pipeline) loadTextEncoders(f *pipeline.Folder, o pipeline.Options, models map[string]any) (err error) {
	if err = f.ReadConfig("text_encoder", &p.clipConfig); err != nil {
		return err
	}
	c := clip.New(p.clipConfig)
	if p.clipWeights, err = f.Bind(o.Engine, o, "text_encoder", c, placement.Options{Rename: clip.Rename}, clip.Ignored...); err != nil {
		return err
	}
	models["text_encoder"] = c
	p.encodeCLIP = o.Engine.Function("text_encoder", func(in []engine.Value) []engine.Value {
		states := c.Forward(in[0])
		return []engine.Value{states, clip.Pool(states, in[1])}
	})

	if err = f.ReadConfig("text_encoder_2", &p.t5Config); err != nil {
		return err
	}
	t := t5.New(p.t5Config)
	if p.t5Weights, err = f.Bind(o.Engine, o, "text_encoder_2", t, placement.Options{
		Keep: t5.KeepF32, Quantize: o.QuantizeRule(), Alias: map[string]string{t5.SharedKey: t5.EncoderKey},
	}); err != nil {
		return err
	}
	models["text_encoder_2"] = t
	p.encodeT5 = o.Engine.Function("text_encoder_2", func(in []engine.Value) []engine.Value {
		return []engine.Value{t.Forward(in[0], in[1])}
	})
	return nil
}

// checkFit says which two components do not belong together.
func (p *Pipeline) checkFit(f *pipeline.Folder) error {
	latent := 4 * p.vae.Config.LatentChannels
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"transformer in_channels is not 4 times vae latent_channels", p.config.InChannels, latent},
		{"transformer pooled_projection_dim is not text_encoder hidden_size", p.config.PooledDim, p.clipConfig.HiddenSize},
		{"transformer joint_attention_dim is not text_encoder_2 d_model", p.config.JointDim, p.t5Config.DModel},
	} {
		if c.got != c.want {
			return fmt.Errorf("%s: %s: %d and %d", f.Dir, c.what, c.got, c.want)
		}
	}
	for _, c := range []struct {
		what       string
		tok, model int
	}{
		{"text_encoder", p.tokenizer.VocabSize(), p.clipConfig.VocabSize},
		{"text_encoder_2", p.tokenizer2.VocabSize(), p.t5Config.VocabSize},
	} {
		if c.tok > c.model {
			return fmt.Errorf("%s: the tokenizer has ids up to %d but %s has a vocab_size of %d", f.Dir, c.tok-1, c.what, c.model)
		}
	}
	if n, most := p.clipLength(), p.clipConfig.MaxPositions; n > most {
		return fmt.Errorf("%s: the tokenizer's model_max_length is %d but text_encoder has max_position_embeddings %d", f.Dir, n, most)
	}
	return nil
}

// Class returns "FluxPipeline".
func (p *Pipeline) Class() string { return Class }

// sampleSize is the default picture in latents: FLUX.1 makes 1024×1024.
const sampleSize = 128

// DefaultSize returns the default height and width in pixels.
func (p *Pipeline) DefaultSize() (int, int) {
	s := sampleSize * p.vae.Config.Scale()
	return pipeline.DefaultInt(p.settings.Height, s), pipeline.DefaultInt(p.settings.Width, s)
}

// BytesRead returns how many bytes of weights have been placed, as stored.
func (p *Pipeline) BytesRead() int64 {
	n := int64(0)
	for _, w := range []*pipeline.Weights{p.clipWeights, p.t5Weights, p.weights, p.vae.Weights} {
		n += w.BytesRead()
	}
	return n
}

// Close frees the parameters and closes the files.
func (p *Pipeline) Close() error {
	errs := []error{p.clipWeights.Close(), p.t5Weights.Close(), p.weights.Close(), p.loras.Close()}
	if p.vae != nil {
		errs = append(errs, p.vae.Close())
	}
	return errors.Join(errs...)
}
