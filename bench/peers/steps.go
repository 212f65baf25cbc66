package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func (s *session) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// work is one call of a network.
type work struct {
	label, arch, layers string
	size, batch, text   int
	dtype               string
}

// String names the work in a table.
func (w work) String() string {
	out := w.label
	if w.layers != "all" {
		out += ", " + w.layers + " blocks"
	}
	if w.batch > 1 {
		out += fmt.Sprintf(", batch %d", w.batch)
	}
	return out
}

// shrink makes the work small enough to try the command with.
func (s *session) shrink(w work) work {
	if !s.quick {
		return w
	}
	w.size = min(w.size, 128)
	switch w.arch {
	case "flux1":
		w.layers = "1+1"
	case "sd3.5-medium":
		w.layers = "2"
	case "t5-xxl", "clip-l":
		w.layers = "1"
	}
	return w
}

func (w work) args() []string {
	n := strconv.Itoa
	args := []string{"--arch", w.arch, "--layers", w.layers, "--height", n(w.size), "--width", n(w.size), "--batch", n(w.batch), "--dtype", w.dtype, "--json", "--turns"}
	if w.text > 0 {
		args = append(args, "--text", n(w.text))
	}
	return args
}

// ours is Gesso, in compiled mode unless more says otherwise.
func (s *session) ours(ctx context.Context, w work, more ...string) *contestant {
	args := append([]string{"bench", "step", "--mode", "compiled"}, w.args()...)
	return &contestant{name: "Gesso " + strings.Join(more, " "), cmd: s.command(ctx, s.gesso, append(args, more...)...)}
}

// theirs is Diffusers or transformers, eager or compiled.
func (s *session) theirs(ctx context.Context, w work, more ...string) *contestant {
	args := append([]string{filepath.Join("bench", "peers", "step.py")}, w.args()...)
	return &contestant{name: "PyTorch " + strings.Join(more, " "), cmd: s.command(ctx, s.python, append(args, more...)...)}
}

func steps(ctx context.Context, s *session) (string, error) {
	// Blocks of one class take the same time, so the larger pictures are measured on fewer of them.
	return s.table(ctx, "transformer step", []work{
		{"SD3.5-medium", "sd3.5-medium", "all", 512, 2, 0, "bf16"},
		{"FLUX.1", "flux1", "4+8", 512, 1, 0, "bf16"},
		{"SD3.5-medium", "sd3.5-medium", "4", 1024, 2, 0, "bf16"},
		{"FLUX.1", "flux1", "1+2", 1024, 1, 0, "bf16"},
		{"SD3.5-medium", "sd3.5-medium", "4", 512, 2, 0, "f32"},
		{"FLUX.1", "flux1", "1+2", 512, 1, 0, "f32"},
	})
}

func components(ctx context.Context, s *session) (string, error) {
	return s.table(ctx, "component", []work{
		{"T5-XXL, 256 tokens", "t5-xxl", "4", 16, 1, 0, "bf16"},
		{"CLIP-L, 77 tokens", "clip-l", "all", 16, 1, 0, "bf16"},
		{"VAE decode", "vae", "all", 1024, 1, 0, "bf16"},
	})
}

// table measures Gesso against both ways to run PyTorch, one row a work.
func (s *session) table(ctx context.Context, title string, works []work) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | size | dtype | Gesso s | %% of peak | eager s | torch.compile s | ratio | Gesso GB | eager GB | compile GB |\n", title)
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, w := range works {
		w = s.shrink(w)
		size := fmt.Sprintf("%d²", w.size)
		if w.arch == "t5-xxl" || w.arch == "clip-l" {
			size = ""
		}
		if s.late() {
			fmt.Fprintf(&b, "| %s | %s | %s | not run: out of time | | | | | | | |\n", w, size, w.dtype)
			continue
		}
		us, eager, compiled := s.ours(ctx, w), s.theirs(ctx, w), s.theirs(ctx, w, "--compile")
		s.race(ctx, w.String()+" "+size+" "+w.dtype, []*contestant{us, eager, compiled})
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", w, size, w.dtype, us.seconds(), us.percent(), eager.seconds(),
			compiled.seconds(), ratio(us, eager, compiled), us.memory(), eager.memory(), compiled.memory())
	}
	fmt.Fprintf(&b, "\nMedians of %d, programs taking turns; %s. ratio = the faster of eager and torch.compile / Gesso.\n", s.rounds, s.version)
	return b.String(), nil
}

func (c *contestant) seconds() string {
	if c.m.err != nil {
		return "failed: " + strings.ReplaceAll(c.m.err.Error(), "|", "/")
	}
	return fmt.Sprintf("%.3f", c.m.Seconds)
}

func (c *contestant) percent() string {
	if c.m.err != nil {
		return ""
	}
	return fmt.Sprintf("%.0f", c.m.Percent)
}

func (c *contestant) memory() string {
	if c.m.err != nil {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(c.m.Peak)/1e9)
}

// ratio is the fastest peer's time over ours.
func ratio(us *contestant, peers ...*contestant) string {
	best := 0.0
	for _, p := range peers {
		if p.m.err == nil && (best == 0 || p.m.Seconds < best) {
			best = p.m.Seconds
		}
	}
	if us.m.err != nil || best == 0 {
		return ""
	}
	return fmt.Sprintf("**%.2f**", best/us.m.Seconds)
}
