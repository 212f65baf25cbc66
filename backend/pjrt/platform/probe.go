package platform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt"
)

// Info is what a probe learns of a plugin.
type Info struct {
	Plugin  string           `json:"plugin"` // versions of PJRT and StableHLO
	Devices []backend.Device `json:"devices,omitempty"`
}

// probeKey is the environment variable that makes a program a probe; its value is the request.
const probeKey = "GESSO_PROBE"

type request struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Client bool   `json:"client"` // start a client too
}

type answer struct {
	Info
	Error string `json:"error,omitempty"`
}

// canProbe says that this program calls Main, and so may be started again as a probe.
var canProbe atomic.Bool

// Main must be the first thing that a program does that wants plugins to be tried in child processes. If this process is
// such a child, it does its work, and child is true: the program must then exit with the code.
func Main(stdout io.Writer) (code int, child bool) {
	r := os.Getenv(probeKey)
	if r == "" {
		canProbe.Store(true)
		return 0, false
	}
	var req request
	var a answer
	err := json.Unmarshal([]byte(r), &req)
	if err == nil {
		a.Info, err = look(req)
	}
	if err != nil {
		a.Error = err.Error()
	}
	b, err := json.Marshal(a)
	if err != nil {
		return 1, true
	}
	if _, err := fmt.Fprintf(stdout, "%s%s\n", marker, b); err != nil {
		return 1, true
	}
	return 0, true
}

// marker starts the line of the answer: plugins write to standard output too.
const marker = "gesso-probe: "

// look loads a plugin in this process.
func look(r request) (Info, error) {
	f := Default()
	if err := f.prepare(r.Name, r.Path); err != nil {
		return Info{}, err
	}
	p, err := pjrt.Load(r.Path)
	if err != nil {
		return Info{}, err
	}
	major, minor := p.Version()
	info := Info{Plugin: fmt.Sprintf("pjrt %d.%d", major, minor)}
	if attributes, err := p.Attributes(); err == nil {
		if v, ok := attributes["stablehlo_current_version"].([]int64); ok && len(v) == 3 {
			info.Plugin += fmt.Sprintf(", stablehlo %d.%d.%d", v[0], v[1], v[2])
		}
	}
	if !r.Client {
		return info, nil
	}
	c, err := pjrt.New(r.Path, options(r.Name, 0))
	if err != nil {
		return info, err
	}
	info.Devices = c.Devices()
	return info, c.Close()
}

// How long a plugin may take to show its devices, and to be looked at where there are none; the latter takes a second. Tests
// change them.
var (
	probeTimeout = 60 * time.Second
	lookTimeout  = 4 * time.Second
)

// probe tries a plugin in a child process, or in this one if the program doesn't call Main. env is added to the child's
// environment, and says that there is no hardware: then no client is started.
func probe(ctx context.Context, name, path string, env []string) (Info, error) {
	r := request{Name: name, Path: path, Client: env == nil}
	if !canProbe.Load() {
		if !r.Client {
			return Info{}, nil // to look at a plugin is not worth the risk here
		}
		return look(r)
	}
	self, err := os.Executable()
	if err != nil {
		return Info{}, fmt.Errorf("probe %s: %w", path, err)
	}
	value, err := json.Marshal(r)
	if err != nil {
		return Info{}, err
	}
	limit := probeTimeout
	if !r.Client {
		limit = lookTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(append(os.Environ(), env...), probeKey+"="+string(value))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	runErr := cmd.Run()
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return Info{}, fmt.Errorf("plugin %s: gave no answer within %s", path, limit)
	} else if err != nil {
		return Info{}, err
	}
	for line := range strings.Lines(stdout.String()) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), marker)
		if !ok {
			continue
		}
		var a answer
		if err := json.Unmarshal([]byte(rest), &a); err != nil {
			return Info{}, fmt.Errorf("plugin %s: answer of the probe: %w", path, err)
		}
		if a.Error != "" {
			return a.Info, errors.New(a.Error)
		}
		return a.Info, nil
	}
	if runErr == nil {
		runErr = errors.New("no answer")
	}
	return Info{}, fmt.Errorf("plugin %s crashed the process that tried it: %w%s", path, runErr, lastWords(stderr.String()))
}

// lastWords is the line of a crashed process that says most: XLA's fatal message, or the first of Go's.
func lastWords(s string) string {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "F0") || strings.Contains(line, "Check failed") || strings.HasPrefix(line, "SIG") || strings.HasPrefix(line, "panic:") {
			if len(line) > 300 {
				line = line[:300] + "…"
			}
			return ": " + line
		}
	}
	return ""
}
