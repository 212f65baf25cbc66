package flux

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/model/clip"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
	"github.com/gesso-go/gesso/weights/lora"
)

// tinyLayers are the layers of the small model in testdata/golden.
func tinyLayers(t *testing.T) lora.Layers {
	t.Helper()
	f, err := pipeline.OpenFolder("../../testdata/golden/checkpoints/flux_schnell")
	if err != nil {
		t.Fatal(err)
	}
	c, tc, fc := clip.Defaults(), t5.Defaults(), flux.Defaults()
	for name, v := range map[string]pipeline.Config{"text_encoder": &c, "text_encoder_2": &tc, "transformer": &fc} {
		if err := f.ReadConfig(name, v); err != nil {
			t.Fatal(err)
		}
	}
	layers := lora.Layers{}
	for name, m := range map[string]any{"text_encoder": clip.New(c), "text_encoder_2": t5.New(tc), "transformer": flux.New(fc)} {
		layers[name] = map[string]tensor.Shape{}
		for l, x := range nn.Linears(m) {
			layers[name][l] = x.Weight.Expect
		}
	}
	return layers
}

// Files of every trainer give the factors that Diffusers' converter gives, bit for bit.
func TestLoRALayouts(t *testing.T) {
	layers := tinyLayers(t)
	open := func(name string) *lora.Adapter {
		a, err := lora.Open(filepath.Join("../../weights/lora/testdata", name), layers, loraNamings(layers))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	for name, least := range map[string]int{"kohya": 29, "comfy": 26, "mixture": 4, "xlabs": 12} {
		t.Run(name, func(t *testing.T) {
			got, want := open(name+".safetensors"), open(name+".diffusers.safetensors")
			if got.Len() != want.Len() || got.Len() < least {
				t.Fatalf("%d layers, Diffusers has %d", got.Len(), want.Len())
			}
			for component, factors := range want.Factors {
				for _, layer := range slices.Sorted(maps.Keys(factors)) {
					w, g := factors[layer], got.Factors[component][layer]
					if g.A == nil {
						t.Errorf("%s.%s is missing", component, layer)
						continue
					}
					if g.Scale != 1 || w.Scale != 1 {
						t.Errorf("%s.%s: scales %g and %g, expected 1", component, layer, g.Scale, w.Scale)
					}
					for what, pair := range map[string][2]*tensor.Array{"A": {g.A, w.A}, "B": {g.B, w.B}} {
						if !pair[0].Shape.Equal(pair[1].Shape) || pair[0].DType != pair[1].DType || !bytes.Equal(pair[0].Data, pair[1].Data) {
							t.Errorf("%s.%s: %s is %v, Diffusers has %v", component, layer, what, pair[0], pair[1])
						}
					}
				}
			}
		})
	}
}

// Every writer's name for a layer is understood, also where Diffusers drops it: T5's, and those outside the blocks.
func TestLoRANames(t *testing.T) {
	layers := tinyLayers(t)
	for prefix, want := range map[string]string{
		"transformer.transformer_blocks.0.attn.to_q":                              "transformer transformer_blocks.0.attn.to_q",
		"transformer_blocks.0.attn.to_q":                                          "transformer transformer_blocks.0.attn.to_q",
		"lora_transformer_single_transformer_blocks_1_proj_mlp":                   "transformer single_transformer_blocks.1.proj_mlp",
		"lora_transformer_transformer_blocks_1_ff_net_0_proj":                     "transformer transformer_blocks.1.ff.net.0.proj",
		"diffusion_model.double_blocks.1.txt_mlp.2":                               "transformer transformer_blocks.1.ff_context.net.2",
		"base_model.model.single_blocks.0.linear2":                                "transformer single_transformer_blocks.0.proj_out",
		"double_blocks.0.img_attn.proj":                                           "transformer transformer_blocks.0.attn.to_out.0",
		"lora_unet_time_in_in_layer":                                              "transformer time_text_embed.timestep_embedder.linear_1",
		"text_encoder.text_model.encoder.layers.0.mlp.fc1":                        "text_encoder encoder.layers.0.mlp.fc1",
		"text_encoder.encoder.layers.0.self_attn.out_proj":                        "text_encoder encoder.layers.0.self_attn.out_proj",
		"lora_te_text_model_encoder_layers_1_self_attn_v_proj":                    "text_encoder encoder.layers.1.self_attn.v_proj",
		"lora_te1_text_model_encoder_layers_1_mlp_fc2":                            "text_encoder encoder.layers.1.mlp.fc2",
		"text_encoders.clip_l.transformer.text_model.encoder.layers.0.mlp.fc2":    "text_encoder encoder.layers.0.mlp.fc2",
		"text_encoder_2.encoder.block.0.layer.0.SelfAttention.q":                  "text_encoder_2 encoder.block.0.layer.0.SelfAttention.q",
		"lora_te3_encoder_block_1_layer_1_DenseReluDense_wi_0":                    "text_encoder_2 encoder.block.1.layer.1.DenseReluDense.wi_0",
		"text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.o": "text_encoder_2 encoder.block.0.layer.0.SelfAttention.o",
	} {
		component, layer, _ := strings.Cut(want, " ")
		s, ok := layers[component][layer]
		if !ok {
			t.Fatalf("the model has no %s", want)
		}
		path := filepath.Join(t.TempDir(), "x.safetensors")
		if err := weights.Save(path, map[string]*tensor.Array{
			prefix + ".lora_A.weight": tensor.New(tensor.F32, 1, s[1]), prefix + ".lora_B.weight": tensor.New(tensor.F32, s[0], 1),
		}, nil); err != nil {
			t.Fatal(err)
		}
		a, err := lora.Open(path, layers, loraNamings(layers))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, ok := a.Factors[component][layer]; !ok || a.Len() != 1 {
			t.Errorf("%s: %v", prefix, a.Factors)
		}
		a.Close()
	}
}
