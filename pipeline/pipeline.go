// Package pipeline has what the pipelines of all model families share: requests and results, loading of a Diffusers
// folder, the decoder around the autoencoder. The pipelines themselves are the folders below it.
package pipeline

import (
	"context"
	"fmt"
	"image"
	"time"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/rng"
	"github.com/gesso-go/gesso/tensor"
)

// Pipeline turns requests into pictures. One request runs at a time; Generate waits for its turn.
type Pipeline interface {
	// Generate runs a request. Ctx is checked at every step; what it returns then wraps ctx.Err().
	Generate(ctx context.Context, r Request) (*Result, error)

	// Class returns Diffusers' name of the pipeline, such as FluxPipeline.
	Class() string

	// DefaultSize returns the height and width, in pixels, of a request that names none.
	DefaultSize() (height, width int)

	Close() error
}

// Options for loading a pipeline.
type Options struct {
	// Engine runs the models. It must be set.
	Engine *engine.Engine
	// DType is what floating-point parameters are converted to. Invalid keeps what the checkpoint stores.
	DType tensor.DType
	// Quantize is "", or "int8" to compute the linear layers of transformer and T5 in 8 bits; see nn.Quantizable.
	Quantize string
	// Variant chooses weight files such as diffusion_pytorch_model.fp16.safetensors.
	Variant string
	// LoRAs are adapters, applied in this order.
	LoRAs []LoRA
	// Scheduler replaces the checkpoint's scheduler by another class, configured from the same file.
	Scheduler string
	// Warn is told what the user should know and can go on despite of. Nil drops it.
	Warn func(string)
	// Abstract, if set, supplies the parameters, and neither weights nor vocabularies are read.
	Abstract Abstract
}

// Int8 is the value of Options.Quantize.
const Int8 = "int8"

// QuantizeRule returns the rule for placement.Options.Quantize.
func (o *Options) QuantizeRule() func(name string) bool {
	if o.Quantize == Int8 {
		return nn.Quantizable
	}
	return nil
}

// Output is what Generate makes of the final latents.
type Output int

// The outputs.
const (
	OutputImage  Output = iota // 8-bit pictures
	OutputArray                // one float array (B, H, W, 3) in [0, 1]
	OutputLatent               // the latents as the pipeline holds them; nothing is decoded
)

// Request is one call of a pipeline. The zero value of every field is its default.
type Request struct {
	Prompts         []string
	Prompts2        []string // for the second text encoder; default: Prompts
	NegativePrompts []string // one for all, or one per prompt
	NegativePrompt2 []string // default: NegativePrompts

	// Image is a picture to start from, resized to Height and Width; Strength, above 0 and at most 1, is the share of the
	// steps that are run on it (default 0.6). Mask, of any size, is light where the picture is made anew; the rest stays.
	Image    image.Image
	Mask     image.Image
	Strength float64

	Height, Width     int      // pixels; default: Pipeline.DefaultSize
	Steps             int      // default: 28
	Guidance          *float64 // default: the pipeline's, which may be another with a picture to start from
	TrueCFGScale      float64  // above 1, with a negative prompt: classifier-free guidance by two evaluations a step
	ImagesPerPrompt   int      // default: 1
	MaxSequenceLength int      // tokens of the long text encoder; default: the pipeline's

	// Where noise comes from: Seeds has one seed a picture, and every picture can be made again alone from its own;
	// Generator is one generator that draws for the whole batch, as Diffusers' generator argument. Neither: a random
	// seed, and its successors for further pictures.
	Seeds     []uint64
	Generator *rng.Generator

	LoRAWeights []float64 // of the loaded LoRAs, for this request; default: as loaded

	Sigmas    []float64 // replaces the scheduler's own noise levels; their number is the number of steps
	Timesteps []float64 // likewise, in timesteps

	// Given instead of computed.
	Latents                    *tensor.Array // as the pipeline holds them
	PromptEmbeds               *tensor.Array
	PooledPromptEmbeds         *tensor.Array
	NegativePromptEmbeds       *tensor.Array
	NegativePooledPromptEmbeds *tensor.Array
	Output                     Output
	VAETiling, VAESlicing      bool

	// OnStep is called after each step; see Step. An error ends the run with it.
	OnStep func(*Step) error
	// Progress is told when a stage begins and when a step ends.
	Progress func(Progress)
	// Warn is told what the user should know, such as text that was cut off. Result.Warnings holds the same.
	Warn func(string)
	// Dump is given every stage by the name that the reference data uses. The array must not be changed.
	Dump func(name string, a *tensor.Array)
}

// Step is the state after one step, for OnStep, which may replace arrays by others of their shape.
type Step struct {
	Index        int
	Timestep     float32
	Latents      *tensor.Array // as the pipeline holds them
	PromptEmbeds *tensor.Array
	Stop         bool // set it to end the loop here and decode what there is
}

// Progress is where a run is.
type Progress struct {
	Stage string // "text encoding", "denoising", "decoding"
	Step  int    // steps done
	Steps int    // steps in all; 0 in stages without steps
}

// Result of a request.
type Result struct {
	Images   []image.Image // for OutputImage; each prompt's pictures follow each other
	Array    *tensor.Array // for OutputArray (B, H, W, 3) in f32, or OutputLatent
	Seeds    []uint64      // the seed of each picture; nil if noise came from Generator or latents were given
	Height   int           // pixels, as made
	Width    int
	Steps    int     // that ran
	Asked    int     // steps asked for: more than ran with a picture to start from, or where a callback stops
	Strength float64 // as used; 0 without a picture to start from
	Guidance float64 // as used; NaN where the model takes none
	Warnings []string
	Timing   Timing
}

// Timing is where the time went.
type Timing struct {
	TextEncode time.Duration
	Denoise    time.Duration
	Decode     time.Duration
	Steps      []time.Duration
}

// NonFiniteError names the place where a value stopped being a number.
type NonFiniteError struct {
	Stage string
	Index int
	DType tensor.DType // of the value
}

// Error tells the stage, and what to try where another dtype may help.
func (e *NonFiniteError) Error() string {
	cause := fmt.Sprintf("in %v that is hardly an overflow: the weights, or what was given, are at fault", e.DType)
	if e.DType == tensor.F16 {
		cause = "f16 ends at 65504: try --dtype bf16 or f32"
	}
	return fmt.Sprintf("%s produced a value that is not finite (element %d); %s", e.Stage, e.Index, cause)
}

// CheckFinite returns a *NonFiniteError when a holds NaN or an infinity.
func CheckFinite(stage string, a *tensor.Array) error {
	if i := a.FirstNonFinite(); i >= 0 {
		return &NonFiniteError{Stage: stage, Index: i, DType: a.DType}
	}
	return nil
}

// Run is the bookkeeping of one request: warnings, dumps, progress.
type Run struct {
	Request Request
	Result  Result
}

// Warn notes a warning.
func (r *Run) Warn(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	r.Result.Warnings = append(r.Result.Warnings, s)
	if r.Request.Warn != nil {
		r.Request.Warn(s)
	}
}

// Dump gives a stage to whoever compares.
func (r *Run) Dump(name string, a *tensor.Array) {
	if r.Request.Dump != nil {
		r.Request.Dump(name, a)
	}
}

// Progress tells where the run is.
func (r *Run) Progress(stage string, step, steps int) {
	if r.Request.Progress != nil {
		r.Request.Progress(Progress{Stage: stage, Step: step, Steps: steps})
	}
}
