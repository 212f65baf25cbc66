package nn_test

import (
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// half makes an array of a half type.
func half(t *testing.T, d tensor.DType, v []float32, shape ...int) *tensor.Array {
	t.Helper()
	a, err := tensor.FromFloat32(v, shape...).Convert(d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// gelu_new rounds after each of its operations, as transformers' does; values of PyTorch 2.15.
func TestGeluNewIsRounded(t *testing.T) {
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	x := []float32{-3.1, -2.2, -1.3, -0.72, -0.41, 0.3, 0.55, 0.9, 1.3, 1.7, 2.6, 3.4}
	for d, want := range map[tensor.DType][]float32{
		tensor.BF16: {0, -0.0301513671875, -0.126953125, -0.169921875, -0.1396484375, 0.185546875, 0.390625, 0.73046875, 1.171875, 1.625,
			2.578125, 3.40625},
		tensor.F16: {-0.002269744873046875, -0.030609130859375, -0.1259765625, -0.1697998046875, -0.1396484375, 0.1854248046875,
			0.389892578125, 0.734375, 1.173828125, 1.6240234375, 2.587890625, 3.400390625},
	} {
		for _, mode := range []engine.Mode{engine.Strict, engine.Compiled} {
			e := engine.New(client, engine.Options{Mode: mode})
			f := e.Function("f", func(in []engine.Value) []engine.Value { return []engine.Value{nn.Activate(in[0], graph.ActGeluNew)} })
			got, err := f.Call(e.Upload(half(t, d, x, len(x))))[0].Read()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Float32s(), want) {
				t.Errorf("%s %s: %v, want %v", d, mode, got.Float32s(), want)
			}
		}
	}
}

// Where PyTorch rounds the product before it adds the bias, so does RoundFirst; values of PyTorch 2.15.
func TestProductIsRoundedFirst(t *testing.T) {
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e := engine.New(client, engine.Options{})
	l := nn.NewLinear(2, 1, true)
	l.Weight.Value = e.Upload(half(t, tensor.BF16, []float32{1, 0.5}, 1, 2))
	l.Bias.Value = e.Upload(half(t, tensor.BF16, []float32{1}, 1))
	x := half(t, tensor.BF16, []float32{256, 1.25, 512, 2.5, -256, -1.5, 3, 0.01}, 4, 2)
	for _, c := range []struct {
		forward func(engine.Value) engine.Value
		want    []float32
	}{
		{l.Forward, []float32{258, 516, -256, 4}},
		{l.RoundFirst, []float32{256, 512, -255, 4}},
	} {
		got, err := c.forward(e.Upload(x)).Read()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Float32s(), c.want) {
			t.Errorf("%v, want %v", got.Float32s(), c.want)
		}
	}
}
