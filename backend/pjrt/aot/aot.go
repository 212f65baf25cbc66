package aot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
)

// Options for New.
type Options struct {
	Plugin   string   // path of the library
	Topology string   // the plugin's name of the devices
	Bounds   []int64  // chips of a host by axis; nil leaves it to the plugin
	Env      []string // added to the children's environment
}

// Compiler compiles for one topology. Each concurrent call of Compile has a process, which is kept for the next.
type Compiler struct {
	o Options

	mu   sync.Mutex
	idle []*process
	info *Info
}

// New returns a compiler. Nothing is started yet.
func New(o Options) *Compiler { return &Compiler{o: o} }

// process is a child that compiles one program at a time.
type process struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	out    *json.Decoder
	close  func()
	stderr *tail
	info   *Info
}

// errChild is wrapped by errors of a child that ended without an answer.
var errChild = errors.New("the compiler crashed")

// Error is a compiler's refusal of a program.
type Error struct {
	Code capi.Code
	Text string
}

func (e *Error) Error() string { return e.Text }

// OutOfMemory reports whether a program was refused because it needs more memory than its device has.
func OutOfMemory(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == capi.ResourceExhausted
}

// startTimeout is how long a plugin may take to load and to describe a topology; it takes a second or two.
const startTimeout = 120 * time.Second

func (c *Compiler) spawn(ctx context.Context) (*process, error) {
	if !canSpawn.Load() {
		return nil, errors.New("aot: this program doesn't call aot.Main")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	value, err := json.Marshal(setup{c.o.Plugin, c.o.Topology, c.o.Bounds})
	if err != nil {
		return nil, err
	}
	answers, answersIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), c.o.Env...), setupKey+"="+string(value))
	cmd.ExtraFiles = []*os.File{answersIn}
	p := &process{cmd: cmd, out: json.NewDecoder(answers), stderr: &tail{}}
	cmd.Stdout, cmd.Stderr = p.stderr, p.stderr
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err == nil {
		p.in = json.NewEncoder(in)
		err = cmd.Start()
	}
	answersIn.Close()
	if err != nil {
		answers.Close()
		return nil, fmt.Errorf("start a compiler: %w", err)
	}
	p.close = func() { in.Close(); answers.Close() }
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	a, err := p.receive(ctx)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", c.o.Plugin, err)
	}
	p.info = a.Info
	return p, nil
}

// receive waits for an answer. When ctx ends first or there is none, the process is ended.
func (p *process) receive(ctx context.Context) (*answer, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	var a answer
	err := p.out.Decode(&a)
	if !stop() && ctx.Err() != nil {
		p.end()
		return nil, ctx.Err()
	}
	if err != nil {
		waitErr := p.end()
		if waitErr == nil {
			waitErr = errors.New("no answer")
		}
		return nil, fmt.Errorf("%w: %w%s", errChild, waitErr, p.stderr.lastWords())
	}
	if a.Error != "" {
		return nil, &Error{capi.Code(a.Code), a.Error}
	}
	return &a, nil
}

// end makes the process end, and waits for it.
func (p *process) end() error {
	p.close()
	t := time.AfterFunc(2*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer t.Stop()
	return p.cmd.Wait()
}

// take returns a process that is free, or a new one.
func (c *Compiler) take(ctx context.Context) (*process, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		p := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return p, nil
	}
	c.mu.Unlock()
	p, err := c.spawn(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.info = p.info
	c.mu.Unlock()
	return p, nil
}

func (c *Compiler) give(p *process) {
	c.mu.Lock()
	c.idle = append(c.idle, p)
	c.mu.Unlock()
}

// Info describes compiler and topology.
func (c *Compiler) Info(ctx context.Context) (*Info, error) {
	c.mu.Lock()
	i := c.info
	c.mu.Unlock()
	if i != nil {
		return i, nil
	}
	p, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	c.give(p)
	return p.info, nil
}

// Compile compiles a program. Errors name it.
func (c *Compiler) Compile(ctx context.Context, p *pjrt.Program) (*Result, error) {
	return c.do(ctx, &job{Name: p.Name, Text: p.Text, Options: p.Options})
}

func (c *Compiler) do(ctx context.Context, j *job) (*Result, error) {
	p, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.in.Encode(j); err != nil {
		_ = p.end()
		return nil, fmt.Errorf("compile %s: %w: %w", j.Name, errChild, err)
	}
	a, err := p.receive(ctx)
	var refused *Error
	if err == nil || errors.As(err, &refused) {
		c.give(p)
	}
	if err != nil {
		return nil, fmt.Errorf("compile %s for %s: %w", j.Name, c.o.Topology, err)
	}
	return a.Result, nil
}

// Close ends the processes that are free.
func (c *Compiler) Close() {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, p := range idle {
		_ = p.end()
	}
}

// tail keeps the end of what a process writes.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if len(t.b) > 2*tailSize {
		t.b = bytes.Clone(t.b[len(t.b)-tailSize:])
	}
	return len(b), nil
}

// lastWords is the line that says most of a crash: XLA's fatal message, the first of Go's, or the last of all.
func (t *tail) lastWords() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := ""
	for line := range strings.Lines(string(t.b)) {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
		if strings.Contains(line, "Check failed") || len(line) > 1 && line[0] == 'F' && line[1] >= '0' && line[1] <= '9' || strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "panic:") {
			break
		}
	}
	switch {
	case last == "":
		return ""
	case len(last) > 300:
		return ": " + last[:300] + "…"
	}
	return ": " + last
}
