package main

import (
	"slices"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/backend/pjrt/platform"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
	"github.com/spf13/pflag"
)

// modelFlags say how a model is run; every command that runs one has them.
type modelFlags struct {
	dtype, device, mode, quantize string
}

func (m *modelFlags) register(f *pflag.FlagSet) {
	f.StringVar(&m.dtype, "dtype", "", "compute in f32, bf16 or f16 (default: what the checkpoint stores)")
	f.StringVar(&m.device, "device", "cpu", deviceHelp)
	m.registerQuantize(f)
	f.StringVar(&m.mode, "mode", "", "strict, fused or compiled (default: strict, or GESSO_MODE)")
}

func (m *modelFlags) registerQuantize(f *pflag.FlagSet) {
	f.StringVar(&m.quantize, "quantize", "", "int8: compute the linear layers of transformer and T5 in 8 bits")
}

const deviceHelp = "device to run on: cpu, xla-cpu, tpu, cuda, each with :N for the Nth; see gesso devices"

// checkDevice refuses names that can't be a device's; whether there is one shows when it is opened.
func checkDevice(device string) error {
	name, ordinal, err := platform.ParseDevice(device)
	if err != nil {
		return usagef("--device: %w", err)
	}
	known := platform.Default().Names()
	if name == "cpu" && ordinal > 0 {
		return usagef("--device %s: the processor is one device, cpu", device)
	}
	if name != "cpu" && !slices.Contains(known, name) {
		return usagef("--device %s: not supported (known: cpu, %s)", device, strings.Join(known, ", "))
	}
	return nil
}

// options turns the flags, and the environment where a flag is absent, into load options.
func (m *modelFlags) options(env *environment) (gesso.Options, error) {
	o := gesso.Options{Device: m.device, CPUISA: env.getenv("GESSO_CPU_ISA")}
	if m.dtype != "" {
		d, err := tensor.ParseDType(m.dtype)
		if err != nil || (d != tensor.F32 && d != tensor.BF16 && d != tensor.F16) {
			return o, usagef("--dtype %s: expected f32, bf16 or f16", m.dtype)
		}
		o.DType = d
	}
	if m.quantize != "" && m.quantize != pipeline.Int8 {
		return o, usagef("--quantize %s: not supported (known: %s)", m.quantize, pipeline.Int8)
	}
	o.Quantize = m.quantize
	if err := checkDevice(m.device); err != nil {
		return o, err
	}
	name, source := m.mode, "--mode"
	switch {
	case name != "":
	case env.getenv("GESSO_MODE") != "":
		name, source = env.getenv("GESSO_MODE"), "GESSO_MODE"
	case env.getenv("TORCH_TPU_DEFER_AND_FUSE") == "1":
		o.Mode = engine.Fused
		return o, nil
	default:
		return o, nil
	}
	mode, err := engine.ParseMode(name)
	if err != nil {
		return o, usagef("%s %s: expected strict, fused or compiled", source, name)
	}
	o.Mode = mode
	return o, nil
}
