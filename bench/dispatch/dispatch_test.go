package dispatch

import (
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// The caller is far ahead of the device. How far is measured by gesso bench dispatch, on a machine that does nothing
// else; a device that made its caller wait would have finished all.
func testAsynchronous(t *testing.T, c backend.Client) {
	r, err := Asynchronous(c, 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Ops != 1000 || r.Size < 128 || r.OpSeconds <= 0 || r.IssueSeconds <= 0 || r.TotalSeconds < r.IssueSeconds {
		t.Errorf("%+v", r)
	}
	if r.FinishedWhenIssued >= r.Ops/2 {
		t.Errorf("%d of %d had finished when the last was issued: %+v", r.FinishedWhenIssued, r.Ops, r)
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
