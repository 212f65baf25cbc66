package unigram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gesso-go/gesso/tokenizer/internal/hf"
)

// SentencePiece's model file is a protocol buffer. These are the fields in use, by the numbers in
// sentencepiece_model.proto:
//
//	ModelProto      1 pieces (repeated SentencePiece), 2 trainer_spec, 3 normalizer_spec
//	SentencePiece   1 piece, 2 score (float), 3 type
//	TrainerSpec     3 model_type (1 unigram, the default)
//	NormalizerSpec  2 precompiled_charsmap
const (
	typeControl     = 3
	typeUserDefined = 4
	modelUnigram    = 1
)

var modelNames = map[uint64]string{2: "BPE", 3: "word", 4: "character"}

// parseSentencePiece reads the content of a spiece.model.
func parseSentencePiece(data []byte) (vocabulary, error) {
	var v vocabulary
	err := fields(data, func(number int, f field) error {
		switch number {
		case 1:
			return v.piece(f.bytes)
		case 2:
			return fields(f.bytes, func(number int, f field) error {
				if number == 3 && f.varint != modelUnigram {
					return fmt.Errorf("trainer_spec: want a unigram model, got a %s model", modelNames[f.varint])
				}
				return nil
			})
		case 3:
			return fields(f.bytes, func(number int, f field) error {
				if number == 2 && len(f.bytes) > 0 {
					v.charsmap = f.bytes
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && len(v.pieces) == 0 {
		err = errors.New("not a SentencePiece model: it has no pieces")
	}
	return v, err
}

func (v *vocabulary) piece(message []byte) error {
	var p hf.Piece
	kind := uint64(0)
	err := fields(message, func(number int, f field) error {
		switch number {
		case 1:
			p.Text = string(f.bytes)
		case 2:
			p.Score = float64(math.Float32frombits(f.fixed32))
		case 3:
			kind = f.varint
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("piece %d: %w", len(v.pieces), err)
	}
	if kind == typeControl || kind == typeUserDefined {
		v.symbols = append(v.symbols, hf.Token{Content: p.Text, Special: kind == typeControl, ID: -1})
	}
	v.pieces = append(v.pieces, p)
	return nil
}

// field is the value of a protocol buffer field, in the member that its wire type fills.
type field struct {
	varint  uint64
	fixed32 uint32
	bytes   []byte
}

var errProto = errors.New("not a SentencePiece model, or a truncated one")

// fields calls f with every field of a message, in order.
func fields(message []byte, f func(number int, f field) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return errProto
		}
		message = message[n:]
		var value field
		switch tag & 7 {
		case 0:
			value.varint, n = binary.Uvarint(message)
		case 1:
			n = 8
		case 2:
			length, size := binary.Uvarint(message)
			if size <= 0 || length > uint64(len(message)-size) {
				return errProto
			}
			n = size + int(length)
			value.bytes = message[size:n]
		case 5:
			if n = 4; len(message) >= 4 {
				value.fixed32 = binary.LittleEndian.Uint32(message)
			}
		default:
			return errProto
		}
		if n <= 0 || n > len(message) {
			return errProto
		}
		message = message[n:]
		if err := f(int(tag>>3), value); err != nil {
			return err
		}
	}
	return nil
}
