package main

import (
	"fmt"
	"math"
	"path"
	"sync/atomic"
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
	came  atomic.Int64     // bytes since the first bar; read while bars are drawn
	since time.Time
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
			t.since = t.env.now()
			t.total = t.bar("total", e.Size, true)
		}
		return
	case hub.Started:
		t.done[e.File], t.start[e.File] = e.Done, e.Done
		if t.out != nil && t.bars[e.File] == nil {
			t.bars[e.File] = t.bar(e.File, e.Size, false)
		}
	case hub.Advanced:
		t.done[e.File] = e.Done
	case hub.Finished:
		if _, started := t.start[e.File]; started {
			t.done[e.File] = max(e.Done, t.done[e.File])
		}
		if b := t.bars[e.File]; b != nil {
			b.Abort(true)
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
		t.came.Store(t.fetched())
		t.total.SetCurrent(sum)
	}
}

func (t *transfers) bar(name string, size int64, all bool) *mpb.Bar {
	if len(name) > 40 {
		name = "…/" + path.Base(name)
	}
	options := []mpb.BarOption{
		mpb.BarPriority(len(t.start)), // in the order of their start
		mpb.BarRemoveOnComplete(),     // finished files make room
	}
	ends := []decor.Decorator{decor.Percentage(decor.WC{W: 5})}
	if all {
		options = []mpb.BarOption{mpb.BarPriority(math.MaxInt)}
		ends = append(ends, decor.Any(t.rate))
	}
	sizes := func(s decor.Statistics) string { return sizeText(s.Current) + " / " + sizeText(s.Total) }
	return t.out.AddBar(max(size, 0), append(options,
		mpb.PrependDecorators(decor.Name(name+" ", decor.WCSyncSpaceR), decor.Any(sizes, decor.WCSyncWidth)),
		mpb.AppendDecorators(ends...))...)
}

// rate tells how fast it goes and how long it will take, on the average of this run.
func (t *transfers) rate(s decor.Statistics) string {
	elapsed, came := t.env.now().Sub(t.since).Seconds(), t.came.Load()
	if elapsed <= 0 || came <= 0 {
		return ""
	}
	perSecond := float64(came) / elapsed
	left := time.Duration(float64(s.Total-s.Current) / perSecond * float64(time.Second))
	return fmt.Sprintf("  %s/s  %v", sizeText(int64(perSecond)), left.Round(time.Second))
}

// say prints a line above the bars.
func (t *transfers) say(line string) {
	switch {
	case t.quiet:
	case t.out != nil:
		fmt.Fprintln(t.out, harmless(line))
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
