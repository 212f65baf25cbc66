package main

import (
	"encoding/json"
	"io"
	"time"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine/timeline"
	"github.com/gesso-go/gesso/internal/outfile"
)

// stats is the file that --stats writes.
type stats struct {
	gesso.Stats
	Mode           string    `json:"mode"`
	Device         string    `json:"device"`
	Width          int       `json:"width"`
	Height         int       `json:"height"`
	Steps          int       `json:"steps"`
	TotalSeconds   float64   `json:"total_seconds"` // of the process's work, loading included
	EncodeSeconds  float64   `json:"text_encode_seconds"`
	DenoiseSeconds float64   `json:"denoise_seconds"`
	DecodeSeconds  float64   `json:"decode_seconds"`
	StepSeconds    []float64 `json:"step_seconds"`
	PeakResident   int64     `json:"peak_resident_bytes"` // 0 where the system doesn't tell
}

func writeStats(path string, p *gesso.Pipeline, res *gesso.Result, o gesso.Options, total time.Duration) error {
	s := stats{
		Stats: p.Stats(), Mode: o.Mode.String(), Device: o.Device, Width: res.Width, Height: res.Height, Steps: res.Steps,
		TotalSeconds: total.Seconds(), EncodeSeconds: res.Timing.TextEncode.Seconds(),
		DenoiseSeconds: res.Timing.Denoise.Seconds(), DecodeSeconds: res.Timing.Decode.Seconds(), PeakResident: peakResident(),
	}
	for _, d := range res.Timing.Steps {
		s.StepSeconds = append(s.StepSeconds, d.Seconds())
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// writeTrace ends a recording and writes it.
func writeTrace(path string, r *timeline.Recorder) error {
	if err := r.Close(); err != nil {
		return err
	}
	return outfile.Write(path, r.Write)
}
