// Package clip is the tokenizer of CLIP's text encoders: lower-casing byte-level byte-pair encoding, as the tokenizer and
// tokenizer_2 folders of FLUX.1 and Stable Diffusion 3 hold it.
//
// Example:
//
//	tok, err := clip.Load("FLUX.1-schnell/tokenizer", tokenizer.Options{})
//	…
//	enc, err := tok.Encode("a photo of an astronaut", tok.MaxLength()) // 49406 320 1125 … 49407 49407 …
//
// It gives the ids of Transformers 5's CLIPTokenizer, which Diffusers calls, and these differ from OpenAI's original for
// some texts: curly quotes and full-width forms are not made plain first. Special tokens are recognised wherever they
// stand in a text; the second tokenizer of Stable Diffusion 3 has "!" (id 0) as its padding token, so there every "!"
// of a prompt is one.
package clip

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/internal/added"
	"github.com/gesso-go/gesso/tokenizer/internal/bpe"
	"github.com/gesso-go/gesso/tokenizer/internal/chars"
	"github.com/gesso-go/gesso/tokenizer/internal/frame"
	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// endOfWord is what the last token of every word ends with.
const endOfWord = "</w>"

// Tokenizer is a loaded CLIP vocabulary. It is immutable and safe for concurrent use.
type Tokenizer struct {
	model     *bpe.Model
	added     *added.Set
	symbols   [256]int32 // token of a byte inside a word
	last      [256]int32 // token of a byte at the end of a word
	frame     frame.Frame
	maxLength int
}

var _ tokenizer.Tokenizer = (*Tokenizer)(nil)

// Load reads a tokenizer folder: tokenizer.json, or else vocab.json with merges.txt; and, as far as they are there,
// tokenizer_config.json, special_tokens_map.json and added_tokens.json.
func Load(dir string, o tokenizer.Options) (*Tokenizer, error) {
	t, err := LoadFS(os.DirFS(dir), o)
	if err != nil {
		return nil, fmt.Errorf("load CLIP tokenizer %s: %w", dir, err)
	}
	return t, nil
}

// LoadFS is Load for a folder of any file system.
func LoadFS(folder fs.FS, o tokenizer.Options) (*Tokenizer, error) {
	file, err := hf.ReadTokenizerJSON(folder)
	if err != nil {
		return nil, err
	}
	source := "tokenizer.json"
	if file != nil {
		if file.Model.Vocab == nil {
			return nil, fmt.Errorf("tokenizer.json: want a byte-pair vocabulary (an object at /model/vocab), got a %s model", file.Model.Type)
		}
	} else {
		source = "vocab.json and merges.txt"
		file = new(hf.TokenizerJSON)
		if file.Model.Vocab, file.Model.Merges, err = readVocab(folder); err != nil {
			return nil, err
		}
	}
	model, err := bpe.New(file.Model.Vocab, file.Model.Merges)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	config, err := hf.ReadConfig(folder, file)
	if err != nil {
		return nil, err
	}
	return build(model, config, source, o.SpecialAsText || config.SplitSpecial)
}

func readVocab(folder fs.FS) ([]hf.Entry, []hf.Merge, error) {
	vocab, err := hf.ReadVocab(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("no vocabulary: want tokenizer.json, or vocab.json with merges.txt: %w", err)
	}
	if err != nil {
		return nil, nil, err
	}
	merges, err := hf.ReadMerges(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("no merges: want merges.txt beside vocab.json, or tokenizer.json: %w", err)
	}
	return vocab, merges, err
}

// defaults are the special tokens of CLIPTokenizer where the settings name none.
var defaults = []hf.NamedToken{
	{Role: "bos_token", Token: hf.Special("<|startoftext|>")},
	{Role: "eos_token", Token: hf.Special("<|endoftext|>")},
	{Role: "unk_token", Token: hf.Special("<|endoftext|>")},
	{Role: "pad_token", Token: hf.Special("<|endoftext|>")},
}

func build(model *bpe.Model, config *hf.Config, source string, specialAsText bool) (*Tokenizer, error) {
	config.Default(defaults)
	lookup := func(token string) (int64, bool) {
		id, ok := model.ID(token)
		return int64(id), ok
	}
	extra := config.Extra
	if extra == nil {
		extra = config.Additional
	}
	set := added.New(config, extra, lookup, model.Len(), normalize, specialAsText)
	t := &Tokenizer{model: model, added: set, maxLength: config.MaxLength}
	special := map[string]int64{}
	for _, n := range config.Names {
		if id, ok := set.ID(n.Token.Content); ok {
			special[n.Role] = id
		}
	}
	t.frame = frame.Frame{
		Before:       []int64{special["bos_token"]},
		After:        []int64{special["eos_token"]},
		Pad:          special["pad_token"],
		PadLeft:      config.PadLeft,
		TruncateLeft: config.TruncateLeft,
	}
	if err := t.bytes(special["unk_token"]); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return t, nil
}

// bytes finds the tokens that words start from. One that the vocabulary lacks is the unknown token, but a vocabulary
// without any of them is not CLIP's.
func (t *Tokenizer) bytes(unknown int64) error {
	missing := 0
	for b := range 256 {
		name := string(alphabet[b])
		var ok bool
		if t.symbols[b], ok = t.model.ID(name); !ok {
			t.symbols[b] = int32(unknown)
			missing++
		}
		if t.last[b], ok = t.model.ID(name + endOfWord); !ok {
			t.last[b] = int32(unknown)
			missing++
		}
	}
	if missing == 512 {
		return fmt.Errorf("not a CLIP vocabulary: want a token for each byte, like \"a\" and \"a</w>\", got none of them")
	}
	return nil
}

// Encode implements tokenizer.Tokenizer.
func (t *Tokenizer) Encode(text string, maxLength int) (tokenizer.Encoding, error) {
	var ids []int64
	var word []int32
	for _, segment := range t.added.Split(chars.Valid(text)) {
		if segment.ID >= 0 {
			ids = append(ids, segment.ID)
			continue
		}
		for s := newSplitter(segment.Text); s.next(); {
			word = word[:0]
			for i := range len(s.word) - 1 {
				word = append(word, t.symbols[s.word[i]])
			}
			word = append(word, t.last[s.word[len(s.word)-1]])
			for _, id := range t.model.Merge(word) {
				ids = append(ids, int64(id))
			}
		}
	}
	return t.frame.Encode(ids, maxLength, t.Decode)
}

// Decode implements tokenizer.Tokenizer.
func (t *Tokenizer) Decode(ids []int64) string {
	var raw []byte
	for _, id := range ids {
		if content, ok := t.added.Content(id); ok {
			raw = append(raw, content...)
			continue
		}
		raw = appendBytes(raw, t.model.Token(id))
	}
	text := chars.Valid(string(raw))
	return strings.TrimSpace(strings.ReplaceAll(text, endOfWord, " "))
}

// MaxLength implements tokenizer.Tokenizer.
func (t *Tokenizer) MaxLength() int { return t.maxLength }

// VocabSize implements tokenizer.Tokenizer.
func (t *Tokenizer) VocabSize() int { return max(t.model.Top(), t.added.Top()) }
