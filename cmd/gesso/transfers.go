package main

import (
	"fmt"
	"path"
	"time"

	"github.com/gesso-go/gesso/hub"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// transfers shows downloads: on a terminal a bar for each file under way and one for all, elsewhere only why it waits.
type transfers struct {
	env   *environment
	quiet bool
	out   *mpb.Progress
	total *mpb.Bar
	bars  map[string]*mpb.Bar
	done  map[string]int64 // bytes on the disk by file
	start map[string]int64 // the same when its transfer began
	last  time.Time
}

func newTransfers(env *environment, quiet bool) *transfers {
	t := &transfers{env: env, quiet: quiet, bars: map[string]*mpb.Bar{}, done: map[string]int64{}, start: map[string]int64{}}
	if env.terminal && !quiet {
		t.out = mpb.New(mpb.WithOutput(env.stderr), mpb.WithWidth(72), mpb.WithAutoRefresh())
	}
	return t
}

// update takes the events of hub.Pull, which come one at a time.
func (t *transfers) update(e hub.Event) {
	switch e.Kind {
	case hub.Waiting:
		t.say(e.Message)
		return
	case hub.Planned:
		if t.out != nil {
			t.total, t.last = t.bar("total", e.Size, 1), t.env.now()
		}
		return
	case hub.Started:
		t.done[e.File], t.start[e.File] = e.Done, e.Done
		if t.out != nil && t.bars[e.File] == nil {
			t.bars[e.File] = t.bar(e.File, e.Size, 0)
		}
	case hub.Advanced:
		t.done[e.File] = e.Done
	case hub.Finished:
		if _, started := t.start[e.File]; started {
			t.done[e.File] = max(e.Done, t.done[e.File])
		}
		if b := t.bars[e.File]; b != nil {
			b.Abort(true) // finished files make room
			delete(t.bars, e.File)
		}
	}
	if b := t.bars[e.File]; b != nil {
		b.SetCurrent(e.Done)
	}
	if t.total != nil {
		var sum int64
		for _, n := range t.done {
			sum += n
		}
		now := t.env.now()
		t.total.EwmaSetCurrent(sum, now.Sub(t.last))
		t.last = now
	}
}

func (t *transfers) bar(name string, size int64, priority int) *mpb.Bar {
	if len(name) > 40 {
		name = "…/" + path.Base(name)
	}
	ends := []decor.Decorator{decor.Percentage(decor.WC{W: 5})}
	if priority > 0 {
		ends = append(ends, decor.Name("  "), decor.EwmaSpeed(decor.SizeB1000(0), "% .1f", 30), decor.Name("  "), decor.EwmaETA(decor.ET_STYLE_GO, 30))
	}
	return t.out.AddBar(max(size, 0), mpb.BarPriority(priority),
		mpb.PrependDecorators(decor.Name(name+" ", decor.WCSyncSpaceR), decor.CountersKiloByte("% .1f / % .1f", decor.WCSyncWidth)),
		mpb.AppendDecorators(ends...))
}

// say prints a line above the bars.
func (t *transfers) say(line string) {
	switch {
	case t.quiet:
	case t.out != nil:
		fmt.Fprintln(t.out, line)
	default:
		t.env.notef("%s", line)
	}
}

// fetched is how many bytes came.
func (t *transfers) fetched() (n int64) {
	for file, done := range t.done {
		n += max(done-t.start[file], 0)
	}
	return n
}

// close leaves the terminal in order, also when the download ended early.
func (t *transfers) close() {
	if t.out == nil {
		return
	}
	for _, b := range t.bars {
		b.Abort(false)
	}
	if t.total != nil && !t.total.Completed() {
		t.total.Abort(false)
	}
	t.out.Wait()
}
