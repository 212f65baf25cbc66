package hf

import (
	"slices"
	"testing"
	"testing/fstest"
)

func folder(files map[string]string) fstest.MapFS {
	f := fstest.MapFS{}
	for name, text := range files {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

func TestConfig(t *testing.T) {
	c, err := ReadConfig(folder(map[string]string{
		"tokenizer_config.json": `{"tokenizer_class": "T5TokenizerFast", "model_max_length": 512, "extra_ids": 3, "padding_side": "left",
			"pad_token": "<pad>", "eos_token": {"__type": "AddedToken", "content": "</s>", "lstrip": true, "normalized": false},
			"bos_token": null, "extra_special_tokens": {}, "additional_special_tokens": ["<x>", {"content": "<y>", "rstrip": true}], "chat_template": "…"}`,
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Class != "T5TokenizerFast" || c.MaxLength != 512 || c.ExtraIDs != 3 || !c.PadLeft || c.TruncateLeft {
		t.Errorf("got %+v", c)
	}
	if eos, ok := c.Named("eos_token"); !ok || eos != (Token{Content: "</s>", LStrip: true, Special: true, ID: -1}) {
		t.Errorf("eos_token %+v, %v", eos, ok)
	}
	if _, ok := c.Named("bos_token"); ok {
		t.Error("bos_token is null, but named")
	}
	if want := []Token{Special("<x>"), {Content: "<y>", RStrip: true, Special: true, ID: -1}}; !slices.Equal(c.Extra, want) {
		t.Errorf("extra %+v, want %+v", c.Extra, want)
	}
}

func TestNoConfig(t *testing.T) {
	c, err := ReadConfig(folder(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxLength != 0 || c.ExtraIDs != -1 || len(c.Names)+len(c.Added)+len(c.Extra) != 0 {
		t.Errorf("got %+v", c)
	}
}

func TestNoLimitIsSavedAsAHugeNumber(t *testing.T) {
	for _, number := range []string{"1000000000000000019884624838656", "1e30"} {
		c, err := ReadConfig(folder(map[string]string{"tokenizer_config.json": `{"model_max_length": ` + number + `}`}), nil)
		if err != nil || c.MaxLength != 0 {
			t.Errorf("%s: %+v, %v, want no limit", number, c, err)
		}
	}
}

// Where tokenizer_config.json lists added tokens, the other files don't count.
func TestAddedTokensDecoderCountsAlone(t *testing.T) {
	files := map[string]string{
		"tokenizer_config.json":   `{"pad_token": "a", "added_tokens_decoder": {"5": {"content": "b", "normalized": true, "special": true}, "4": {"content": "a", "special": true}}}`,
		"special_tokens_map.json": `{"pad_token": "b"}`,
		"added_tokens.json":       `{"c": 6}`,
	}
	tokenizerJSON := &TokenizerJSON{Added: []Token{{Content: "d", ID: 7}}}
	c, err := ReadConfig(folder(files), tokenizerJSON)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Token{{Content: "a", ID: 4, Special: true}, {Content: "b", ID: 5, Special: true, Normalized: true}}; !slices.Equal(c.Added, want) {
		t.Errorf("added %+v, want %+v", c.Added, want)
	}
	if pad, _ := c.Named("pad_token"); pad.Content != "a" || pad.ID != 4 {
		t.Errorf("pad_token %+v, want a with its id", pad)
	}

	files["tokenizer_config.json"] = `{"pad_token": "a"}`
	c, err = ReadConfig(folder(files), tokenizerJSON)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Token{{Content: "c", ID: 6, Normalized: true}, {Content: "d", ID: 7}}; !slices.Equal(c.Added, want) {
		t.Errorf("added %+v, want %+v", c.Added, want)
	}
	if pad, _ := c.Named("pad_token"); pad.Content != "b" {
		t.Errorf("pad_token %+v, want b, as special_tokens_map.json says", pad)
	}
}

func TestParseTokenizerJSON(t *testing.T) {
	got, err := ParseTokenizerJSON([]byte(`{"version": "1.0", "truncation": null, "added_tokens": [{"id": 3, "content": "<\u0078>", "special": true}],
		"model": {"merges": ["a b", "ab c"], "vocab": {"a": 0, "\u00e9\n": 1}, "unk_token": null, "end_of_word_suffix": "</w>"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []Token{{Content: "<x>", ID: 3, Special: true}}; !slices.Equal(got.Added, want) {
		t.Errorf("added %+v, want %+v", got.Added, want)
	}
	if want := []Entry{{"a", 0}, {"é\n", 1}}; !slices.Equal(got.Model.Vocab, want) {
		t.Errorf("vocabulary %+v, want %+v", got.Model.Vocab, want)
	}
	if want := []Merge{{"a", "b"}, {"ab", "c"}}; !slices.Equal(got.Model.Merges, want) {
		t.Errorf("merges %+v, want %+v", got.Model.Merges, want)
	}
	if got.Model.EndOfWordSuffix != "</w>" || got.Model.UnkID != -1 || got.Charsmap != nil {
		t.Errorf("got %+v", got.Model)
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add([]byte(`{"pad_token": {"content": "a"}, "added_tokens_decoder": {"1": {"content": "a"}}, "extra_special_tokens": ["x"]}`))
	f.Add([]byte(`{"model_max_length": 1e30, "extra_ids": 5, "extra_special_tokens": {"y": "x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"} {
			c, err := ReadConfig(fstest.MapFS{name: {Data: data}}, nil)
			if err == nil && !slices.IsSortedFunc(c.Added, func(a, b Token) int { return a.ID - b.ID }) {
				t.Errorf("added tokens out of order: %+v", c.Added)
			}
		}
	})
}
