package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sdcpp measures a step of FLUX.1 in stable-diffusion.cpp, which takes its prompt as 256 tokens.
func sdcpp(ctx context.Context, s *session) (string, error) {
	w := work{"FLUX.1, 256 text tokens", "flux1", "1+2", 512, 1, 256, "bf16"}
	w = s.shrink(w)
	us := s.ours(ctx, w)
	s.race(ctx, w.String(), []*contestant{us})
	them := &contestant{name: "stable-diffusion.cpp"}
	cmd := s.command(ctx, s.python, filepath.Join("bench", "peers", "sdcpp.py"), "--size", fmt.Sprint(w.size), "--layers", w.layers)
	cmd.Stderr = &them.errs
	out, err := cmd.Output()
	if err == nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		err = json.Unmarshal([]byte(lines[len(lines)-1]), &them.m)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(them.errs.String()), "\n")
		them.m.err = fmt.Errorf("%w: %.160s", err, lines[len(lines)-1])
	}
	s.say("%s: %s s", them.name, them.seconds())
	return fmt.Sprintf("| network | size | dtype | Gesso s | stable-diffusion.cpp s | ratio | Gesso GB | stable-diffusion.cpp GB |\n|---|---|---|---|---|---|---|---|\n"+
		"| %s | %d² | %s | %s | %s | %s | %s | %s |\n\nstable-diffusion.cpp: %s, flash attention on; the median of its steps after the first.\n",
		w, w.size, w.dtype, us.seconds(), them.seconds(), ratio(us, them), us.memory(), them.memory(), sdCPP), ctx.Err()
}

// hubTable measures downloads.
func hubTable(ctx context.Context, s *session) (string, error) {
	args := []string{"run", "./bench/hub", "-python", s.python, "-mb", "1024", "-rounds", "2"}
	if s.quick {
		args = []string{"run", "./bench/hub", "-python", s.python, "-mb", "32", "-rounds", "1"}
	}
	cmd := s.command(ctx, "go", args...)
	cmd.Env = append(cmd.Env, "HF_HUB_OFFLINE=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	return "```\n" + strings.TrimSpace(string(out)) + "\n```\n", nil
}
