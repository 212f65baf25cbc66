package plan

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

// small copies FLUX.1's configurations with other numbers.
func small(t *testing.T) string {
	t.Helper()
	from, to := shareddata.Dir(t, "data", "configs", "flux1-schnell"), t.TempDir()
	changes := map[string]map[string]int{
		"transformer":    {"attention_head_dim": 128, "num_attention_heads": 4, "joint_attention_dim": 64, "num_layers": 2, "num_single_layers": 2, "pooled_projection_dim": 32},
		"text_encoder":   {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "projection_dim": 32},
		"text_encoder_2": {"d_ff": 128, "d_kv": 16, "d_model": 64, "num_heads": 4, "num_layers": 2},
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	for component, keys := range changes {
		file := filepath.Join(to, component, "config.json")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(b), "\n")
		for i, l := range lines {
			for k, v := range keys {
				if strings.HasPrefix(strings.TrimSpace(l), `"`+k+`"`) {
					end := ""
					if strings.HasSuffix(l, ",") {
						end = ","
					}
					lines[i] = fmt.Sprintf(`"%s": %d%s`, k, v, end)
				}
			}
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Blocks of all models, divided among four devices as the rule says, compute what they compute on one.
func TestShardsCompute(t *testing.T) {
	g, err := Trace(t.Context(), fluxLoader(t, small(t)), Request{Height: 64, Width: 64, Steps: 1, MaxSequenceLength: 32, DType: tensor.F32, Mode: engine.Fused})
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := pjrt.Load(plugintest.Newest(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := plugin.NewClient(capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(4)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"text_encoder.encoder.layers.0", "text_encoder_2.encoder.block.0.layer", "transformer.transformer_blocks.0", "transformer.single_transformer_blocks.0"} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(g.Programs, func(p *Program) bool { return p.Name == name })
			if i < 0 {
				t.Fatal("isn't among the programs")
			}
			p := g.Programs[i]
			args := make([]*tensor.Array, len(p.Graph.Inputs))
			for i, n := range p.Graph.Inputs {
				args[i] = tensor.New(n.DType, n.Shape...)
				if n.DType == tensor.F32 {
					for j := range args[i].Float32s() {
						args[i].Float32s()[j] = float32(0.1 * math.Sin(float64(i)+float64(j)*1.7))
					}
				}
			}
			s := p.Shards(4)
			if s == nil {
				t.Fatal("nothing is divided")
			}
			if held := p.held(s); held > p.Weights/3 {
				t.Errorf("a device holds %d bytes of %d", held, p.Weights)
			}
			want := execute(t, c, p, nil, args)[0]
			for d, got := range execute(t, c, p, s, args) {
				for o := range got {
					scale := 0.0
					for _, v := range want[o] {
						scale = max(scale, math.Abs(float64(v)))
					}
					for j, v := range got[o] {
						if e := math.Abs(float64(v - want[o][j])); !(e <= 1e-5*scale) {
							t.Fatalf("device %d, result %d, element %d: %g, expected %g", d, o, j, v, want[o][j])
						}
					}
				}
			}
		})
	}
}

// execute runs a program on as many devices as s says, and returns what each of them has of each result.
func execute(t *testing.T, c *capi.Client, p *Program, s *stablehlo.Shards, args []*tensor.Array) [][][]float32 {
	t.Helper()
	devices := []int{0}
	if s != nil {
		devices = []int{0, 1, 2, 3}
	}
	program, err := pjrt.Options{Text: stablehlo.Options{Shards: s}}.Program(p.Graph, devices...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Compile(program.Text, capi.FormatMLIR, program.Options)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	in := make([][]*capi.Buffer, len(devices))
	for _, d := range devices {
		for i, a := range args {
			shape, data := a.Shape, a.Data
			if s != nil && s.Inputs[i] != stablehlo.Whole {
				shape, data = piece(a, s.Inputs[i], d, s.Devices)
			}
			dims := make([]int64, len(shape))
			for k, n := range shape {
				dims[k] = int64(n)
			}
			b, done, err := c.BufferFromHost(capi.HostBuffer{Data: data, Type: elements[a.DType], Dims: dims, Device: c.AddressableDevices()[d]})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			defer done.Close()
			in[d] = append(in[d], b)
		}
	}
	out, done, err := e.Execute(in, capi.ExecuteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	values := make([][][]float32, len(devices))
	for d := range out {
		if err := done[d].Await(); err != nil {
			t.Fatal(err)
		}
		done[d].Close()
		for o, b := range out[d] {
			v := make([]float32, p.Graph.Outputs[o].Shape.Size())
			read, err := b.ToHost(tensor.Bytes(v))
			if err == nil {
				err = read.Await()
			}
			if err != nil {
				t.Fatal(err)
			}
			read.Close()
			b.Close()
			values[d] = append(values[d], v)
		}
	}
	return values
}

var elements = map[tensor.DType]capi.ElementType{tensor.F32: capi.F32, tensor.I32: capi.S32, tensor.I64: capi.S64, tensor.Bool: capi.Pred}

// piece returns part k of n along an axis.
func piece(a *tensor.Array, axis, k, n int) (tensor.Shape, []byte) {
	shape := a.Shape.Clone()
	shape[axis] /= n
	run := shape[axis:].Size() * a.DType.Size()
	var data []byte
	for at := k * run; at < len(a.Data); at += n * run {
		data = append(data, a.Data[at:][:run]...)
	}
	return shape, data
}

// A block of T5-XXL at its real size, divided among the four chips of a host: each holds its quarter of the divided weights,
// and the two sums over the chips, after attention and after the feed-forward, are all that they exchange.
func TestShardsTPU(t *testing.T) {
	plugin := plugintest.TPU(t)
	if testing.Short() {
		t.Skip("compiles for half a minute")
	}
	dir := shareddata.Dir(t, "data", "configs", "flux1-schnell")
	g, err := Trace(t.Context(), fluxLoader(t, dir), Request{Height: 512, Width: 512, Steps: 1, Mode: engine.Fused, Placement: Placement{TP: 4}})
	if err != nil {
		t.Fatal(err)
	}
	target, err := Open(t.Context(), "v6e:2x2", Options{Plugin: plugin, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	g.Programs = slices.DeleteFunc(g.Programs, func(p *Program) bool { return p.Name != "text_encoder_2.encoder.block.0.layer" })
	all, err := target.Compile(t.Context(), g, Options{Workers: 1})
	if err != nil || len(all) != 1 || all[0].Err != nil {
		t.Fatalf("%v, %+v", err, all)
	}
	c := all[0]
	held := c.held(c.Shards)
	if held > c.Weights/4+1<<15 { // norms and the mask are whole
		t.Errorf("a device holds %d bytes of %d", held, c.Weights)
	}
	if c.Arguments > held+c.Inputs+c.Inputs/10 {
		t.Errorf("arguments of %d bytes; weights of %d and inputs of %d", c.Arguments, held, c.Inputs)
	}
	t.Logf("%d bytes of %d, exchanged: %v", held, c.Weights, c.Cost.Collectives)
	if c.Cost.Collectives["all-reduce"] == 0 && c.Cost.Collectives["reduce-scatter"] == 0 {
		t.Errorf("no sums over devices: %v", c.Cost.Collectives)
	}
	r := Judge(g, all, target)
	if p := r.Programs[0]; p.Weights != held || p.Exchanged == 0 || p.Exchange <= 0 || p.Seconds <= p.Exchange || p.Flops != Flops(c.Graph)/4 || r.Kernels {
		t.Errorf("%+v", p)
	}
	for _, k := range r.Choices {
		if k.TP != 4 {
			t.Errorf("judges %s by programs of four devices", k.Placement)
		}
	}
}
