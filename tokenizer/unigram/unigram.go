// Package unigram is the tokenizer of T5's text encoders: a SentencePiece unigram model, as the tokenizer_2 folder of
// FLUX.1 and the tokenizer_3 folder of Stable Diffusion 3 hold it.
//
// Example:
//
//	tok, err := unigram.Load("FLUX.1-schnell/tokenizer_2", tokenizer.Options{})
//	…
//	enc, err := tok.Encode("a photo of an astronaut", 256) // 3 9 1202 13 46 … 1 0 0 …
//
// It gives the ids of Transformers 5's T5Tokenizer, which Diffusers calls. That class normalises with the model's
// character map, splits at white space and puts "▁" before every word, whatever tokenizer.json says; the original
// SentencePiece library gives other ids for some texts. Case is kept.
//
// One difference is known: an Indic consonant that has a decomposition, joined to the one before it by a virama and
// followed by a Latin or Greek combining mark, loses that mark here; Transformers' library keeps it (rule GB9c of
// Unicode 15.1, which package uniseg lacks).
package unigram

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/gesso-go/gesso/tokenizer"
	"github.com/gesso-go/gesso/tokenizer/internal/added"
	"github.com/gesso-go/gesso/tokenizer/internal/chars"
	"github.com/gesso-go/gesso/tokenizer/internal/frame"
	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// wordStart stands for the space before a word.
const wordStart = "▁"

// unknown is the id of "<unk>": T5Tokenizer fixes it.
const unknown = 2

// defaultExtraIDs is how many tokens <extra_id_N> a T5 vocabulary ends with unless its settings say otherwise.
const defaultExtraIDs = 100

// Tokenizer is a loaded T5 vocabulary. It is immutable and safe for concurrent use.
type Tokenizer struct {
	model     *model
	added     *added.Set
	frame     frame.Frame
	maxLength int
}

var _ tokenizer.Tokenizer = (*Tokenizer)(nil)

// Load reads a tokenizer folder: tokenizer.json, or else spiece.model; and, as far as they are there,
// tokenizer_config.json, special_tokens_map.json and added_tokens.json.
func Load(dir string, o tokenizer.Options) (*Tokenizer, error) {
	t, err := LoadFS(os.DirFS(dir), o)
	if err != nil {
		return nil, fmt.Errorf("load T5 tokenizer %s: %w", dir, err)
	}
	return t, nil
}

// LoadFS is Load for a folder of any file system.
func LoadFS(folder fs.FS, o tokenizer.Options) (*Tokenizer, error) {
	file, err := hf.ReadTokenizerJSON(folder)
	if err != nil {
		return nil, err
	}
	v := vocabulary{source: "tokenizer.json"}
	if file != nil {
		if file.Model.Pieces == nil {
			return nil, fmt.Errorf("tokenizer.json: want a unigram vocabulary (a list at /model/vocab), got a %s model", file.Model.Type)
		}
		v.pieces, v.charsmap = file.Model.Pieces, file.Charsmap
	}
	config, err := hf.ReadConfig(folder, file)
	if err != nil {
		return nil, err
	}
	extraIDs := config.ExtraIDs
	if extraIDs < 0 {
		extraIDs = defaultExtraIDs
	}
	if file == nil {
		if v, err = readSentencePiece(folder, extraIDs); err != nil {
			return nil, err
		}
	}
	return build(v, config, extraIDs, o)
}

// vocabulary is what either kind of file gives.
type vocabulary struct {
	source   string // file name
	pieces   []hf.Piece
	charsmap []byte     // nil for no normalisation
	symbols  []hf.Token // control and user-defined symbols
}

func readSentencePiece(folder fs.FS, extraIDs int) (vocabulary, error) {
	const name = "spiece.model"
	data, err := hf.Read(folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return vocabulary{}, fmt.Errorf("no vocabulary: want tokenizer.json or spiece.model: %w", err)
	}
	if err != nil {
		return vocabulary{}, err
	}
	v, err := parseSentencePiece(data)
	if err != nil {
		return vocabulary{}, fmt.Errorf("%s: %w", name, err)
	}
	v.source = name
	for i := extraIDs - 1; i >= 0; i-- {
		v.pieces = append(v.pieces, hf.Piece{Text: extraID(i)})
	}
	return v, nil
}

func extraID(i int) string { return fmt.Sprintf("<extra_id_%d>", i) }

// defaults are the special tokens of T5Tokenizer where the settings name none.
var defaults = []hf.NamedToken{
	{Role: "eos_token", Token: hf.Special("</s>")},
	{Role: "unk_token", Token: hf.Special("<unk>")},
	{Role: "pad_token", Token: hf.Special("<pad>")},
}

func build(v vocabulary, config *hf.Config, extraIDs int, o tokenizer.Options) (*Tokenizer, error) {
	m, err := newModel(v.pieces)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.source, err)
	}
	if v.charsmap != nil {
		if m.charsmap, err = newCharsmap(v.charsmap); err != nil {
			return nil, fmt.Errorf("%s: precompiled_charsmap: %w", v.source, err)
		}
	}
	config.Default(defaults)
	set := added.New(config, extraTokens(v, config, extraIDs), m.id, len(v.pieces), m.normalize, o.SpecialAsText || config.SplitSpecial)
	if o.SpecialAsText {
		m.hide(func(piece string) bool { _, special := set.ID(piece); return special })
	}
	t := &Tokenizer{model: m, added: set, maxLength: config.MaxLength}
	eos, _ := config.Named("eos_token")
	pad, _ := config.Named("pad_token")
	end, _ := set.ID(eos.Content)
	t.frame = frame.Frame{After: []int64{end}, PadLeft: config.PadLeft, TruncateLeft: config.TruncateLeft}
	t.frame.Pad, _ = set.ID(pad.Content)
	return t, nil
}

// extraTokens are the tokens without a role: those that the settings list, or else T5Tokenizer's, the symbols of the
// SentencePiece model and <extra_id_N>.
func extraTokens(v vocabulary, config *hf.Config, extraIDs int) []hf.Token {
	if config.Extra != nil {
		return config.Extra
	}
	extra := v.symbols
	if v.symbols == nil {
		extra = config.Additional
	}
	if slices.ContainsFunc(extra, func(t hf.Token) bool { return strings.Contains(t.Content, "<extra_id_") }) {
		return extra
	}
	for i := range extraIDs {
		extra = append(extra, hf.Special(extraID(i)))
	}
	return extra
}

// Encode implements tokenizer.Tokenizer.
func (t *Tokenizer) Encode(text string, maxLength int) (tokenizer.Encoding, error) {
	var ids []int64
	var search viterbi
	for _, segment := range t.added.Split(chars.Valid(text)) {
		if segment.ID >= 0 {
			ids = append(ids, segment.ID)
			continue
		}
		for word := range words(segment.Text) {
			ids = search.encode(ids, t.model, word)
		}
	}
	return t.frame.Encode(ids, maxLength, t.Decode)
}

// words cuts a normalised text at white space and before every "▁", and lets each word start with one.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for word := range strings.FieldsSeq(text) {
			if !strings.HasPrefix(word, wordStart) {
				word = wordStart + word
			}
			for word != "" {
				end := len(word)
				if next := strings.Index(word[len(wordStart):], wordStart); next >= 0 {
					end = len(wordStart) + next
				}
				if !yield(word[:end]) {
					return
				}
				word = word[end:]
			}
		}
	}
}

// Decode implements tokenizer.Tokenizer.
func (t *Tokenizer) Decode(ids []int64) string {
	var b strings.Builder
	for _, id := range ids {
		text, ok := t.added.Content(id)
		if !ok {
			text = t.model.piece(id)
		}
		space := " "
		if b.Len() == 0 {
			space = ""
		}
		b.WriteString(strings.ReplaceAll(text, wordStart, space))
	}
	return b.String()
}

// MaxLength implements tokenizer.Tokenizer.
func (t *Tokenizer) MaxLength() int { return t.maxLength }

// VocabSize implements tokenizer.Tokenizer.
func (t *Tokenizer) VocabSize() int { return t.added.Top() }
