package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

func reference(t *testing.T) *weights.File {
	t.Helper()
	f, err := weights.OpenFile("../testdata/golden/components/embeddings.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func array(t *testing.T, f *weights.File, name string) *tensor.Array {
	t.Helper()
	x, err := f.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	return x.Array()
}

// Rotary tables agree with Diffusers' to one unit in the last place.
func TestRopeTable(t *testing.T) {
	f := reference(t)
	for tag, axes := range map[string][]int{"flux_real": {16, 56, 56}, "flux_tiny": {4, 6, 6}} {
		ids := array(t, f, "rope."+tag+".ids")
		flat := ids.Float64s()
		var pos [][]float64
		for i := range ids.Shape[0] {
			pos = append(pos, flat[3*i:3*i+3])
		}
		cos, sin := nn.RopeTable(pos, axes, 10000)
		for name, got := range map[string]*tensor.Array{"cos": cos, "sin": sin} {
			want := array(t, f, "rope."+tag+"."+name).Float32s()
			for i, v := range got.Float32s() {
				if ulps := math.Abs(float64(int32(math.Float32bits(v)) - int32(math.Float32bits(want[i])))); ulps > 1 {
					t.Fatalf("%s %s element %d: %v, want %v", tag, name, i, v, want[i])
				}
			}
		}
	}
}

// The sinusoid of a timestep agrees with Diffusers' to the rounding of sine and cosine.
func TestSinusoid(t *testing.T) {
	f := reference(t)
	c, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := engine.New(c, engine.Options{})
	for tag, d := range map[string]tensor.DType{"float32": tensor.F32, "bfloat16": tensor.BF16} {
		times, err := array(t, f, "timesteps").Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := nn.Sinusoid(e.Upload(times), 256).Read()
		if err != nil {
			t.Fatal(err)
		}
		want := array(t, f, "timestep_embedding_256."+tag).Float32s()
		worst := 0.0
		for i, v := range got.Float32s() {
			worst = max(worst, math.Abs(float64(v-want[i])))
		}
		t.Logf("%s: worst %g", tag, worst)
		if worst > 2e-7 {
			t.Errorf("%s: off by %g", tag, worst)
		}
	}
}

// T5's buckets of relative positions are exact.
func TestT5Buckets(t *testing.T) {
	c := t5.Defaults()
	want := array(t, reference(t), "t5_bucket_160x160").Int64s()
	for i, b := range c.BucketTable(160).Int64s() {
		if b != want[i] {
			t.Fatalf("query %d key %d: bucket %d, want %d", i/160, i%160, b, want[i])
		}
	}
}

// What f16 can't hold becomes the largest number that it can, and other types keep it.
func TestClipF16(t *testing.T) {
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e := engine.New(client, engine.Options{})
	inf := math.Inf(1)
	for d, want := range map[tensor.DType][]float64{tensor.F16: {65504, -65504, 2}, tensor.F32: {inf, -inf, 2}, tensor.BF16: {inf, -inf, 2}} {
		a, err := tensor.FromFloat64([]float64{inf, -inf, 2}, 3).Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := nn.ClipF16(e.Upload(a)).Read()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Float64s(), want) {
			t.Errorf("%s: %v, want %v", d, got.Float64s(), want)
		}
	}
}
