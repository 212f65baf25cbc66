package lora

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/internal/jsonwords"
	"github.com/gesso-go/gesso/tensor"
)

// metadataKey holds peft's configuration as JSON: {"transformer.r": 4, "transformer.lora_alpha": 10, …}.
const metadataKey = "lora_adapter_metadata"

// config is peft's LoraConfig of one component, as far as it says how factors are scaled.
type config struct {
	Alpha   *float64           `json:"lora_alpha"`
	Pattern map[string]float64 `json:"alpha_pattern"`
	RSLora  bool               `json:"use_rslora"`
	Dora    bool               `json:"use_dora"`
}

// scales says how strong each layer's factors are: by the alphas in the file, or by the configuration in its metadata.
// Without either the rank is the alpha.
type scales struct {
	configs map[string]*config  // by component
	common  map[string]*float64 // the alpha of most layers of a component, for those that have none of their own
}

func newScales(metadata map[string]string, groups []*group) (*scales, error) {
	s := &scales{configs: map[string]*config{}, common: map[string]*float64{}}
	counts := map[string]map[float64]int{}
	for _, g := range groups {
		if g.parts[alpha] == nil || g.folded {
			continue
		}
		v, err := g.alpha()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		c := g.target.Component
		if counts[c] == nil {
			counts[c] = map[float64]int{}
		}
		counts[c][v]++
		if best := s.common[c]; best == nil || counts[c][v] > counts[c][*best] {
			s.common[c] = &v
		}
	}
	text, ok := metadata[metadataKey]
	if !ok {
		return s, nil
	}
	if len(counts) > 0 {
		return nil, fmt.Errorf("the file has alpha tensors and %s in its metadata, expected one of them", metadataKey)
	}
	return s, s.readConfigs(text)
}

func (s *scales) readConfigs(text string) error {
	var flat map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &flat); err != nil {
		return fmt.Errorf("metadata %s: %w", metadataKey, jsonwords.Explain([]byte(text), err))
	}
	parts := map[string]map[string]json.RawMessage{}
	for key, v := range flat {
		component, field, _ := strings.Cut(key, ".")
		if parts[component] == nil {
			parts[component] = map[string]json.RawMessage{}
		}
		parts[component][field] = v
	}
	for component, fields := range parts {
		b, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("metadata %s: %w", metadataKey, err)
		}
		c := &config{}
		if err := json.Unmarshal(b, c); err != nil {
			return fmt.Errorf("metadata %s of %s: %w", metadataKey, component, jsonwords.Explain(b, err))
		}
		if c.Dora {
			return fmt.Errorf("metadata %s of %s: DoRA adapters are not supported", metadataKey, component)
		}
		s.configs[component] = c
	}
	return nil
}

// of returns alpha/rank of a group.
func (s *scales) of(g *group, rank int) (float64, error) {
	if g.parts[alpha] != nil {
		v, err := g.alpha()
		if err != nil {
			return 0, err
		}
		scale := v / float64(rank)
		if d := g.parts[alpha].DType; d.IsHalf() && len(g.target.Layers) > 1 {
			scale = float64(tensor.RoundTo(d, float32(scale))) // Diffusers divides in the alpha's own type here
		}
		return scale, nil
	}
	if g.folded {
		return 1, nil
	}
	if c := s.configs[g.target.Component]; c != nil {
		return c.scale(g.target.Layers[0], rank)
	}
	if v := s.common[g.target.Component]; v != nil {
		return *v / float64(rank), nil
	}
	return 1, nil
}

// scale is peft's LoraLayer.update_layer: alpha / rank, or with use_rslora alpha / √rank.
func (c *config) scale(layer string, rank int) (float64, error) {
	v := float64(rank)
	if c.Alpha != nil {
		v = *c.Alpha
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.Pattern)) {
		// The end of a layer's name, or all of it after "^".
		re, err := regexp.Compile(`^(?:(.*\.)?(` + pattern + `)$)`)
		if err != nil {
			return 0, fmt.Errorf("metadata %s: alpha_pattern %q: %w", metadataKey, pattern, err)
		}
		if re.MatchString(layer) {
			v = c.Pattern[pattern]
			break
		}
	}
	if c.RSLora {
		return v / math.Sqrt(float64(rank)), nil
	}
	return v / float64(rank), nil
}

// alpha reads the group's alpha, one number.
func (g *group) alpha() (float64, error) {
	t := g.parts[alpha]
	if !t.DType.IsFloat() || t.Shape.Size() != 1 {
		return 0, fmt.Errorf("alpha %s, expected one floating-point number", t)
	}
	v := t.Array().Float64s()[0]
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("alpha %s is %g, expected a finite number", t, v)
	}
	return v, nil
}

// fold multiplies a scale into the factors, each rounded to its own type, in the shares that Diffusers' converter takes:
// a small scale is divided between the two by powers of two.
func fold(a, b *tensor.Array, scale float64) (*tensor.Array, *tensor.Array, error) {
	up := 1.0
	for scale > 0 && scale*2 < up {
		scale *= 2
		up /= 2
	}
	a, err := times(a, scale)
	if err != nil {
		return nil, nil, err
	}
	b, err = times(b, up)
	return a, b, err
}

// times returns a·s in a's type.
func times(a *tensor.Array, s float64) (*tensor.Array, error) {
	if s == 1 {
		return a, nil
	}
	v := append([]float32(nil), a.Float32s()...)
	for i := range v {
		v[i] *= float32(s)
	}
	return tensor.FromFloat32(v, a.Shape...).Convert(a.DType)
}
