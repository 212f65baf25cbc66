package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// start shows how long each takes to be ready for work at all.
func start(ctx context.Context, s *session) (string, error) {
	out, err := s.command(ctx, s.gesso, "bench", "start", "--json").Output()
	if err != nil {
		return "", err
	}
	var ours struct {
		Seconds float64 `json:"start_seconds"`
	}
	if err := json.Unmarshal(out, &ours); err != nil {
		return "", err
	}
	var times []float64
	for range 3 {
		begin := time.Now()
		cmd := s.command(ctx, s.python, "-c", "import torch\nfrom diffusers import FluxPipeline\nx = torch.ones(2)\nassert (x + x).sum() == 4")
		if msg, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, msg)
		}
		times = append(times, time.Since(begin).Seconds())
	}
	return fmt.Sprintf("| from process start to the first operation | s |\n|---|---|\n| Gesso | %.3f |\n| PyTorch and Diffusers, imported | %.2f |\n",
		ours.Seconds, median(times)), nil
}

// load shows how long it takes from process start until a checkpoint's first step can begin: its files lie in the page
// cache. It is the time until the end of the first step, less that of a later step.
func load(ctx context.Context, s *session) (string, error) {
	w := work{"SD3.5-medium", "sd3.5-medium", "all", 64, 2, 0, "bf16"} // a short step: what is measured comes before it
	if s.quick {
		w = s.shrink(w)
	}
	dir := filepath.Join(s.dir, "sd3.5-medium")
	make := s.command(ctx, "go", "run", "./bench/checkpoint", "-arch", w.arch, "-layers", w.layers, dir)
	make.Stderr = os.Stderr
	if err := make.Run(); err != nil {
		return "", fmt.Errorf("bench/checkpoint: %w", err)
	}
	defer os.RemoveAll(dir)
	size, err := read(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %.2f GB in the page cache.\n\n", w, float64(size)/1e9)
	b.WriteString("| | start to end of first step s | a later step s | start to first step s | GB |\n|---|---|---|---|---|\n")
	for _, c := range []*contestant{s.ours(ctx, w, "--weights", dir), s.theirs(ctx, w, "--weights", dir)} {
		begin := time.Now()
		c.m.err = c.begin()
		took := time.Since(begin).Seconds()
		for range max(2, s.rounds) {
			if c.m.err == nil {
				c.m.err = c.step()
			}
		}
		if c.m.err == nil {
			c.m.err = c.end()
		}
		name := strings.Fields(c.name)[0]
		if c.m.err != nil {
			fmt.Fprintf(&b, "| %s | %s | | | |\n", name, c.seconds())
			continue
		}
		s.say("load, %s: %.2f s to the end of the first step, %.2f s a step", name, took, c.m.Seconds)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | **%.2f** | %s |\n", name, took, c.m.Seconds, took-c.m.Seconds, c.memory())
	}
	return b.String(), ctx.Err()
}

// read reads the files of a folder once, and returns their size.
func read(dir string) (int64, error) {
	size := int64(0)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		buf := make([]byte, 4<<20)
		for {
			n, err := f.Read(buf)
			size += int64(n)
			if err != nil {
				break
			}
		}
		return nil
	})
	return size, err
}
