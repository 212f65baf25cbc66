package timeline

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

type execution chan error

func (e execution) Wait() error { return <-e }

// Executions follow each other on the device's lane, and dispatches come before them.
func TestRecorder(t *testing.T) {
	r := New()
	first, second := make(execution, 1), make(execution, 1)
	r.Dispatched("a", time.Now(), first)
	r.Dispatched("b", time.Now(), second)
	r.Add(Move, "read", time.Now(), 12)
	second <- errors.New("lost") // b is there before a, but a device works in order
	first <- nil
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	of := map[string]Span{}
	for _, s := range r.Spans() {
		of[laneNames[s.Lane]+" "+s.Name] = s
		if s.End < s.Start {
			t.Errorf("%+v ends before it starts", s)
		}
	}
	a, b := of["device: execute a"], of["device: execute b"]
	if len(of) != 5 || a.Sequence != 1 || b.Sequence != 2 || b.Start < a.End || b.Error != "lost" || a.Start < of["host: dispatch a"].End {
		t.Errorf("spans %+v", of)
	}

	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Name string         `json:"name"`
			Ph   string         `json:"ph"`
			Ts   *float64       `json:"ts"`
			Dur  *float64       `json:"dur"`
			Pid  *int           `json:"pid"`
			Tid  *int           `json:"tid"`
			Args map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal([]byte(text.String()), &file); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if n := len(file.TraceEvents); n != 4+5 {
		t.Errorf("%d events", n)
	}
	for _, e := range file.TraceEvents {
		if e.Ts == nil || e.Dur == nil || e.Pid == nil || e.Tid == nil || e.Ph == "X" && e.Args == nil {
			t.Errorf("%+v", e)
		}
	}
}

func TestNil(t *testing.T) {
	var r *Recorder
	r.Add(Host, "x", time.Now(), 0)
	r.Dispatched("x", time.Now(), nil)
}
