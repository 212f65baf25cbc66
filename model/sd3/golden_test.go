package sd3_test

import (
	"path/filepath"
	"testing"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/model/sd3"
	"github.com/gesso-go/gesso/tensor"
)

// The transformer agrees with Diffusers' SD3Transformer2DModel: SD3 and SD3.5-medium in miniature.
func TestTransformerAgreesWithDiffusers(t *testing.T) {
	root := shareddata.Dir(t, "golden")
	for _, c := range []struct {
		checkpoint, name string
		dtype            tensor.DType
		tol              float64
	}{
		{"sd35", "sd35_base", tensor.F32, 1e-4}, {"sd35", "sd35_nonsquare", tensor.F32, 1e-4}, {"sd3", "sd3_nonsquare", tensor.F32, 1e-4},
		{"sd35", "sd35_bf16", tensor.BF16, 0.06}, {"sd3", "sd3_fp16", tensor.F16, 0.01},
	} {
		folder := filepath.Join(root, "checkpoints", c.checkpoint, "transformer")
		variant := ""
		if c.checkpoint == "sd3" {
			variant = "fp16"
		}
		config := sd3.Defaults()
		reference.Config(t, folder, &config)
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		reference.Transformer(t, folder, variant, filepath.Join(root, "cases", c.name), c.dtype, c.tol,
			func() any { return sd3.New(config) },
			func(model any, eng *engine.Engine, in map[string]*tensor.Array) engine.Value {
				get := func(name string) engine.Value { return eng.Upload(in[name]).Convert(c.dtype) }
				m, timestep := model.(*sd3.Model), in["transformer.call0.in.timestep"]
				rows := make([]int32, timestep.Shape[0])
				for i := range rows {
					rows[i] = int32(i)
				}
				return m.Forward(sd3.Inputs{
					Hidden: get("transformer.call0.in.hidden_states"),
					Text:   engine.Concat(0, get("negative_prompt_embeds"), get("prompt_embeds")),
					Modulation: m.Modulation(sd3.Conditions{
						Pooled: get("transformer.call0.in.pooled_projections"), Timestep: eng.Upload(timestep),
					}),
					Rows: eng.Upload(tensor.FromInt32(rows, len(rows))),
				})
			})
	}
}
