package clip

import (
	"testing"
	"testing/fstest"

	"github.com/gesso-go/gesso/tokenizer"
)

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"added_tokens":[{"id":2,"content":"<|endoftext|>","special":true}],"normalizer":null,"model":{"type":"BPE","vocab":{"a":0,"a</w>":1,"<|endoftext|>":2,"aa</w>":3},"merges":["a a</w>"]}}`))
	f.Add([]byte(`{"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}}`))
	f.Add([]byte(`{"model":{"vocab":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := LoadFS(fstest.MapFS{"tokenizer.json": {Data: data}}, tokenizer.Options{})
		if err != nil {
			return
		}
		e, err := tok.Encode("a aa ab b! <|endoftext|>", 8)
		if err != nil || len(e.IDs) != 8 {
			t.Fatalf("%v, %v", e, err)
		}
		for _, id := range e.IDs {
			if id < 0 || id >= int64(tok.VocabSize()) {
				t.Errorf("id %d is outside of the vocabulary of %d", id, tok.VocabSize())
			}
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("a photo of an astronaut", 77)
	f.Add("<|startoftext|>'s !!\u0301\xff", 3)
	f.Add("İ Σ\u0345 한", 0)
	tok := small(f)
	f.Fuzz(func(t *testing.T, text string, maxLength int) {
		maxLength %= 100
		e, err := tok.Encode(text, maxLength)
		if err != nil {
			if maxLength >= 2 || maxLength == 0 {
				t.Fatal(err)
			}
			return
		}
		if len(e.IDs) != len(e.Mask) || maxLength > 0 && len(e.IDs) != maxLength {
			t.Fatalf("%d ids, %d mask values for maximum %d", len(e.IDs), len(e.Mask), maxLength)
		}
		for _, id := range e.IDs {
			if id < 0 || id >= int64(tok.VocabSize()) {
				t.Errorf("id %d is outside of the vocabulary", id)
			}
		}
	})
}
