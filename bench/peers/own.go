package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// The sections here compare Gesso with itself.

// machine says what was measured on, and with what.
func machine(ctx context.Context, s *session) (string, error) {
	out, err := s.command(ctx, s.gesso, "bench", "peak").Output()
	if err != nil {
		return "", err
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("%s\nGesso at commit %s, %s; peers: %s, diffusers 0.42.1, transformers 5.23.0, %s.\n",
		strings.TrimSpace(string(out)), strings.TrimSpace(string(commit)), runtime.Version(), torch, sdCPP), nil
}

// part is a network small enough to be measured several times, and yet made of the real blocks.
var part = work{"SD3.5-medium", "sd3.5-medium", "4", 512, 2, 0, "bf16"}

// modes shows what fusing and compiling gain.
func modes(ctx context.Context, s *session) (string, error) {
	var b strings.Builder
	b.WriteString("| network | dtype | mode | s | ratio to strict | programs a step | GB |\n|---|---|---|---|---|---|---|\n")
	for _, w := range []work{part, {"FLUX.1", "flux1", "1+2", 512, 1, 0, "bf16"}} {
		w = s.shrink(w)
		var all []*contestant
		names := []string{"strict", "fused", "compiled"}
		for _, m := range names {
			all = append(all, s.ours(ctx, w, "--mode", m))
		}
		s.race(ctx, w.String(), all)
		for i, c := range all {
			r := ""
			if c.m.err == nil && all[0].m.err == nil {
				r = fmt.Sprintf("%.2f", all[0].m.Seconds/c.m.Seconds)
			}
			fmt.Fprintf(&b, "| %s %d² | %s | %s | %s | %s | %d | %s |\n", w, w.size, w.dtype, names[i], c.seconds(), r, c.m.Programs, c.memory())
		}
	}
	return b.String(), ctx.Err()
}

// threads shows how the work spreads over processors.
func threads(ctx context.Context, s *session) (string, error) {
	w := s.shrink(part)
	one, all := s.ours(ctx, w, "--threads", "1"), s.ours(ctx, w)
	s.race(ctx, w.String(), []*contestant{one, all})
	r := ""
	if one.m.err == nil && all.m.err == nil {
		r = fmt.Sprintf("**%.2f**", one.m.Seconds/all.m.Seconds)
	}
	return fmt.Sprintf("| network | 1 thread s | %d threads s | ratio |\n|---|---|---|---|\n| %s %d² %s | %s | %s | %s |\n",
		all.m.Threads, w, w.size, w.dtype, one.seconds(), all.seconds(), r), ctx.Err()
}

// int8Steps shows what quantised products gain.
func int8Steps(ctx context.Context, s *session) (string, error) {
	var b strings.Builder
	b.WriteString("| network | bf16 s | int8 s | ratio | bf16 GB | int8 GB |\n|---|---|---|---|---|---|\n")
	for _, w := range []work{part, {"FLUX.1", "flux1", "1+2", 512, 1, 0, "bf16"}, {"T5-XXL, 256 tokens", "t5-xxl", "4", 16, 1, 0, "bf16"}} {
		w = s.shrink(w)
		half, whole := s.ours(ctx, w), s.ours(ctx, w, "--quantize", "int8")
		s.race(ctx, w.String(), []*contestant{half, whole})
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", w, half.seconds(), whole.seconds(), ratio(whole, half), half.memory(), whole.memory())
	}
	return b.String(), ctx.Err()
}

// quantize shows how far quantised products move the pictures of the built-in model.
func quantize(ctx context.Context, s *session) (string, error) {
	out, err := s.command(ctx, s.gesso, "bench", "quantize", "--markdown").Output()
	return string(out), err
}
