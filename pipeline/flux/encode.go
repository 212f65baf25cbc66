package flux

import (
	"fmt"

	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
)

// embeds is what the text encoders give the transformer: one row of the first axis per picture.
type embeds struct {
	prompt *tensor.Array // (B, L, joint_attention_dim)
	pooled *tensor.Array // (B, pooled_projection_dim)
}

// encode returns the embeddings of prompts, each repeated n times; prompts2 is for T5. Prefix is "" or "negative_".
func (r *run) encode(prompts, prompts2 []string, n int, prefix string) (embeds, error) {
	pooled, err := r.encodeCLIP(prompts)
	if err != nil {
		return embeds{}, err
	}
	prompt, err := r.encodeT5(prompts2)
	if err != nil {
		return embeds{}, err
	}
	e := embeds{prompt: pipeline.RepeatEach(prompt, n), pooled: pipeline.RepeatEach(pooled, n)}
	r.dumpEmbeds(e, prefix)
	return e, nil
}

func (r *run) dumpEmbeds(e embeds, prefix string) {
	r.Dump(prefix+"prompt_embeds", e.prompt)
	r.Dump(prefix+"pooled_prompt_embeds", e.pooled)
	r.Dump(prefix+"text_ids", tensor.New(e.prompt.DType, e.prompt.Shape[1], 3))
}

// tokens encodes texts to ids (P, length) and warns of text that was cut off.
func (r *run) tokens(component string, call int, texts []string, length int,
	encode func(string, int) ([]int64, string, error)) (*tensor.Array, error) {
	ids := make([]int64, 0, len(texts)*length)
	for _, text := range texts {
		row, cut, err := encode(text, length)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", component, err)
		}
		if cut != "" {
			r.Warn("%s reads %d tokens; the rest of the prompt was cut off: %q", component, length, shorten(cut))
		}
		ids = append(ids, row...)
	}
	a := tensor.FromInt64(ids, len(texts), length)
	r.Dump(fmt.Sprintf("%s.call%d.input_ids", component, call), a)
	return a, nil
}

// shorten keeps a warning about a long text readable.
func shorten(s string) string {
	const most = 200
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most]) + "…"
}

// clipLength is the number of tokens that CLIP reads: what its tokenizer was saved with, as in Diffusers.
func (p *Pipeline) clipLength() int {
	if n := p.tokenizer.MaxLength(); n > 0 {
		return n
	}
	return min(77, p.clipConfig.MaxPositions)
}

// encodeCLIP returns the pooled states (P, D).
func (r *run) encodeCLIP(texts []string) (*tensor.Array, error) {
	p := r.p
	length := p.clipLength()
	ids, err := r.tokens("text_encoder", r.calls.clip, texts, length, func(s string, n int) ([]int64, string, error) {
		e, err := p.tokenizer.Encode(s, n)
		return e.IDs, e.Truncated, err
	})
	if err != nil {
		return nil, err
	}
	rows := make([]int32, len(texts))
	all := ids.Int64s()
	for i := range rows {
		rows[i] = int32(i*length + p.clipConfig.PoolRow(all[i*length:(i+1)*length]))
	}
	out := p.encodeCLIP.Call(p.eng.Upload(ids), p.eng.Upload(tensor.FromInt32(rows, len(rows))))
	call := fmt.Sprintf("text_encoder.call%d.", r.calls.clip)
	r.calls.clip++
	if r.Request.Dump != nil {
		states, err := out[0].ReadContext(r.ctx)
		if err != nil {
			return nil, err
		}
		r.Dump(call+"last_hidden_state", states)
	}
	pooled, err := out[len(out)-1].ReadContext(r.ctx)
	if err != nil {
		return nil, err
	}
	r.Dump(call+"pooler_output", pooled)
	return pooled, pipeline.CheckFinite("text_encoder", pooled)
}

// encodeT5 returns the states (P, L, D). Padding is part of them, as in Diffusers.
func (r *run) encodeT5(texts []string) (*tensor.Array, error) {
	p := r.p
	length := r.maxLength
	ids, err := r.tokens("text_encoder_2", r.calls.t5, texts, length, func(s string, n int) ([]int64, string, error) {
		e, err := p.tokenizer2.Encode(s, n)
		return e.IDs, e.Truncated, err
	})
	if err != nil {
		return nil, err
	}
	states, err := p.encodeT5.Call(p.eng.Upload(ids), p.eng.Upload(p.t5Config.BucketTable(length)))[0].ReadContext(r.ctx)
	if err != nil {
		return nil, err
	}
	r.Dump(fmt.Sprintf("text_encoder_2.call%d.last_hidden_state", r.calls.t5), states)
	r.calls.t5++
	return states, pipeline.CheckFinite("text_encoder_2", states)
}
