package engine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// source is where an operation was recorded: return addresses, resolved only when an error needs them.
type source struct{ pcs [10]uintptr }

// callerSource notes the stack above the exported function of this package that was called.
func callerSource() (s source) {
	runtime.Callers(3, s.pcs[:])
	return s
}

// layerPackages are skipped on the way to the model's own line.
var layerPackages = []string{"github.com/gesso-go/gesso/engine.", "github.com/gesso-go/gesso/nn."}

// line returns "folder/file.go:12" of the first caller outside the engine and the layers.
func (s source) line() string {
	n := 0
	for n < len(s.pcs) && s.pcs[n] != 0 {
		n++
	}
	if n == 0 {
		return ""
	}
	frames := runtime.CallersFrames(s.pcs[:n])
	last := ""
	for {
		f, more := frames.Next()
		if f.File != "" && !strings.HasPrefix(f.Function, "runtime.") {
			last = fmt.Sprintf("%s/%s:%d", filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File), f.Line)
			layer := false
			for _, p := range layerPackages {
				layer = layer || strings.HasPrefix(f.Function, p)
			}
			if !layer || strings.HasSuffix(f.File, "_test.go") {
				return last
			}
		}
		if !more {
			return last
		}
	}
}

// wrap adds the line to err.
func (s source) wrap(err error) error {
	if l := s.line(); l != "" {
		return fmt.Errorf("%w (at %s)", err, l)
	}
	return err
}
