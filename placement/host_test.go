package placement

import (
	"errors"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// A parameter of the host is converted, seen with its new contents after Set without another compilation, and gone after
// Close.
func TestHostParam(t *testing.T) {
	for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
		client, err := cpu.New(cpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(client, engine.Options{Mode: mode})
		h := NewHost(e)
		v, p := h.Param(tensor.FromFloat32([]float32{1, 2.001}, 2), tensor.BF16)
		twice := e.Function("twice", func(in []engine.Value) []engine.Value { return []engine.Value{in[0].Add(v).Add(v)} })
		read := func() []float64 {
			a, err := twice.Call(e.Upload(tensor.New(tensor.BF16, 2)))[0].Read()
			if err != nil {
				t.Fatal(err)
			}
			return a.Float64s()
		}
		if got := read(); got[0] != 2 || got[1] != 4 {
			t.Errorf("%s: %v", mode, got)
		}
		compiles := e.Stats().Compiles
		if err := p.Set(tensor.FromFloat32([]float32{8, 16}, 2)); err != nil {
			t.Fatal(err)
		}
		if got := read(); got[0] != 16 || got[1] != 32 {
			t.Errorf("%s: after Set %v", mode, got)
		}
		if n := e.Stats().Compiles - compiles; n != 0 {
			t.Errorf("%s: Set compiled %d programs", mode, n)
		}
		if err := p.Set(tensor.FromFloat32([]float32{1, 2, 3}, 3)); err == nil {
			t.Errorf("%s: another shape was accepted", mode)
		}
		h.Close()
		if _, err := p.Buffer(); !errors.Is(err, errClosed) {
			t.Errorf("%s: after Close %v", mode, err)
		}
		client.Close()
	}
}
