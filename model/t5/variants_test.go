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
