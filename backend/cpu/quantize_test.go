package cpu

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Weights are quantised to the bits of graph.QuantizeRows at every level, whatever is in them.
func TestQuantizeRowsIsTheGraphs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v := make([]float32, 9*67)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	v[67+3] = float32(math.NaN())
	v[2*67+66] = float32(math.Inf(-1))
	for i := range 67 {
		v[3*67+i], v[4*67+i] = 0, v[4*67+i]*0x1p-125
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		w, err := tensor.FromFloat32(v, 9, 67).Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		wantQ, wantScale := graph.QuantizeRows(w)
		for _, level := range isa.Available() {
			c, err := New(Options{ISA: level.String()})
			if err != nil {
				t.Fatal(err)
			}
			q, scale, err := c.QuantizeRows(w)
			c.Close()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 9 {
				got, want := scale.Float32s()[i], wantScale.Float32s()[i]
				if got != want && !(got != got && want != want) {
					t.Errorf("%s %s row %d: scale %g, want %g", d, level, i, got, want)
				}
				if want == want && !bytes.Equal(q.Data[i*67:(i+1)*67], wantQ.Data[i*67:(i+1)*67]) {
					t.Errorf("%s %s row %d differs", d, level, i)
				}
			}
		}
	}
}
