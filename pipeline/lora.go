package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/placement"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights/lora"
)

// LoRA is an adapter to load with a pipeline: a safetensors file of low-rank factors.
type LoRA struct {
	Path   string
	Weight *float64 // strength; nil means 1
}

// LoRAs are the adapters of a loaded pipeline. They are not merged into the weights: a layer computes its own product and
// theirs, as Diffusers does before fuse_lora, so a request may choose other strengths. The zero LoRAs hold none.
type LoRAs struct {
	list []loadedLoRA
	host *placement.Host
}

type loadedLoRA struct {
	file   *lora.Adapter
	weight float64 // as loaded
	now    float64 // as the parameters have it
	scales map[float64]*placement.HostParam
}

// LoadLoRAs opens adapters and attaches them to the linear layers of the components: models, by name, whose parameters
// are bound. Namings say what files may call the layers.
func LoadLoRAs(e *engine.Engine, list []LoRA, models map[string]any, namings func(lora.Layers) []lora.Naming) (*LoRAs, error) {
	l := &LoRAs{}
	if len(list) == 0 {
		return l, nil
	}
	l.host = placement.NewHost(e)
	layers := lora.Layers{}
	linears := map[string]map[string]*nn.Linear{}
	for component, m := range models {
		linears[component] = nn.Linears(m)
		layers[component] = map[string]tensor.Shape{}
		for name, x := range linears[component] {
			layers[component][name] = x.Weight.Expect
		}
	}
	names := namings(layers)
	for _, x := range list {
		if err := l.load(x, layers, names, linears); err != nil {
			return nil, errors.Join(fmt.Errorf("lora: %w", err), l.Close())
		}
	}
	return l, nil
}

func (l *LoRAs) load(x LoRA, layers lora.Layers, names []lora.Naming, linears map[string]map[string]*nn.Linear) error {
	a := loadedLoRA{weight: 1, scales: map[float64]*placement.HostParam{}}
	if x.Weight != nil {
		a.weight = *x.Weight
	}
	if err := checkWeight(a.weight); err != nil {
		return fmt.Errorf("%s: %w", x.Path, err)
	}
	a.now = a.weight
	file, err := lora.Open(x.Path, layers, names)
	if err != nil {
		return err
	}
	a.file = file
	l.list = append(l.list, a)
	values := map[float64]engine.Value{}
	for component, factors := range file.Factors {
		for _, name := range slices.Sorted(maps.Keys(factors)) {
			f, layer := factors[name], linears[component][name]
			if _, ok := values[f.Scale]; !ok {
				values[f.Scale], a.scales[f.Scale] = l.host.Param(strength(f.Scale, a.weight), tensor.F32)
			}
			d := layer.DType()
			r := nn.LowRank{Scale: values[f.Scale]}
			r.A, _ = l.host.Param(f.A, d)
			r.B, _ = l.host.Param(f.B, d)
			layer.Adapt(r)
		}
	}
	return nil
}

// strength is what a layer multiplies an adapter's product by.
func strength(scale, weight float64) *tensor.Array {
	return tensor.FromFloat32([]float32{float32(scale * weight)})
}

func checkWeight(w float64) error {
	if math.IsNaN(w) || math.IsInf(w, 0) || math.IsInf(float64(float32(w)), 0) {
		return fmt.Errorf("the weight of a LoRA must be finite, got %g", w)
	}
	return nil
}

// SetWeights sets the strengths for what runs next: one an adapter in the order in which they were loaded, or nil for
// those they were loaded with. Nothing is compiled anew.
func (l *LoRAs) SetWeights(w []float64) error {
	if w != nil && len(w) != len(l.list) {
		return fmt.Errorf("%d LoRA weights for %d loaded LoRAs", len(w), len(l.list))
	}
	for i := range l.list {
		a := &l.list[i]
		want := a.weight
		if w != nil {
			want = w[i]
		}
		if err := checkWeight(want); err != nil {
			return err
		}
		if want == a.now {
			continue
		}
		for scale, p := range a.scales {
			if err := p.Set(strength(scale, want)); err != nil {
				return err
			}
		}
		a.now = want
	}
	return nil
}

// Close frees the factors and closes the files.
func (l *LoRAs) Close() error {
	if l == nil || l.host == nil {
		return nil
	}
	l.host.Close()
	var errs []error
	for _, a := range l.list {
		errs = append(errs, a.file.Close())
	}
	l.list = nil
	return errors.Join(errs...)
}
