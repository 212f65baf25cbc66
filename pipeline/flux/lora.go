package flux

import (
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/weights/lora"
)

// loraNamings are the names that LoRA files for FLUX.1 use, for models with these layers: Diffusers' own, and those of
// Black Forest Labs' code, with dots (ai-toolkit, ComfyUI) or underscores (kohya), and XLabs' processors.
func loraNamings(layers lora.Layers) []lora.Naming {
	transformer := lora.Same("transformer.", "transformer", layers)
	bfl := bflNames(layers)
	clip := clipNames(layers)
	t5 := lora.Same("text_encoder_2.", "text_encoder_2", layers)
	return []lora.Naming{
		transformer,
		{Prefix: "transformer.", Names: bfl},
		{Prefix: "", Names: transformer.Names},
		{Prefix: "lora_transformer_", Flat: true, Names: transformer.Names},
		{Prefix: "diffusion_model.", Names: bfl},
		{Prefix: "base_model.model.", Names: bfl},
		{Prefix: "", Names: bfl},
		{Prefix: "lora_unet_", Flat: true, Names: bfl},
		{Prefix: "text_encoder.", Names: clip},
		{Prefix: "lora_te1_", Flat: true, Names: clip},
		{Prefix: "lora_te_", Flat: true, Names: clip},
		{Prefix: "text_encoders.clip_l.transformer.", Names: clip},
		t5,
		{Prefix: "lora_te3_", Flat: true, Names: t5.Names},
		{Prefix: "text_encoders.t5xxl.transformer.", Names: t5.Names},
	}
}

// bflNames maps the layers of the original code. It joins queries, keys and values, and in single blocks the MLP, into
// one projection; its last modulation has shift before scale.
// Source: diffusers/loaders/lora_conversion_utils.py, after kohya-ss/sd-scripts networks/convert_flux_lora.py.
func bflNames(layers lora.Layers) map[string]lora.Target {
	names := map[string]lora.Target{}
	add := func(name string, to ...string) {
		for _, l := range to {
			if _, ok := layers["transformer"][l]; !ok {
				return // guidance_in where the model takes none
			}
		}
		names[name] = lora.Target{Component: "transformer", Layers: to}
	}
	for from, to := range map[string]string{
		"img_in": "x_embedder", "txt_in": "context_embedder", "final_layer.linear": "proj_out",
		"time_in.in_layer":      "time_text_embed.timestep_embedder.linear_1",
		"time_in.out_layer":     "time_text_embed.timestep_embedder.linear_2",
		"vector_in.in_layer":    "time_text_embed.text_embedder.linear_1",
		"vector_in.out_layer":   "time_text_embed.text_embedder.linear_2",
		"guidance_in.in_layer":  "time_text_embed.guidance_embedder.linear_1",
		"guidance_in.out_layer": "time_text_embed.guidance_embedder.linear_2",
	} {
		add(from, to)
	}
	names["final_layer.adaLN_modulation.1"] = lora.Target{Component: "transformer", Layers: []string{"norm_out.linear"}, Swap: true}
	has := func(format string, i int) bool {
		_, ok := layers["transformer"][fmt.Sprintf(format, i)]
		return ok
	}
	for i := 0; has("transformer_blocks.%d.attn.to_q", i); i++ {
		for _, s := range []struct{ bfl, processor, q, k, v, out, ff, norm string }{
			{"img", "1", "to_q", "to_k", "to_v", "to_out.0", "ff", "norm1"},
			{"txt", "2", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out", "ff_context", "norm1_context"},
		} {
			from, to := fmt.Sprintf("double_blocks.%d.", i), fmt.Sprintf("transformer_blocks.%d.", i)
			qkv := []string{to + "attn." + s.q, to + "attn." + s.k, to + "attn." + s.v}
			add(from+s.bfl+"_attn.qkv", qkv...)
			add(from+"processor.qkv_lora"+s.processor, qkv...)
			add(from+s.bfl+"_attn.proj", to+"attn."+s.out)
			add(from+"processor.proj_lora"+s.processor, to+"attn."+s.out)
			add(from+s.bfl+"_mlp.0", to+s.ff+".net.0.proj")
			add(from+s.bfl+"_mlp.2", to+s.ff+".net.2")
			add(from+s.bfl+"_mod.lin", to+s.norm+".linear")
		}
	}
	for i := 0; has("single_transformer_blocks.%d.attn.to_q", i); i++ {
		from, to := fmt.Sprintf("single_blocks.%d.", i), fmt.Sprintf("single_transformer_blocks.%d.", i)
		qkv := []string{to + "attn.to_q", to + "attn.to_k", to + "attn.to_v"}
		add(from+"processor.qkv_lora", qkv...)
		add(from+"processor.proj_lora", to+"proj_out")
		add(from+"linear1", append(qkv, to+"proj_mlp")...)
		add(from+"linear2", to+"proj_out")
		add(from+"modulation.lin", to+"norm.linear")
	}
	return names
}

// clipNames maps the layers of CLIP: with and without the prefix that transformers 5 leaves out, and by the names that
// older Diffusers gave to attention.
func clipNames(layers lora.Layers) map[string]lora.Target {
	names := map[string]lora.Target{}
	old := strings.NewReplacer("q_proj", "to_q", "k_proj", "to_k", "v_proj", "to_v", "out_proj", "to_out")
	for name := range layers["text_encoder"] {
		t := lora.Target{Component: "text_encoder", Layers: []string{name}}
		for _, n := range []string{name, old.Replace(name)} {
			names[n], names["text_model."+n] = t, t
		}
	}
	return names
}
