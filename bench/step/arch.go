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
	class   string // of Diffusers, and its configuration; empty for what is no transformer
	config  any
	layers  string
	tokens  int
	inputs  []*tensor.Array
	forward func(in []engine.Value) []engine.Value
}

// arch is a family of networks.
type arch struct {
	layers []int // blocks of each kind in the published model
	build  func(o *Options, layers []int) (*network, error)
}

// archs are the networks that can be timed: transformers of one denoising step, and the components around them.
var archs = map[string]arch{
	"flux1":        {[]int{19, 38}, flux1},
	"sd3.5-medium": {[]int{24}, sd35Medium},
	"sd3.5-large":  {[]int{38}, sd35Large},
	"flux2":        {[]int{8, 48}, flux2Dev},
	"klein-4b":     {[]int{5, 20}, klein(24, 7680)},
	"klein-9b":     {[]int{8, 24}, klein(32, 12288)},
	"clip-l":       {[]int{12}, clipL},
	"t5-xxl":       {[]int{24}, t5XXL},
	"vae":          {nil, vaeDecoder},
}

// Archs lists what Options.Arch may be.
func Archs() []string { return slices.Sorted(maps.Keys(archs)) }

// Network returns an unbound model and the name and configuration that Diffusers has for it.
func Network(o Options) (model any, class string, config any, err error) {
	o = o.withDefaults()
	n, err := o.network()
	if err != nil {
		return nil, "", nil, err
	}
	return n.model, n.class, n.config, nil
}

// network builds the network that o asks for.
func (o *Options) network() (*network, error) {
	a, ok := archs[o.Arch]
	if !ok {
		return nil, fmt.Errorf("architecture %q is unknown (known: %s)", o.Arch, strings.Join(Archs(), ", "))
	}
	if o.DType != tensor.F32 && !o.DType.IsHalf() {
		return nil, fmt.Errorf("dtype %s: expected f32, bf16 or f16", o.DType)
	}
	if o.Height < 16 || o.Width < 16 || o.Batch < 1 || o.Text < 0 {
		return nil, fmt.Errorf("height %d, width %d, batch %d, text %d: expected at least 16, 16, 1, 0", o.Height, o.Width, o.Batch, o.Text)
	}
	layers := a.layers
	if o.Layers != "" && o.Layers != "all" {
		layers = nil
		for _, s := range strings.FieldsFunc(o.Layers, func(r rune) bool { return r == ',' || r == '+' }) {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 || n > 1000 {
				return nil, fmt.Errorf("layers %q: expected %d numbers such as %s, or all", o.Layers, len(a.layers), join(a.layers))
			}
			layers = append(layers, n)
		}
		if len(layers) != len(a.layers) {
			return nil, fmt.Errorf("layers %q: %s has %d kinds of blocks, expected %q", o.Layers, o.Arch, len(a.layers), join(a.layers))
		}
	}
	n, err := a.build(o, layers)
	if err != nil {
		return nil, err
	}
	n.layers = join(layers)
	return n, nil
}

// text is the length of the prompt in tokens.
func (o *Options) text(usual int) int {
	if o.Text > 0 {
		return o.Text
	}
	return usual
}

func join(ns []int) string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, "+")
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

// grid returns the positions of a picture's tokens, row by row, after rows of text: axes numbers each, height and width
// at the given axes.
func grid(text [][]float64, h, w, axes, heightAxis int) [][]float64 {
	ids := text
	for y := range h {
		for x := range w {
			id := make([]float64, axes)
			id[heightAxis], id[heightAxis+1] = float64(y), float64(x)
			ids = append(ids, id)
		}
	}
	return ids
}
