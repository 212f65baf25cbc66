package flux

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
)

// params supplies numbers for every shape.
type params struct {
	host   *placement.Host
	shapes map[string]tensor.Shape
}

func (p *params) Names() (names []string) {
	for n := range p.shapes {
		names = append(names, n)
	}
	return names
}

func (p *params) Shape(name string) (tensor.Shape, bool) {
	s, ok := p.shapes[name]
	return s, ok
}

func (p *params) Value(name string) (engine.Value, error) {
	r := rand.New(rand.NewPCG(1, uint64(len(name))))
	x := make([]float32, p.shapes[name].Size())
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	v, _ := p.host.Param(tensor.FromFloat32(x, p.shapes[name]...), tensor.F16)
	return v, nil
}

// In f16 what a block adds beyond the range ends at its largest number: the text in a double block, all in a single one.
func TestOverflowF16(t *testing.T) {
	client, err := cpu.New(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	e := engine.New(client, engine.Options{})
	c := Defaults()
	c.Heads, c.HeadDim = 2, 8
	bind := func(block any) {
		t.Helper()
		p := &params{host: placement.NewHost(e), shapes: nn.Shapes(block)}
		t.Cleanup(p.host.Close)
		if err := nn.Bind(block, p, "block"); err != nil {
			t.Fatal(err)
		}
	}
	upload := func(x []float32, shape ...int) engine.Value {
		a, err := tensor.FromFloat32(x, shape...).Convert(tensor.F16)
		if err != nil {
			t.Fatal(err)
		}
		return e.Upload(a)
	}
	// ramp is (1, rows, width), neither constant nor zero.
	ramp := func(rows, width int) engine.Value {
		x := make([]float32, rows*width)
		for i := range x {
			x[i] = float32(i%7) - 2
		}
		return upload(x, 1, rows, width)
	}
	// modulation has a last gate, of parts in all, of the given size, and is zero elsewhere.
	modulation := func(parts int, gate float32) engine.Value {
		x := make([]float32, parts*c.Width())
		for i := range c.Width() {
			x[(parts-1)*c.Width()+i] = gate
		}
		return upload(x, 1, parts*c.Width())
	}
	ones := make([]float32, 5*c.HeadDim)
	for i := range ones {
		ones[i] = 1
	}
	rope := nn.Rope{Cos: e.Upload(tensor.FromFloat32(ones, 5, c.HeadDim)), Sin: e.Upload(tensor.New(tensor.F32, 5, c.HeadDim))}
	check := func(what string, v engine.Value) {
		t.Helper()
		a, err := v.Read()
		if err != nil {
			t.Fatal(err)
		}
		ends := 0
		for _, x := range a.Float64s() {
			if math.Abs(x) == 65504 {
				ends++
			}
		}
		if a.DType != tensor.F16 || a.FirstNonFinite() >= 0 || ends == 0 {
			t.Errorf("%s: %v, %d numbers at the end of the range: %v", what, a, ends, a.Float64s())
		}
	}
	double, single := newDoubleBlock(&c), newSingleBlock(&c)
	bind(double)
	bind(single)
	row := e.Upload(tensor.FromInt32([]int32{0}, 1))
	_, txt := double.Forward(ramp(3, c.Width()), ramp(2, c.Width()), modulation(6, 0), modulation(6, 6e4), row, rope)
	check("double block", txt)
	check("single block", single.Forward(ramp(5, c.Width()), modulation(3, 6e4), row, rope, 2))
}
