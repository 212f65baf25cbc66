package lora

import (
	"strings"

	"github.com/gesso-go/gesso/tensor"
)

// Layers are the linear layers that can be changed: by component and name, the shape (out, in) of their weight.
type Layers map[string]map[string]tensor.Shape

// Target is what one name in a file stands for.
type Target struct {
	Component string
	Layers    []string // more than one share the first factor, and divide the rows of the second in this order
	Swap      bool     // the second factor has its halves the other way round: shift before scale
}

// Naming is one way in which files name layers: Prefix, then a name.
type Naming struct {
	Prefix string
	Flat   bool // names have underscores for dots
	Names  map[string]Target
}

// Same is the naming by the model's own names.
func Same(prefix, component string, layers Layers) Naming {
	n := Naming{Prefix: prefix, Names: make(map[string]Target, len(layers[component]))}
	for name := range layers[component] {
		n.Names[name] = Target{Component: component, Layers: []string{name}}
	}
	return n
}

// flattened returns the naming with the names that files have.
func (n Naming) flattened() Naming {
	if !n.Flat {
		return n
	}
	flat := make(map[string]Target, len(n.Names))
	for name, t := range n.Names {
		flat[strings.ReplaceAll(name, ".", "_")] = t
	}
	n.Names = flat
	return n
}

// find returns what the first naming that knows name says of it.
func find(namings []Naming, name string) (Target, bool) {
	for _, n := range namings {
		if rest, ok := strings.CutPrefix(name, n.Prefix); ok {
			if t, ok := n.Names[rest]; ok {
				return t, true
			}
		}
	}
	return Target{}, false
}

// part is what a key of a file holds of its layer.
type part int

const (
	down  part = iota // A, (rank, in)
	up                // B, (out, rank)
	alpha             // the strength that the rank is measured against
)

// suffixes end the keys. folded marks writers whose alpha Diffusers multiplies into the factors.
var suffixes = []struct {
	text   string
	part   part
	folded bool
}{
	{".lora_A.weight", down, false},
	{".lora_B.weight", up, false},
	{".lora_A.default.weight", down, false},
	{".lora_B.default.weight", up, false},
	{".lora_down.weight", down, true},
	{".lora_up.weight", up, true},
	{".lora_linear_layer.down.weight", down, false},
	{".lora_linear_layer.up.weight", up, false},
	{".lora.down.weight", down, false},
	{".lora.up.weight", up, false},
	{"_lora.down.weight", down, false},
	{"_lora.up.weight", up, false},
	{".down.weight", down, false}, // XLabs
	{".up.weight", up, false},
	{".alpha", alpha, false},
}

// key is a tensor's name, taken apart.
type key struct {
	name   string // of the layer, as the file has it
	target Target
	part   part
	folded bool
}

// split takes a tensor's name apart; ok is false where no naming knows it.
func split(namings []Naming, text string) (k key, ok bool) {
	for _, s := range suffixes {
		name, match := strings.CutSuffix(text, s.text)
		if !match {
			continue
		}
		if t, known := find(namings, name); known {
			return key{name, t, s.part, s.folded}, true
		}
	}
	return key{}, false
}
