package sd3_test

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/model/sd3"
	"github.com/gesso-go/gesso/tensor"
)

// Modulation of many steps at once gives the bits of one step's, for both rows of guidance, whose pooled embeddings differ,
// and the same in every mode. Other steps are no other programs.
func TestModulationAhead(t *testing.T) {
	const steps, batch = 16, 2
	for _, c := range []struct {
		checkpoint, variant string
		dtype               tensor.DType
	}{{"sd35", "", tensor.BF16}, {"sd35", "", tensor.F32}, {"sd3", "fp16", tensor.F16}} {
		folder := filepath.Join(shareddata.Dir(t, "golden"), "checkpoints", c.checkpoint, "transformer")
		config := sd3.Defaults()
		reference.Config(t, folder, &config)
		want := map[int][]byte{} // by step
		for _, mode := range []engine.Mode{engine.Strict, engine.Fused, engine.Compiled} {
			m := sd3.New(config)
			eng, _ := reference.Bind(t, m, folder, c.variant, c.dtype, mode)
			modulation := eng.Function("modulation", func(in []engine.Value) []engine.Value {
				return m.Modulation(sd3.Conditions{Pooled: in[0], Timestep: in[1]})
			})
			transformer := eng.Function("transformer", func(in []engine.Value) []engine.Value {
				return []engine.Value{m.Forward(sd3.Inputs{Hidden: in[0], Text: in[1], Rows: in[2], Modulation: in[3:]})}
			})
			up := func(shift float64, shape ...int) engine.Value {
				v := make([]float32, tensor.Shape(shape).Size())
				for i := range v {
					v[i] = float32(math.Sin(float64(i) + shift))
				}
				return eng.Upload(tensor.FromFloat32(v, shape...)).Convert(c.dtype)
			}
			modulate := func(first, n int) []engine.Value {
				pooled, times := make([]engine.Value, n), make([]float32, 0, n*batch)
				for i := range n {
					pooled[i] = up(1, batch, config.PooledDim)
					at := 1000 - 53.7*float32(first+i)
					times = append(times, at, at)
				}
				return modulation.Call(engine.Concat(0, pooled...), eng.Upload(tensor.FromFloat32(times, n*batch)))
			}
			velocity := func(mod []engine.Value, row int) []byte {
				rows := eng.Upload(tensor.FromInt32([]int32{int32(row * batch), int32(row*batch + 1)}, batch))
				in := []engine.Value{up(2, batch, config.InChannels, 8, 12), up(3, batch, 20, config.JointDim), rows}
				v, err := transformer.Call(append(in, mod...)...)[0].Read()
				if err != nil {
					t.Fatal(err)
				}
				return v.Data
			}
			ahead := modulate(0, steps)
			var compiles int64
			for _, step := range []int{0, 1, 7, steps - 1} {
				got := velocity(ahead, step)
				if step == 0 {
					compiles = eng.Stats().Compiles
				}
				if want[step] == nil {
					want[step] = velocity(modulate(step, 1), 0)
				}
				if !bytes.Equal(got, want[step]) {
					t.Errorf("%s %s %s: step %d has other bits ahead", c.checkpoint, c.dtype, mode, step)
				}
			}
			if bytes.Equal(want[0], want[1]) {
				t.Fatal("the timestep does not matter")
			}
			if mode == engine.Strict {
				continue // one step's modulation was compiled as well
			}
			velocity(modulate(3, steps), 5)
			if n := eng.Stats().Compiles - compiles; n != 0 {
				t.Errorf("%s %s %s: other steps compiled %d programs", c.checkpoint, c.dtype, mode, n)
			}
		}
	}
}
