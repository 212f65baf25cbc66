package flux2_test

import (
	"path/filepath"
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/model/flux2"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
)

// The transformer agrees with Diffusers' Flux2Transformer2DModel: FLUX.2-dev and klein in miniature.
func TestTransformerAgreesWithDiffusers(t *testing.T) {
	root := shareddata.Dir(t, "golden")
	for _, c := range []struct {
		checkpoint, name string
		dtype            tensor.DType
		tol              float64
	}{
		{"flux2", "flux2_base", tensor.F32, 1e-4}, {"flux2", "flux2_nonsquare", tensor.F32, 1e-4}, {"flux2", "flux2_bf16", tensor.BF16, 0.06},
		{"klein", "klein_base_cfg", tensor.F32, 1e-4}, {"klein", "klein_bf16", tensor.BF16, 0.06},
	} {
		folder := filepath.Join(root, "checkpoints", c.checkpoint, "transformer")
		config := flux2.Defaults()
		reference.Config(t, folder, &config)
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		reference.Transformer(t, folder, "", filepath.Join(root, "cases", c.name), c.dtype, c.tol,
			func() any { return flux2.New(config) },
			func(model any, eng *engine.Engine, in map[string]*tensor.Array) engine.Value {
				get := func(name string) engine.Value { return eng.Upload(in[name]).Convert(c.dtype) }
				cos, sin := config.Rope(append(positions(in["transformer.call0.in.txt_ids"]), positions(in["transformer.call0.in.img_ids"])...))
				inputs := flux2.Inputs{
					Hidden: get("transformer.call0.in.hidden_states"), Text: get("prompt_embeds"),
					Timestep: eng.Upload(in["transformer.call0.in.timestep"]), Rope: nn.Rope{Cos: eng.Upload(cos), Sin: eng.Upload(sin)},
				}
				if config.GuidanceEmbed {
					inputs.Guidance = eng.Upload(in["transformer.call0.in.guidance"])
				}
				return model.(*flux2.Model).Forward(inputs)
			})
	}
}

// positions takes ids (1, rows, 4) to one position an axis for each row.
func positions(ids *tensor.Array) [][]float64 {
	flat := ids.Float64s()
	var out [][]float64
	for at := 0; at < len(flat); at += 4 {
		out = append(out, flat[at:at+4])
	}
	return out
}
