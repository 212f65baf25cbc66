package t5

import (
	"math"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

func tiny(variant string) Config {
	c := Defaults()
	c.VocabSize, c.DModel, c.DKV, c.DFF, c.Layers, c.Heads, c.Buckets, c.MaxDistance = 40, 16, 8, 24, 2, 2, 8, 12
	if variant != "" {
		c.FeedForwardProj = variant
	}
	return c
}

// Every form of the feed-forward layer computes what transformers computes, in every dtype and mode.
func TestFeedForwardVariants(t *testing.T) {
	ref, err := weights.OpenFile("testdata/variants.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	get := func(name string) *tensor.Array {
		x, err := ref.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		return x.Array()
	}
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ids := get("ids")
	for _, variant := range []string{"relu", "gelu", "gelu_new", "silu", "tanh", "linear", "gated-gelu", "gated-silu", "gated-relu", "gated-gelu_new"} {
		for _, d := range []struct {
			dtype tensor.DType
			name  string
			tol   float64 // of the largest element
		}{{tensor.F32, "float32", 2e-6}, {tensor.BF16, "bfloat16", 0.02}, {tensor.F16, "float16", 0.003}} {
			for _, mode := range []engine.Mode{engine.Strict, engine.Compiled} {
				e := engine.New(client, engine.Options{Mode: mode})
				c := tiny(variant)
				if err := c.Validate(); err != nil {
					t.Fatal(err)
				}
				m := New(c)
				p := &params{host: placement.NewHost(e), arrays: map[string]*tensor.Array{}, dtype: d.dtype}
				for name := range nn.Shapes(m) {
					p.arrays[name] = get(variant + ".weights." + name)
				}
				if err := nn.Bind(m, p, "t5"); err != nil {
					t.Fatal(err)
				}
				f := e.Function("t5", func(in []engine.Value) []engine.Value { return []engine.Value{m.Forward(in[0], in[1])} })
				got, err := f.Call(e.Upload(ids), e.Upload(c.BucketTable(ids.Shape[1])))[0].Read()
				if err != nil {
					t.Fatal(err)
				}
				want := get(variant + "." + d.name + ".out").Float64s()
				worst, largest := 0.0, 0.0
				for i, v := range got.Float64s() {
					worst, largest = max(worst, math.Abs(v-want[i])), max(largest, math.Abs(want[i]))
				}
				if !(worst <= d.tol*largest) {
					t.Errorf("%s %s %s: off by %.3g of %.3g", variant, d.dtype, mode, worst, largest)
				}
				p.host.Close()
			}
		}
	}
}

// params supplies arrays in a model's dtype.
type params struct {
	host   *placement.Host
	arrays map[string]*tensor.Array
	dtype  tensor.DType
}

func (p *params) Names() []string {
	var names []string
	for n := range p.arrays {
		names = append(names, n)
	}
	return names
}

func (p *params) Shape(name string) (tensor.Shape, bool) {
	a, ok := p.arrays[name]
	if !ok {
		return nil, false
	}
	return a.Shape, true
}

func (p *params) Value(name string) (engine.Value, error) {
	d := p.dtype
	if KeepF32(name, d) {
		d = tensor.F32
	}
	v, _ := p.host.Param(p.arrays[name], d)
	return v, nil
}

// A configuration without the key means the original T5, as in transformers; forms that are not known are refused by
// name.
func TestFeedForwardProj(t *testing.T) {
	c := tiny("")
	shapes := nn.Shapes(New(c))
	if _, ok := shapes["encoder.block.1.layer.1.DenseReluDense.wi.weight"]; !ok || len(shapes) != len(nn.Shapes(New(tiny("gated-gelu"))))-2 {
		t.Errorf("the default is not an ungated layer: %v", shapes)
	}
	for _, bad := range []string{"mish", "gated-", "", "gated-gated-gelu", "relu-gated"} {
		c.FeedForwardProj = bad
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "feed_forward_proj") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// In f16 values beyond its range don't end as NaN: the last layer of a feed-forward works in f32, as its residual stream does
// then, and what attention makes infinite before becomes large.
func TestOverflowF16(t *testing.T) {
	ref, err := weights.OpenFile("testdata/variants.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e := engine.New(client, engine.Options{})
	get := func(name string) *tensor.Array {
		x, err := ref.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		return x.Array()
	}
	ids := get("ids")
	run := func(d tensor.DType, scaled string, by float32) []float64 {
		m := New(tiny("gated-gelu"))
		p := &params{host: placement.NewHost(e), arrays: map[string]*tensor.Array{}, dtype: d}
		defer p.host.Close()
		for name := range nn.Shapes(m) {
			a := get("gated-gelu.weights." + name)
			if strings.HasSuffix(name, scaled) {
				x := append([]float32(nil), a.Float32s()...)
				for i := range x {
					x[i] *= by
				}
				a = tensor.FromFloat32(x, a.Shape...)
			}
			p.arrays[name] = a
		}
		if err := nn.Bind(m, p, "t5"); err != nil {
			t.Fatal(err)
		}
		out, err := m.Forward(e.Upload(ids), e.Upload(m.Config.BucketTable(ids.Shape[1]))).Read()
		if err != nil {
			t.Fatal(err)
		}
		return out.Float64s()
	}
	const wo, by = ".wo.weight", 6e4
	want := run(tensor.F32, wo, by)
	for i, v := range run(tensor.F16, wo, by) {
		if !(math.Abs(v-want[i]) < 0.02) {
			t.Fatalf("element %d is %g, in f32 %g", i, v, want[i])
		}
	}
	for i, v := range run(tensor.F16, "block.0.layer.0.SelfAttention.o.weight", 6e4) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("element %d is %g", i, v)
		}
	}
}
