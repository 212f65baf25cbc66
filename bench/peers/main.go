// Command peers measures Gesso against PyTorch with Diffusers (eager and torch.compile) and stable-diffusion.cpp: the same
// work, in one session, taking turns, each on all cores. It writes the tables of docs/performance.md.
//
//	go run ./bench/peers                      # installs the peers in .peers, measures everything, under half an hour
//	go run ./bench/peers -rows steps,kernels  # some sections only; the others stay as they are
//	go run ./bench/peers -match 'conv 3×3'    # some kernels only, printed
//	go run ./bench/peers -quick -doc ""       # small sizes, tables on standard output
//
// A row's ratio is the fastest peer's time over Gesso's. A peer that fails is reported as failed. Nothing else should run on
// the machine: a section takes turns between the programs, so that what slows one slows the others too, but the medians
// are of few steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// session is one run of this command.
type session struct {
	venv, python, gesso string
	quick               bool
	rounds              int
	seconds             float64
	deadline            time.Time
	match               *regexp.Regexp // names of the kernels to measure
	version             string         // of the peers, once known
	dir                 string         // temporary
}

// section is a part of the document that one function measures.
type section struct {
	name string
	run  func(ctx context.Context, s *session) (string, error)
}

var sections = []section{
	{"machine", machine}, {"steps", steps}, {"components", components}, {"kernels", kernelTable}, {"start", start},
	{"load", load}, {"modes", modes}, {"threads", threads}, {"int8", int8Steps}, {"quantize", quantize}, {"sdcpp", sdcpp}, {"hub", hubTable},
}

func names() []string {
	var ns []string
	for _, s := range sections {
		ns = append(ns, s.name)
	}
	return ns
}

func main() {
	var s session
	var rows, doc, match string
	var budget time.Duration
	flag.StringVar(&s.venv, "venv", ".peers", "virtual environment of the peers; made and filled where it is missing")
	flag.StringVar(&s.python, "python", "", "a Python that has the peers, in place of -venv")
	flag.StringVar(&s.gesso, "gesso", "", "program to time (default: this source, built)")
	flag.StringVar(&rows, "rows", "all", "sections to measure, of "+strings.Join(names(), ","))
	flag.StringVar(&doc, "doc", "docs/performance.md", "document whose sections are replaced; empty prints them")
	flag.StringVar(&match, "match", "", "only kernels whose name matches this regular expression; their table is printed")
	flag.BoolVar(&s.quick, "quick", false, "small sizes, to try the command")
	flag.IntVar(&s.rounds, "rounds", 2, "turns of each program in a row")
	flag.Float64Var(&s.seconds, "seconds", 0.5, "time for each kernel")
	flag.DurationVar(&budget, "budget", 29*time.Minute, "rows that would begin later than this are left out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s.deadline = time.Now().Add(budget)
	if match != "" { // a part of a section doesn't replace it
		rows, doc = "kernels", ""
	}
	var err error
	if s.match, err = regexp.Compile(match); err == nil {
		err = s.main(ctx, rows, doc)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (s *session) main(ctx context.Context, rows, doc string) (err error) {
	wanted := strings.Split(rows, ",")
	if rows == "all" {
		wanted = names()
	}
	for _, w := range wanted {
		if !slices.Contains(names(), w) {
			return fmt.Errorf("-rows: no section %q (known: %s)", w, strings.Join(names(), ", "))
		}
	}
	if _, err := os.Stat(filepath.Join("cmd", "gesso")); err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	if s.dir, err = os.MkdirTemp("", "gesso-peers-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	if s.gesso == "" {
		s.gesso = filepath.Join(s.dir, "gesso")
		build := exec.CommandContext(ctx, "go", "build", "-o", s.gesso, "./cmd/gesso")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build ./cmd/gesso: %w", err)
		}
	}
	if s.python == "" {
		if s.python, err = install(ctx, s.venv); err != nil {
			return err
		}
	}
	var failed []error
	for _, sec := range sections {
		if !slices.Contains(wanted, sec.name) {
			continue
		}
		begin := time.Now()
		fmt.Fprintf(os.Stderr, "== %s\n", sec.name)
		text, err := sec.run(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", sec.name, err))
			text = fmt.Sprintf("failed: %v\n", err)
		}
		fmt.Fprintf(os.Stderr, "== %s took %.0f s\n", sec.name, time.Since(begin).Seconds())
		if doc == "" {
			fmt.Printf("\n%s", text)
			continue
		}
		if err := replaceSection(doc, sec.name, text); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// late reports whether no further row should begin.
func (s *session) late() bool { return time.Now().After(s.deadline) }

// command prepares a program with what peers need in their environment.
func (s *session) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "TOKENIZERS_PARALLELISM=false",
		"TORCHINDUCTOR_CACHE_DIR="+filepath.Join(os.TempDir(), "gesso-peers-inductor"))
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
