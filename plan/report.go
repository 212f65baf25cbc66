package plan

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
)

// Report is what a generation needs on a topology.
type Report struct {
	Topology   string            `json:"topology"`
	Chip       string            `json:"chip"`
	Devices    int               `json:"devices"`
	Memory     int64             `json:"memory_bytes"` // of one device
	Kernels    bool              `json:"kernels"`
	Height     int               `json:"height"`
	Width      int               `json:"width"`
	Steps      int               `json:"steps"`
	Components []ComponentReport `json:"components"`
	Programs   []ProgramReport   `json:"programs"`

	Placement Placement `json:"placement"`  // that was asked for
	Need      int64     `json:"need_bytes"` // of a device, so placed
	Fits      bool      `json:"fits"`
	Change    string    `json:"change,omitempty"` // the smallest that makes it fit
	Choices   []Choice  `json:"choices"`
	Problems  []string  `json:"problems,omitempty"` // programs that can't be compiled

	StepFlops      float64 `json:"step_flops"`
	StepBytes      float64 `json:"step_hbm_bytes"`
	StepSeconds    float64 `json:"step_seconds_estimate"`
	PictureSeconds float64 `json:"picture_seconds_estimate"`
	Formula        string  `json:"formula"`

	CompileSeconds float64 `json:"compile_seconds"` // of programs that were not in the cache
	Cached         int     `json:"cached"`
}

// ComponentReport is a model's part.
type ComponentReport struct {
	Name    string `json:"name"`
	Params  int64  `json:"parameters"`
	Weights int64  `json:"weights_bytes"`
	Working int64  `json:"working_bytes"` // what its largest program needs beside weights
}

// ProgramReport is a program's part, in the compiler's figures where there are.
type ProgramReport struct {
	Name      string  `json:"name"`
	Component string  `json:"component"`
	Runs      int     `json:"runs"`          // in one generation
	PerStep   float64 `json:"runs_per_step"` // on average
	Weights   int64   `json:"weights_bytes"`
	Arguments int64   `json:"arguments_bytes"`
	Outputs   int64   `json:"outputs_bytes"`
	Alias     int64   `json:"alias_bytes"` // of the outputs, where arguments were
	Temporary int64   `json:"temporary_bytes"`
	Peak      int64   `json:"peak_bytes"` // arguments, outputs and temporaries, what is shared once
	Flops     float64 `json:"flops"`
	HBM       int64   `json:"hbm_bytes"`
	Exchanged int64   `json:"exchanged_bytes,omitempty"` // results of exchanges between devices
	Exchange  float64 `json:"exchange_seconds_estimate,omitempty"`
	Cycles    int64   `json:"estimated_cycles"` // outside of kernels
	Seconds   float64 `json:"seconds_estimate"`
	Error     string  `json:"error,omitempty"`
}

// Judge puts together what the compiler says.
func Judge(g *Generation, all []*Compiled, t *Target) *Report {
	r := &Report{
		Topology: t.Name, Chip: t.Chip.Kind, Devices: len(t.Info.Kinds), Memory: t.Info.Memory, Kernels: t.Kernels,
		Height: g.Request.Height, Width: g.Request.Width, Steps: g.Request.Steps,
		Formula: fmt.Sprintf("sum over programs of runs · max(flops / %.4g, HBM bytes / %.4g)", t.Chip.Flops, t.Chip.Bandwidth),
	}
	tp := g.Request.Placement.ways()
	if tp > 1 {
		r.Kernels = false
		r.Formula += fmt.Sprintf(", of each device, + bytes sent / (%d links · %.4g)", t.links(), t.Chip.Link)
	}
	working := map[string]int64{}
	var blocks []part
	for _, c := range all {
		p := ProgramReport{
			Name: c.Name, Component: c.Component, Runs: c.Times(), PerStep: g.PerStep(c.Program), Weights: c.held(c.Shards), Flops: Flops(c.Graph),
			Arguments: c.Arguments, Outputs: c.Figures.Outputs, Alias: c.Alias, Temporary: c.Temporary, Peak: c.Peak,
		}
		if c.Shards != nil { // its products are divided as its weights are
			p.Flops /= float64(tp)
		}
		if c.Err != nil {
			p.Error = c.Err.Error()
			r.Problems = append(r.Problems, p.Error)
			p.Arguments, p.Outputs = p.Weights+c.Inputs, c.Program.Outputs
			p.Peak = p.Arguments + p.Outputs
			if aot.OutOfMemory(c.Err) { // more than there is, whatever it is
				p.Peak = max(p.Peak, t.Info.Memory+p.Weights)
			}
		}
		if c.Cost != nil {
			p.HBM, p.Cycles = c.Cost.HBM, c.Cost.Cycles
			p.Exchanged, p.Exchange = t.exchange(c.Cost, tp)
		} else {
			p.HBM = p.Arguments + p.Outputs
		}
		if c.Cached {
			r.Cached++
		} else {
			r.CompileSeconds += c.Seconds
		}
		p.Seconds = max(p.Flops/t.Chip.Flops, float64(p.HBM)/t.Chip.Bandwidth) + p.Exchange
		r.StepFlops += p.Flops * p.PerStep
		r.StepBytes += float64(p.HBM) * p.PerStep
		r.StepSeconds += p.Seconds * p.PerStep
		r.PictureSeconds += p.Seconds * float64(p.Runs)
		extra := max(0, p.Peak-p.Weights)
		working[c.Component] = max(working[c.Component], extra)
		blocks = append(blocks, part{p.Weights, extra})
		r.Programs = append(r.Programs, p)
	}
	r.PictureSeconds /= float64(max(1, g.Request.Images))
	var parts []part
	for _, c := range g.Components {
		w := working[c.Name]
		r.Components = append(r.Components, ComponentReport{c.Name, c.Params, c.Weights, w})
		parts = append(parts, part{c.held(tp), w})
	}
	r.place(g.Request.Placement, needs{parts, blocks, tp})
	return r
}
