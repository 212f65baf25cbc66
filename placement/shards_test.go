package placement

import "testing"

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name    string
		shape   []int
		n, want int
	}{
		{"transformer.transformer_blocks.7.attn.to_q.weight", []int{3072, 3072}, 4, 0},
		{"transformer.transformer_blocks.7.attn.to_q.bias", []int{3072}, 4, 0},
		{"transformer.transformer_blocks.7.attn.to_out.0.weight", []int{3072, 3072}, 4, 1},
		{"transformer.transformer_blocks.7.attn.to_out.0.bias", []int{3072}, 4, Whole},
		{"transformer.transformer_blocks.7.attn.norm_q.weight", []int{128}, 4, Whole},
		{"transformer.transformer_blocks.7.ff_context.net.0.proj.weight", []int{12288, 3072}, 4, 0},
		{"transformer.single_transformer_blocks.0.norm.linear.weight", []int{9216, 3072}, 8, 0},
		{"transformer.single_transformer_blocks.0.proj_out.weight", []int{3072, 15360}, 4, 1},
		{"transformer.x_embedder.weight", []int{3072, 64}, 4, Whole},
		{"transformer.transformer_blocks.7.attn.to_q.weight", []int{3072, 3072}, 5, Whole},
		{"text_encoder_2.encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", []int{32, 64}, 4, 1},
		{"text_encoder_2.encoder.block.3.layer.1.DenseReluDense.wo.weight", []int{4096, 10240}, 2, 1},
		{"vae.decoder.mid_block.attentions.0.to_q.weight", []int{512, 512}, 4, Whole},
	} {
		if got := Split(c.name, c.shape, c.n); got != c.want {
			t.Errorf("%s of %v among %d: axis %d, expected %d", c.name, c.shape, c.n, got, c.want)
		}
	}
}
