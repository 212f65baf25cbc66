package hf

import (
	"encoding/base64"
	"fmt"
	"io/fs"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TokenizerJSON is the part of tokenizer.json that tokenizers here use. Its normaliser and pre-tokeniser are not
// among it: Transformers' classes bring their own, and so do the packages that call this one.
type TokenizerJSON struct {
	Added        []Token
	Charsmap     []byte // the first Precompiled normaliser's table, nil if there is none
	Model        Model
	PadLeft      bool // the padding section has the direction "Left"
	TruncateLeft bool // the truncation section has it
}

// Model is the vocabulary of tokenizer.json: Vocab and Merges for byte-pair encoding, Pieces for a unigram model.
type Model struct {
	Type            string // "BPE", "Unigram"; old files leave it out
	EndOfWordSuffix string
	UnkID           int // -1 if not given
	Vocab           []Entry
	Merges          []Merge
	Pieces          []Piece
}

// Entry is a token and its id.
type Entry struct {
	Token string
	ID    int
}

// Merge is a pair of tokens that byte-pair encoding joins; earlier ones go first.
type Merge struct{ Left, Right string }

// Piece is a token of a unigram model with its log probability; its id is its place in the list.
type Piece struct {
	Text  string
	Score float64
}

// ReadTokenizerJSON reads tokenizer.json; it gives nil if the folder has none.
func ReadTokenizerJSON(folder fs.FS) (*TokenizerJSON, error) {
	data, err := ReadOptional(folder, "tokenizer.json")
	if err != nil || data == nil {
		return nil, err
	}
	t, err := ParseTokenizerJSON(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

// ParseTokenizerJSON reads the content of a tokenizer.json.
func ParseTokenizerJSON(data []byte) (*TokenizerJSON, error) {
	t := &TokenizerJSON{Model: Model{UnkID: -1}}
	s := newScanner(data)
	err := s.object(func(key string) error {
		switch key {
		case "added_tokens":
			return s.array(func() error { return t.added(s) })
		case "normalizer":
			return t.normalizer(s)
		case "model":
			return t.Model.read(s)
		case "padding":
			return s.direction(&t.PadLeft)
		case "truncation":
			return s.direction(&t.TruncateLeft)
		}
		return s.SkipValue()
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, jsonError(err)
	}
	if t.Model.Vocab == nil && t.Model.Pieces == nil {
		return nil, fmt.Errorf("want a vocabulary at /model/vocab, got none")
	}
	return t, nil
}

// direction reads the side of a padding or truncation section, which may be null.
func (s scanner) direction(left *bool) error {
	if s.PeekKind() == 'n' {
		return s.SkipValue()
	}
	return s.object(func(key string) error {
		if key != "direction" {
			return s.SkipValue()
		}
		side, err := s.str()
		*left = side == "Left"
		return err
	})
}

func (t *TokenizerJSON) added(s scanner) error {
	token := Token{ID: -1}
	if err := json.UnmarshalDecode(s.Decoder, &token); err != nil {
		return err
	}
	if token.ID < 0 || token.ID > maxID {
		return fmt.Errorf("id out of range%s/id: want 0 to %d, got %d", at(s.StackPointer()), maxID, token.ID)
	}
	t.Added = append(t.Added, token)
	return nil
}

// normalizer looks for the first Precompiled normaliser, which may stand alone or in a sequence.
func (t *TokenizerJSON) normalizer(s scanner) error {
	if s.PeekKind() == 'n' {
		return s.SkipValue()
	}
	return s.object(func(key string) error {
		switch key {
		case "normalizers":
			return s.array(func() error { return t.normalizer(s) })
		case "precompiled_charsmap":
			if s.PeekKind() == 'n' {
				return s.SkipValue()
			}
			text, err := s.str()
			if err != nil || t.Charsmap != nil {
				return err
			}
			t.Charsmap, err = base64.StdEncoding.DecodeString(text)
			if err != nil {
				return fmt.Errorf("wrong value%s: %w", at(s.StackPointer()), err)
			}
			return nil
		}
		return s.SkipValue()
	})
}

func (m *Model) read(s scanner) error {
	return s.object(func(key string) (err error) {
		if s.PeekKind() == 'n' {
			return s.SkipValue()
		}
		switch key {
		case "type":
			m.Type, err = s.str()
			return err
		case "end_of_word_suffix":
			m.EndOfWordSuffix, err = s.str()
			return err
		case "unk_id":
			m.UnkID, err = s.id()
			return err
		case "vocab":
			if s.PeekKind() == '[' {
				m.Pieces = []Piece{}
				return s.array(func() error { return m.piece(s) })
			}
			m.Vocab, err = readVocab(s)
			return err
		case "merges":
			return s.array(func() error { return m.merge(s) })
		}
		return s.SkipValue()
	})
}

// piece reads ["text", score].
func (m *Model) piece(s scanner) error {
	if err := s.expect('[', "a piece and its score"); err != nil {
		return err
	}
	text, err := s.str()
	if err != nil {
		return err
	}
	score, err := s.float()
	if err != nil {
		return err
	}
	m.Pieces = append(m.Pieces, Piece{text, score})
	return s.expect(']', "the end of the piece")
}

// merge reads "left right" or, in newer files, ["left", "right"].
func (m *Model) merge(s scanner) error {
	if s.PeekKind() != '[' {
		text, err := s.str()
		if err != nil {
			return err
		}
		merge, err := parseMerge(text)
		if err != nil {
			return fmt.Errorf("wrong value%s: %w", at(s.StackPointer()), err)
		}
		m.Merges = append(m.Merges, merge)
		return nil
	}
	if _, err := s.ReadToken(); err != nil {
		return err
	}
	left, err := s.str()
	if err != nil {
		return err
	}
	right, err := s.str()
	if err != nil {
		return err
	}
	m.Merges = append(m.Merges, Merge{left, right})
	return s.expect(jsontext.Kind(']'), "the end of the pair")
}
