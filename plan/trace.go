package plan

import (
	"context"
	"fmt"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
)

// Request is the generation that is planned. Zero values are the pipeline's defaults.
type Request struct {
	Height, Width     int
	Steps             int
	Images            int // per prompt
	MaxSequenceLength int
	TrueCFGScale      float64
	DType             tensor.DType // Invalid means bf16
	Mode              engine.Mode  // when recordings become programs
	VAETiling         bool
	Placement         Placement // of the weights
}

// Generation is what a generation runs.
type Generation struct {
	Request    Request
	Programs   []*Program   // in the order of their first run
	Components []*Component // in the order of their first use
}

// Steps of the pipeline as its progress names them.
const stageSteps = "denoising"

// Times returns how often the generation runs a program.
func (p *Program) Times() int {
	n := 0
	for _, runs := range p.Runs {
		n += runs
	}
	return n
}

// PerStep returns how often a step runs a program, on average: some serve several steps.
func (g *Generation) PerStep(p *Program) float64 {
	return float64(p.Runs[stageSteps]) / float64(g.Request.Steps)
}

// Loader loads a pipeline; package gesso has one that knows all classes.
type Loader func(o pipeline.Options) (pipeline.Pipeline, error)

// Trace runs a generation on a client that computes nothing, and returns the programs.
func Trace(ctx context.Context, load Loader, r Request) (*Generation, error) {
	rec := newRecorder()
	eng := engine.New(rec, engine.Options{Mode: r.Mode})
	p, err := load(pipeline.Options{Engine: eng, DType: r.DType, Abstract: rec.parameter})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if r.Height == 0 || r.Width == 0 {
		h, w := p.DefaultSize()
		r.Height, r.Width = pipeline.DefaultInt(r.Height, h), pipeline.DefaultInt(r.Width, w)
	}
	if r.Steps == 0 {
		r.Steps = defaultSteps
	}
	q := pipeline.Request{
		Prompts: []string{""}, Height: r.Height, Width: r.Width, Steps: r.Steps, ImagesPerPrompt: r.Images,
		MaxSequenceLength: r.MaxSequenceLength, TrueCFGScale: r.TrueCFGScale, VAETiling: r.VAETiling, Output: pipeline.OutputArray,
		Progress: func(s pipeline.Progress) { rec.stage = s.Stage },
	}
	if r.TrueCFGScale > 1 {
		q.NegativePrompts = []string{""}
	}
	if _, err := p.Generate(ctx, q); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	g := &Generation{Request: r, Programs: rec.programs}
	for _, name := range rec.order {
		g.Components = append(g.Components, rec.params[name])
	}
	return g, nil
}

// defaultSteps is that of Diffusers' pipelines.
const defaultSteps = 28
