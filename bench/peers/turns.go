package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measured is what the programs print at the end.
type measured struct {
	Seconds    float64 `json:"seconds"`
	First      float64 `json:"first_seconds"`
	GFLOPS     float64 `json:"gflops"`
	Percent    float64 `json:"percent_of_peak"`
	Programs   int64   `json:"programs"`
	Peak       int64   `json:"peak_resident_bytes"`
	Parameters int64   `json:"parameters"`
	Device     string  `json:"device"`
	ISA        string  `json:"isa"`
	Threads    int     `json:"threads"`
	Version    string  `json:"version"`
	times      []float64
	err        error
}

// contestant is a program that does a step for each line of its standard input.
type contestant struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs bytes.Buffer
	m    measured
}

// warmUp is the longest time from start to the end of the first step; compiling is part of it.
const warmUp = 8 * time.Minute

// begin starts the program and waits for its first step.
func (c *contestant) begin() error {
	c.cmd.Stderr = &c.errs
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(warmUp, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	line, err := c.out.ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "ready" {
		err = fmt.Errorf("said %q in place of ready", strings.TrimSpace(line))
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// step does one step and notes its time.
func (c *contestant) step() error {
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		return c.fail(err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return c.fail(err)
	}
	t, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		return c.fail(err)
	}
	c.m.times = append(c.m.times, t)
	return nil
}

// end closes the program and reads its result.
func (c *contestant) end() error {
	c.in.Close()
	rest, err := io.ReadAll(c.out)
	if err == nil {
		err = c.cmd.Wait()
	}
	if err == nil {
		lines := strings.Split(strings.TrimSpace(string(rest)), "\n")
		times := c.m.times
		err = json.Unmarshal([]byte(lines[len(lines)-1]), &c.m)
		c.m.times, c.m.Seconds = times, median(times)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// fail ends the program and adds the last line that it wrote.
func (c *contestant) fail(err error) error {
	_ = c.cmd.Process.Kill()
	werr := c.cmd.Wait()
	lines := strings.Split(strings.TrimSpace(c.errs.String()), "\n")
	last := lines[len(lines)-1]
	if len(last) > 160 {
		last = last[:160] + "…"
	}
	if errors.Is(err, io.EOF) && werr != nil {
		err = werr
	}
	return fmt.Errorf("%w: %s", err, last)
}

// race starts all programs, one after the other, and lets them take turns, in alternating order.
func (s *session) race(ctx context.Context, what string, all []*contestant) {
	var alive []*contestant
	for _, c := range all {
		if ctx.Err() != nil {
			return
		}
		if c.m.err = c.begin(); c.m.err == nil {
			alive = append(alive, c)
		} else {
			s.say("%s, %s: failed: %v", what, c.name, c.m.err)
		}
	}
	for range s.rounds {
		for _, c := range alive {
			if c.m.err == nil {
				c.m.err = c.step()
			}
		}
		slices.Reverse(alive)
	}
	for _, c := range all {
		if c.m.err == nil {
			c.m.err = c.end()
			if c.m.Version != "" {
				s.version = c.m.Version
			}
			s.say("%s, %s: %.3f s %v, %.2f GB", what, c.name, c.m.Seconds, c.m.times, float64(c.m.Peak)/1e9)
		}
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
