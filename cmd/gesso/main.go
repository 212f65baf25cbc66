// Command gesso makes pictures with diffusion models: see gesso help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"golang.org/x/term"
)

// Exit codes. Scripts depend on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// environment is what a command sees of the world; tests replace it.
type environment struct {
	stdout, stderr io.Writer
	stdin          io.Reader
	getenv         func(string) string
	terminal       bool // stderr is a terminal
	now            func() time.Time
}

// usageError is a mistake in how a command was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// grace is how long an interrupted command may tidy up. What can't be interrupted, such as a device in the middle of a
// program, ends with the process.
const grace = 2 * time.Second

func main() {
	if code, child := platform.Main(os.Stdout); child {
		os.Exit(code)
	}
	if aot.Main() {
		return
	}
	env := &environment{
		stdout: os.Stdout, stderr: os.Stderr, stdin: os.Stdin, getenv: os.Getenv,
		terminal: term.IsTerminal(int(os.Stderr.Fd())), now: time.Now,
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
		time.Sleep(grace)
		fmt.Fprintln(os.Stderr, "gesso: interrupted")
		os.Exit(exitInterrupted)
	}()
	os.Exit(run(ctx, env, os.Args[1:]))
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, env *environment, args []string) int {
	out := &watched{Writer: env.stdout}
	watching := *env
	watching.stdout = out
	cmd := newRootCommand(&watching)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		err = out.err
	}
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(env.stderr, "gesso: interrupted:", oneLine(err))
		return exitInterrupted
	case errors.As(err, &usage):
		fmt.Fprintln(env.stderr, "gesso:", oneLine(err))
		return exitUsage
	}
	fmt.Fprintln(env.stderr, "gesso:", oneLine(err))
	return exitFailed
}

// watched keeps the first error of writing: not everybody who prints, such as the help, looks at it.
type watched struct {
	io.Writer
	err error
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// oneLine keeps an error on one line.
func oneLine(err error) string {
	return harmless(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " "))
}

// harmless writes control characters, which a terminal would obey, as Go's escapes. Lines and tabs stay.
func harmless(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// harmlessWriter writes what harmless makes of each piece.
type harmlessWriter struct{ w io.Writer }

func (h harmlessWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(h.w, harmless(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
