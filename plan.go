package gesso

import (
	"context"
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/plan"
)

// PlanOptions are for Plan.
type PlanOptions struct {
	Request  plan.Request
	Device   string           // such as "tpu:v6e:2x2"
	Finder   *platform.Finder // of libtpu; nil looks at this machine
	Cache    *diskcache.Cache // where compiled programs are kept; nil for none
	Workers  int              // programs compiled at a time; 0 means a processor each
	Plain    bool             // without the kernels of package mosaic
	Progress func(plan.Progress)
}

// ParseTopology returns the topology in a device such as "tpu:v6e:2x2".
func ParseTopology(device string) (string, error) {
	topology, ok := strings.CutPrefix(device, "tpu:")
	if !ok || !strings.Contains(topology, ":") {
		return "", fmt.Errorf("device %q: expected tpu:GENERATION:SHAPE, such as tpu:v6e:1x1", device)
	}
	return topology, nil
}

// Plan traces the programs of one generation with the model in dir, of which the configurations are enough, and compiles
// them for devices that this machine needn't have. The program must call aot.Main when it starts.
func Plan(ctx context.Context, dir string, o PlanOptions) (*plan.Report, []*plan.Compiled, error) {
	topology, err := ParseTopology(o.Device)
	if err != nil {
		return nil, nil, err
	}
	folder, err := pipeline.OpenFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	load, ok := loaders[folder.Class]
	if !ok {
		return nil, nil, fmt.Errorf("%s: pipeline class %q is not supported (known: %s)", dir, folder.Class, strings.Join(PipelineClasses(), ", "))
	}
	g, err := plan.Trace(ctx, func(p pipeline.Options) (pipeline.Pipeline, error) { return load(folder, p) }, o.Request)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	finder := o.Finder
	if finder == nil {
		finder = platform.Default()
	}
	plugin, env, err := finder.Compiler("tpu")
	if err != nil {
		return nil, nil, err
	}
	po := plan.Options{Plugin: plugin, Env: env, Cache: o.Cache, Workers: o.Workers, Plain: o.Plain, Progress: o.Progress}
	t, err := plan.Open(ctx, topology, po)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	if n := len(t.Info.Kinds); o.Request.Placement.TP > n {
		return nil, nil, fmt.Errorf("tensor parallelism over %d: %s has %d", o.Request.Placement.TP, topology, n)
	}
	all, err := t.Compile(ctx, g, po)
	if err != nil {
		return nil, nil, err
	}
	return plan.Judge(g, all, t), all, nil
}
