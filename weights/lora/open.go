package lora

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// Factors change one linear layer: y += Scale · (x·Aᵀ)·Bᵀ.
type Factors struct {
	A     *tensor.Array // (rank, in)
	B     *tensor.Array // (out, rank)
	Scale float64       // alpha / rank, where it is not already in the factors
}

// Adapter is an open file.
type Adapter struct {
	Path    string
	Factors map[string]map[string]Factors // by component and layer
	file    *weights.File
}

// group is the parts of one name in the file.
type group struct {
	name   string
	target Target
	parts  [3]*weights.Tensor
	folded bool
}

// shown is how many names an error line lists.
const shown = 5

// Open reads the adapter in a safetensors file. Factors may be views of the file, which must stay open while they are
// used.
func Open(path string, layers Layers, namings []Naming) (*Adapter, error) {
	f, err := weights.OpenFile(path)
	if err != nil {
		return nil, err
	}
	a := &Adapter{Path: path, Factors: map[string]map[string]Factors{}, file: f}
	if err := a.read(layers, namings); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return a, nil
}

// Len returns how many layers the adapter changes.
func (a *Adapter) Len() int {
	n := 0
	for _, c := range a.Factors {
		n += len(c)
	}
	return n
}

// Close closes the file.
func (a *Adapter) Close() error { return a.file.Close() }

func (a *Adapter) read(layers Layers, namings []Naming) error {
	groups, err := a.groups(namings)
	if err != nil {
		return err
	}
	scales, err := newScales(a.file.Metadata(), groups)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := a.add(g, layers, scales); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

// groups sorts the file's keys by layer, and reports all that belong to none at once.
func (a *Adapter) groups(namings []Naming) ([]*group, error) {
	known := make([]Naming, len(namings))
	for i, n := range namings {
		known[i] = n.flattened()
	}
	byName := map[string]*group{}
	var order []*group
	var unknown []string
	for t := range a.file.All() {
		if strings.HasSuffix(t.Name, "dora_scale") || strings.HasSuffix(t.Name, "lora_magnitude_vector") {
			return nil, fmt.Errorf("key %s: DoRA adapters are not supported", t.Name)
		}
		k, ok := split(known, t.Name)
		if !ok {
			if isDiff(t) && zero(t) {
				continue
			}
			unknown = append(unknown, t.Name)
			continue
		}
		g := byName[k.name]
		if g == nil {
			g = &group{name: k.name, target: k.target}
			byName[k.name] = g
			order = append(order, g)
		}
		if g.parts[k.part] != nil {
			return nil, fmt.Errorf("keys %s and %s are the same factor", g.parts[k.part].Name, t.Name)
		}
		g.parts[k.part] = t
		g.folded = g.folded || k.folded
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%d of %d keys are no layer of this model (%s): not a LoRA for it, or a layout that is not supported",
			len(unknown), a.file.Len(), few(unknown))
	}
	if len(order) == 0 {
		return nil, errors.New("the file has no factors")
	}
	return order, nil
}

// isDiff reports a change of a whole bias or norm, which extracted adapters hold for every layer, mostly of zeros.
func isDiff(t *weights.Tensor) bool {
	return strings.HasSuffix(t.Name, ".diff") || strings.HasSuffix(t.Name, ".diff_b")
}

func zero(t *weights.Tensor) bool {
	for _, b := range t.Bytes() {
		if b != 0 {
			return false
		}
	}
	return true
}

func few(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// add checks a group's factors and gives every layer its own.
func (a *Adapter) add(g *group, layers Layers, scales *scales) error {
	if g.parts[down] == nil || g.parts[up] == nil {
		return errors.New("one of the two factors (lora_A, lora_B or lora_down, lora_up) is missing")
	}
	A, B := g.parts[down].Array(), g.parts[up].Array()
	for _, f := range []*weights.Tensor{g.parts[down], g.parts[up]} {
		if !f.DType.IsFloat() || len(f.Shape) != 2 || f.Shape.Size() == 0 {
			return fmt.Errorf("factor %s, expected a matrix of floating-point numbers", f)
		}
	}
	rank := A.Shape[0]
	if B.Shape[1] != rank {
		return fmt.Errorf("the factors have the ranks %d (%v) and %d (%v), expected one", rank, A.Shape, B.Shape[1], B.Shape)
	}
	rows := 0
	for _, name := range g.target.Layers {
		s, ok := layers[g.target.Component][name]
		if !ok {
			return fmt.Errorf("the model has no layer %s.%s", g.target.Component, name)
		}
		if s[1] != A.Shape[1] {
			return fmt.Errorf("the first factor is %v, expected [%d %d] for the layer %s.%s", A.Shape, rank, s[1], g.target.Component, name)
		}
		rows += s[0]
	}
	if B.Shape[0] != rows {
		return fmt.Errorf("the second factor is %v, expected [%d %d] for %s", B.Shape, rows, rank, strings.Join(g.target.Layers, ", "))
	}
	scale, err := scales.of(g, rank)
	if err != nil {
		return err
	}
	if g.folded {
		if A, B, err = fold(A, B, scale); err != nil {
			return err
		}
		scale = 1
	}
	if g.target.Swap {
		if B, err = swapHalves(B); err != nil {
			return err
		}
	}
	return a.share(g.target, layers, A, B, scale)
}

// share divides the rows of B among the target's layers.
func (a *Adapter) share(t Target, layers Layers, A, B *tensor.Array, scale float64) error {
	c := a.Factors[t.Component]
	if c == nil {
		c = map[string]Factors{}
		a.Factors[t.Component] = c
	}
	row := len(B.Data) / B.Shape[0]
	at := 0
	for _, name := range t.Layers {
		n := layers[t.Component][name][0]
		if _, again := c[name]; again {
			return fmt.Errorf("the layer %s.%s is changed twice", t.Component, name)
		}
		part := &tensor.Array{DType: B.DType, Shape: tensor.Shape{n, B.Shape[1]}, Data: B.Data[at*row : (at+n)*row]}
		c[name] = Factors{A: A, B: part, Scale: scale}
		at += n
	}
	return nil
}

// swapHalves exchanges the two halves of the rows.
func swapHalves(b *tensor.Array) (*tensor.Array, error) {
	if b.Shape[0]%2 != 0 {
		return nil, fmt.Errorf("the second factor has %d rows, expected an even number", b.Shape[0])
	}
	half := len(b.Data) / 2
	return &tensor.Array{DType: b.DType, Shape: b.Shape, Data: slices.Concat(b.Data[half:], b.Data[:half])}, nil
}
