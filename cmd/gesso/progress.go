package main

import (
	"time"

	"github.com/gesso-go/gesso"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows where a run is: a bar with steps, speed and the time left, on a terminal only.
type progress struct {
	out  *mpb.Progress
	bar  *mpb.Bar
	done int
	last time.Time
	now  func() time.Time
}

func newProgress(env *environment, quiet bool) *progress {
	if quiet || !env.terminal {
		return &progress{}
	}
	return &progress{out: mpb.New(mpb.WithOutput(env.stderr), mpb.WithWidth(40)), now: env.now}
}

// update is the request's Progress.
func (p *progress) update(s gesso.Progress) {
	if p.out == nil || s.Steps == 0 {
		return
	}
	if p.bar == nil {
		p.bar = p.out.AddBar(int64(s.Steps),
			mpb.PrependDecorators(decor.Name(s.Stage+" "), decor.CountersNoUnit("%d/%d")),
			mpb.AppendDecorators(
				decor.EwmaSpeed(0, "%.2f it/s", 5), decor.Name("  "), decor.EwmaETA(decor.ET_STYLE_GO, 5),
			),
		)
		p.last = p.now()
	}
	if n := s.Step - p.done; n > 0 {
		t := p.now()
		p.bar.EwmaIncrBy(n, t.Sub(p.last))
		p.done, p.last = s.Step, t
	}
}

// close leaves the terminal in order, also when the run ended early.
func (p *progress) close() {
	if p.out == nil {
		return
	}
	if p.bar != nil && !p.bar.Completed() {
		p.bar.Abort(false)
	}
	p.out.Wait()
}
