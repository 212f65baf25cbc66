package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/bench/kernels"
)

// kernelTable times operations one by one, Gesso's process and PyTorch's in turn.
func kernelTable(ctx context.Context, s *session) (string, error) {
	seconds := s.seconds
	if s.quick {
		seconds = 0.05
	}
	theirs := s.command(ctx, s.python, filepath.Join("bench", "peers", "kernels.py"), "--seconds", fmt.Sprint(seconds))
	in, err := theirs.StdinPipe()
	if err != nil {
		return "", err
	}
	pipe, err := theirs.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := theirs.Start(); err != nil {
		return "", err
	}
	defer func() {
		in.Close()
		_ = theirs.Wait()
	}()
	out := bufio.NewReader(pipe)
	var b strings.Builder
	b.WriteString("| operation | dtype | Gesso ms | GFLOP/s | % of peak | PyTorch ms | ratio |\n|---|---|---|---|---|---|---|\n")
	head := b.Len()
	var ratios []float64
	lowest := ""
	for _, name := range kernels.Names() {
		if !s.match.MatchString(name) || s.quick && (strings.Contains(name, "4608") || strings.Contains(name, "512")) {
			continue
		}
		if s.late() {
			fmt.Fprintf(&b, "| %s | | not run: out of time | | | | |\n", name)
			continue
		}
		lines, err := s.command(ctx, s.gesso, "bench", "kernel", "--json", "--seconds", fmt.Sprint(seconds), "--match", "^"+name+"$").Output()
		if err != nil {
			return "", fmt.Errorf("gesso bench kernel %s: %w", name, err)
		}
		for line := range strings.Lines(string(lines)) {
			var r kernels.Row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return "", err
			}
			if _, err := io.WriteString(in, line); err != nil {
				return "", err
			}
			answer, err := out.ReadString('\n')
			if err != nil {
				return "", fmt.Errorf("PyTorch, %s %s: %w", name, r.DType, err)
			}
			var t struct {
				MS      float64 `json:"ms"`
				Version string  `json:"version"`
			}
			if err := json.Unmarshal([]byte(answer), &t); err != nil {
				return "", err
			}
			s.version = t.Version
			ratio := t.MS / r.MS
			ratios = append(ratios, ratio)
			if ratio == slices.Min(ratios) {
				lowest = r.Name + " " + r.DType
			}
			rate, percent := "", ""
			if r.GFLOPS > 0 {
				rate, percent = fmt.Sprintf("%.0f", r.GFLOPS), fmt.Sprintf("%.0f", r.Percent)
			}
			s.say("%s %s: %.3f ms, PyTorch %.3f ms", r.Name, r.DType, r.MS, t.MS)
			fmt.Fprintf(&b, "| %s | %s | %.3f | %s | %s | %.3f | %.2f |\n", r.Name, r.DType, r.MS, rate, percent, t.MS, ratio)
		}
	}
	if b.Len() == head {
		return "", fmt.Errorf("-match %s: no operation has such a name", s.match)
	}
	if len(ratios) > 0 {
		fmt.Fprintf(&b, "\nMedians on random data; %s, in its fastest layout, products with packed weights. The lowest ratio is %.2f (%s).\n",
			s.version, slices.Min(ratios), lowest)
	}
	return b.String(), nil
}
