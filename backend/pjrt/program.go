package pjrt

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
)

// Program is a graph as it goes to a plugin's compiler, for devices of this machine or of a topology.
type Program struct {
	Name    string
	Text    []byte // StableHLO
	Options capi.CompileOptions
}

// flags are XLA's options for every program. Rounding is part of an operation: XLA must not leave a conversion out.
var flags = map[string]any{"xla_allow_excess_precision": false}

// cpuFlags are those for XLA's CPU compiler. Some versions of it let a maximum forget a NaN unless they are told.
var cpuFlags = map[string]any{"xla_cpu_enable_fast_min_max": false}

// exactErf is the minor version of PJRT from which XLA's CPU compiler has an erf that is 1 at infinity. (Measured: 0.81
// has not, 0.106 has.)
const exactErf = 100

// withDefaults returns own with what it doesn't say.
func withDefaults(own, defaults map[string]any) map[string]any {
	all := maps.Clone(defaults)
	maps.Copy(all, own)
	return all
}

// strictEffort is the compiler's effort for a program of one operation, such as strict mode makes: there is nothing to
// schedule or to fuse, and many such programs are compiled.
const strictEffort = -1

// Program writes g for the compiler. devices are ids; none leaves them to the plugin.
func (o Options) Program(g *graph.Graph, devices ...int) (*Program, error) {
	text, err := stablehlo.Text(g, o.Text)
	if err != nil {
		return nil, err
	}
	p := &Program{Name: g.Name, Text: []byte(text)}
	p.Options = capi.CompileOptions{Devices: devices, Flags: maps.Clone(flags), Shardy: strings.Contains(text, "sdy.")}
	if s := o.Text.Shards; s != nil {
		p.Options.Partitions, p.Options.SPMD = s.Devices, true
	}
	if single(g) {
		p.Options.Effort = strictEffort
	}
	maps.Copy(p.Options.Flags, o.Flags)
	return p, nil
}

// single says that g is one operation, beside constants.
func single(g *graph.Graph) bool {
	n := 0
	for _, node := range g.Nodes {
		if node.Op != graph.Constant && node.Op != graph.Iota {
			n++
		}
	}
	return n <= 1
}

// compilerEnvironment are the variables that XLA's compilers take options from.
var compilerEnvironment = []string{"XLA_FLAGS", "LIBTPU_INIT_ARGS"}

// Key returns the program's key in a cache, given what CompilerVersion and Target say.
func (p *Program) Key(platform, version, target string) diskcache.Key {
	options := p.Options.Encode()
	for _, name := range compilerEnvironment {
		if v := os.Getenv(name); v != "" {
			options = fmt.Appendf(options, "\x00%s=%s", name, v)
		}
	}
	return diskcache.Key{Platform: platform, Version: version, Topology: target, Options: options, Program: p.Text}
}

// Version says which PJRT and which StableHLO a plugin speaks.
func Version(p *capi.Plugin) string {
	major, minor := p.Version()
	version := fmt.Sprintf("pjrt %d.%d", major, minor)
	if a, err := p.Attributes(); err == nil {
		if v, ok := a["stablehlo_current_version"].([]int64); ok && len(v) == 3 {
			version += fmt.Sprintf(", stablehlo %d.%d.%d", v[0], v[1], v[2])
		}
	}
	return version
}

// CompilerVersion tells builds of a plugin apart. platform is the version that its client or a topology states; where
// that doesn't name the build, the size of the library stands for it.
func CompilerVersion(p *capi.Plugin, platform string) string {
	version := Version(p) + ", " + strings.Join(strings.Fields(platform), " ")
	if !strings.Contains(platform, "Built on") {
		if info, err := os.Stat(p.Path()); err == nil {
			version += fmt.Sprintf(", %d bytes", info.Size())
		}
	}
	return version
}

// Target names devices that programs are compiled for, by their kinds: "4 × TPU v6 lite".
func Target(kinds []string) string {
	kinds = slices.Clone(kinds)
	slices.Sort(kinds)
	var parts []string
	for i := 0; i < len(kinds); {
		n := 1
		for i+n < len(kinds) && kinds[i+n] == kinds[i] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d × %s", n, kinds[i]))
		i += n
	}
	return strings.Join(parts, ", ")
}

// obtain loads p from the cache, or has the plugin compile it and keeps the result.
func (c *Client) obtain(ctx context.Context, p *Program) (loaded *capi.LoadedExecutable, fromDisk bool, err error) {
	compile := func() (err error) {
		loaded, err = c.c.Compile(p.Text, capi.FormatMLIR, p.Options)
		return err
	}
	if c.o.Cache == nil || c.unkept.Load() {
		err := compile()
		return loaded, false, err
	}
	fromDisk, err = c.o.Cache.Get(ctx, p.Key(c.family, c.version, c.target), func(e *diskcache.Entry) (err error) {
		loaded, err = c.c.Load(e.Data, nil)
		return err
	}, func() (*diskcache.Entry, error) {
		if err := compile(); err != nil {
			return nil, err
		}
		data, err := loaded.Executable().Serialize()
		if err != nil { // the program is there nevertheless
			c.unkept.Store(capi.CodeOf(err) == capi.Unimplemented)
			return nil, nil
		}
		return &diskcache.Entry{Name: p.Name, Data: data}, nil
	})
	return loaded, fromDisk, err
}
