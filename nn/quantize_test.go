package nn

import "testing"

// Attention and MLPs of the blocks are quantised, modulation, embedders and the last projection are not.
func TestQuantizable(t *testing.T) {
	for name, want := range map[string]bool{
		"transformer_blocks.0.attn.to_q.weight":                   true,
		"transformer_blocks.18.ff_context.net.2.weight":           true,
		"single_transformer_blocks.3.attn.to_qkv_mlp_proj.weight": true,
		"encoder.block.5.layer.1.DenseReluDense.wo.weight":        true,
		"transformer_blocks.0.norm1.linear.weight":                false,
		"transformer_blocks.0.norm1_context.linear.weight":        false,
		"single_transformer_blocks.0.norm.linear.weight":          false,
		"single_stream_modulation.linear.weight":                  false,
		"time_text_embed.timestep_embedder.linear_1.weight":       false,
		"x_embedder.weight":                                       false,
		"norm_out.linear.weight":                                  false,
		"proj_out.weight":                                         false,
	} {
		if got := Quantizable(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
