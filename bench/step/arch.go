package step

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// network is a model that waits for its parameters, and what one call of it takes.
type network struct {
	model   any
	layers  string
	tokens  int
	inputs  []*tensor.Array
	forward func(in []engine.Value) []engine.Value
}

// arch is a family of networks.
type arch struct {
	layers []int // blocks of each kind in the published model
	build  func(o *Options, layers []int) *network
}

// archs are the networks that can be timed.
var archs = map[string]arch{
	"flux1": {[]int{19, 38}, flux1},
}

// Archs lists what Options.Arch may be.
func Archs() []string { return slices.Sorted(maps.Keys(archs)) }

// network builds the network that o asks for.
func (o *Options) network() (*network, error) {
	a, ok := archs[o.Arch]
	if !ok {
		return nil, fmt.Errorf("architecture %q is unknown (known: %s)", o.Arch, strings.Join(Archs(), ", "))
	}
	if o.DType != tensor.F32 && !o.DType.IsHalf() {
		return nil, fmt.Errorf("dtype %s: expected f32, bf16 or f16", o.DType)
	}
	if o.Height < 16 || o.Width < 16 || o.Batch < 1 {
		return nil, fmt.Errorf("height %d, width %d, batch %d: expected at least 16, 16, 1", o.Height, o.Width, o.Batch)
	}
	layers := a.layers
	if o.Layers != "" && o.Layers != "all" {
		layers = nil
		for _, s := range strings.Split(o.Layers, ",") {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 || n > 1000 {
				return nil, fmt.Errorf("layers %q: expected %d numbers such as %s, or all", o.Layers, len(a.layers), join(a.layers))
			}
			layers = append(layers, n)
		}
		if len(layers) != len(a.layers) {
			return nil, fmt.Errorf("layers %q: %s has %d kinds of blocks, expected such as %s", o.Layers, o.Arch, len(a.layers), join(a.layers))
		}
	}
	n := a.build(o, layers)
	n.layers = join(layers)
	return n, nil
}

func join(ns []int) string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ",")
}

// wave returns an array of numbers of about unit variance. They need not be random: inputs are not what takes time.
func wave(d tensor.DType, shape ...int) *tensor.Array {
	v := make([]float32, tensor.Shape(shape).Size())
	for i := range v {
		v[i] = float32(math.Sqrt2 * math.Sin(float64(i)*0.7390851))
	}
	a, err := tensor.FromFloat32(v, shape...).Convert(d)
	if err != nil {
		panic(err) // d is a floating-point type
	}
	return a
}
