package dispatch

import (
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// Of 1,000 dependent operations of a millisecond all are issued before a tenth has finished.
func testAsynchronous(t *testing.T, c backend.Client) {
	r, err := Asynchronous(c, 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations of %.2f ms, issued in %.1f ms, %d had finished", r.Ops, 1e3*r.OpSeconds, 1e3*r.IssueSeconds, r.FinishedWhenIssued)
	if r.FinishedWhenIssued >= r.Ops/10 {
		t.Errorf("%d of %d had finished when the last was issued: %+v", r.FinishedWhenIssued, r.Ops, r)
	}
	if r.OpSeconds < opTime.Seconds()/2 {
		t.Errorf("an operation took %.3f ms, expected a millisecond", 1e3*r.OpSeconds)
	}
}

func TestAsynchronousCPU(t *testing.T) {
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	testAsynchronous(t, c)
}

func TestAsynchronousPJRT(t *testing.T) {
	c, err := pjrt.New(plugintest.Newest(t), pjrt.Options{Name: "xla-cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	testAsynchronous(t, c)
}

// Both chains compute the same number of operations, and the figures are there.
func TestOverhead(t *testing.T) {
	path := plugintest.Newest(t)
	c, err := pjrt.New(path, pjrt.Options{Name: "xla-cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chain, stop, err := Plugin(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	r, err := Overhead(c, 0, chain, Options{Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Plugin <= 0 || r.Backend <= 0 || r.Strict <= 0 || r.Issue <= 0 {
		t.Errorf("%+v", r)
	}
}
