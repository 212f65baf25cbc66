package aot

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/hlo"
)

// setupKey is the environment variable that makes a program a compiler; its value is the setup.
const setupKey = "GESSO_COMPILER"

// setup is what a compiler is started with.
type setup struct {
	Plugin   string  `json:"plugin"`
	Topology string  `json:"topology"`
	Bounds   []int64 `json:"bounds,omitempty"` // chips of a host, by axis
}

// Info is what a compiler says of itself and its topology.
type Info struct {
	Platform string   `json:"platform"` // the plugin's name, part of keys
	Version  string   `json:"version"`  // tells builds of the compiler apart, part of keys
	Kinds    []string `json:"kinds"`    // of the topology's devices
	Memory   int64    `json:"memory"`   // bytes of a device that programs may use
}

// Target is the topology as part of keys.
func (i *Info) Target() string { return pjrt.Target(i.Kinds) }

// job is a program on its way to a compiler.
type job struct {
	Name    string              `json:"name"`
	Text    []byte              `json:"text"`
	Options capi.CompileOptions `json:"options"`
}

// Figures are what the compiler says of a program, for one device and one execution.
type Figures struct {
	Arguments int64     `json:"arguments"`
	Outputs   int64     `json:"outputs"`
	Alias     int64     `json:"alias"`
	Temporary int64     `json:"temporary"`
	Peak      int64     `json:"allocated"` // of the device's memory: arguments, results and temporaries, padded, what is shared once
	Code      int64     `json:"code"`
	Flops     float64   `json:"flops"` // loop bodies count once
	Cost      *hlo.Cost `json:"cost,omitempty"`
	Seconds   float64   `json:"seconds"` // of compiling
}

// Result is a compiled program.
type Result struct {
	Figures
	Data []byte `json:"data"` // the plugin's form, which a client on such devices loads
}

type answer struct {
	Info   *Info   `json:"info,omitempty"`
	Result *Result `json:"result,omitempty"`
	Error  string  `json:"error,omitempty"`
	Code   int     `json:"code,omitempty"` // the plugin's code of the error
}

// canSpawn says that this program calls Main.
var canSpawn atomic.Bool

// Main must be among the first things that a program does. If this process is a compiler, Main does its work and returns
// true, and the program must end.
func Main() bool {
	s := os.Getenv(setupKey)
	if s == "" {
		canSpawn.Store(true)
		return false
	}
	out := os.NewFile(3, "answers") // plugins write to standard output
	w := json.NewEncoder(out)
	c, err := start(s)
	if err != nil {
		_ = w.Encode(answer{Error: err.Error(), Code: int(capi.CodeOf(err))})
		return true
	}
	if w.Encode(answer{Info: &c.info}) != nil {
		return true
	}
	r := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var j job
		if err := r.Decode(&j); err != nil {
			if err != io.EOF {
				_ = w.Encode(answer{Error: err.Error()})
			}
			return true
		}
		var a answer
		if a.Result, err = c.compile(&j); err != nil {
			a = answer{Error: err.Error(), Code: int(capi.CodeOf(err))}
		}
		if w.Encode(a) != nil {
			return true
		}
	}
}

// compiler is the plugin with a topology, in a child process.
type compiler struct {
	topology *capi.Topology
	info     Info
}

func start(s string) (*compiler, error) {
	var o setup
	if err := json.Unmarshal([]byte(s), &o); err != nil {
		return nil, err
	}
	p, err := pjrt.Load(o.Plugin)
	if err != nil {
		return nil, err
	}
	var options map[string]any
	if len(o.Bounds) > 0 {
		options = map[string]any{"chips_per_host_bounds": o.Bounds}
	}
	t, err := p.NewTopology(o.Topology, options)
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", o.Topology, err)
	}
	c := &compiler{topology: t}
	if c.info.Platform, err = t.PlatformName(); err != nil {
		return nil, err
	}
	version, err := t.PlatformVersion()
	if err != nil {
		return nil, err
	}
	c.info.Version = pjrt.CompilerVersion(p, version)
	devices, err := t.Devices()
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		kind, err := d.Kind()
		if err != nil {
			return nil, err
		}
		c.info.Kinds = append(c.info.Kinds, kind)
		if a, err := d.Attributes(); err == nil {
			c.info.Memory, _ = a["device_memory_bytes_limit"].(int64)
		}
	}
	return c, nil
}

func (c *compiler) compile(j *job) (*Result, error) {
	begin := time.Now()
	e, err := c.topology.Compile(j.Text, capi.FormatMLIR, j.Options)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	r := &Result{}
	r.Seconds = time.Since(begin).Seconds()
	m, err := e.MemoryStats()
	if err != nil {
		return nil, err
	}
	r.Arguments, r.Outputs, r.Alias, r.Temporary, r.Code = m.Arguments, m.Outputs, m.Alias, m.Temporary, m.GeneratedCode
	// The compiler's own peak counts weights twice that it fetches into the chip's own memory, and leaves results out
	// where temporaries are larger.
	if r.Peak = m.TotalAllocation; r.Peak == 0 {
		r.Peak = m.Arguments + m.Outputs + m.Temporary - m.Alias
	}
	if a, err := e.CostAnalysis(); err == nil {
		f, _ := a["flops"].(float32)
		r.Flops = float64(f)
	}
	if code, format, err := e.OptimizedProgram(); err == nil && format == "hlo_with_config" {
		if r.Cost, err = hlo.Count(code); err != nil {
			return nil, err
		}
	}
	if r.Data, err = e.Serialize(); err != nil {
		return nil, err
	}
	return r, nil
}
