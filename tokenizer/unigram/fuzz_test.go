package unigram

import (
	"testing"
	"testing/fstest"

	"github.com/gesso-go/gesso/tokenizer"
)

func fuzzLoad(f *testing.F, name string) {
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := LoadFS(fstest.MapFS{name: {Data: data}}, tokenizer.Options{})
		if err != nil {
			return
		}
		e, err := tok.Encode("a b ½ é ﬁ \r\n<extra_id_1>▁ \xff", 8)
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

func FuzzLoadTokenizerJSON(f *testing.F) {
	f.Add([]byte(`{"added_tokens":[{"id":1,"content":"</s>","special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAA="}]},"model":{"type":"Unigram","unk_id":2,"vocab":[["<pad>",0.0],["</s>",0.0],["<unk>",0.0],["▁a",-1.5]]}}`))
	f.Add([]byte(`{"normalizer":null,"model":{"vocab":[["a",0],["b",-1],["c",-2]]}}`))
	fuzzLoad(f, "tokenizer.json")
}

func FuzzLoadSentencePiece(f *testing.F) {
	f.Add([]byte("\x0a\x09\x0a\x05<pad>\x18\x03\x0a\x08\x0a\x04</s>\x18\x03\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x0b\x0a\x04\xe2\x96\x81a\x15\x00\x00\xc0\xbf\x12\x02\x18\x01\x1a\x0a\x12\x08\x04\x00\x00\x00\x00\x00\x00\x00"))
	fuzzLoad(f, "spiece.model")
}

func FuzzEncode(f *testing.F) {
	f.Add("a photo of an astronaut", 77)
	f.Add("</s> ▁▁<extra_id_3>\u0301\xff", 3)
	f.Add("½\u0301 ＜pad＞ \r\n🇺🇳 한", 0)
	tok := small(f)
	f.Fuzz(func(t *testing.T, text string, maxLength int) {
		maxLength %= 100
		e, err := tok.Encode(text, maxLength)
		if err != nil {
			if maxLength >= 0 {
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
