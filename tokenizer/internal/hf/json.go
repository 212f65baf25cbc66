package hf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/gesso-go/gesso/internal/jsonwords"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxID bounds the ids that a file may give, so that a corrupt one cannot make a table of gigabytes. The largest
// vocabularies have some 256,000 tokens.
const maxID = 1<<24 - 1

// maxExtraIDs bounds extra_ids for the same reason; T5 has 100.
const maxExtraIDs = 1<<16 - 1

// member is a key of an object with its value.
type member struct {
	name  string
	value jsontext.Value
}

// readMembers decodes a small optional file that holds an object, and gives its members in their order; v stays as it is
// where the file is absent.
func readMembers(folder fs.FS, name string, v any) ([]member, error) {
	data, err := ReadOptional(folder, name)
	if err != nil || data == nil {
		return nil, err
	}
	if err = json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("%s: %w", name, jsonError(err))
	}
	list, err := members(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// members takes an object apart.
func members(object jsontext.Value) ([]member, error) {
	var list []member
	s := newScanner(object)
	if s.PeekKind() == 'n' {
		return nil, nil
	}
	err := s.object(func(key string) error {
		value, err := s.ReadValue()
		list = append(list, member{key, slices.Clone(value)})
		return err
	})
	if err != nil {
		return nil, jsonError(err)
	}
	return list, nil
}

// jsonError says in one line at which key a document is broken.
func jsonError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return fmt.Errorf("corrupt JSON%s, byte %d: %w", at(syntax.JSONPointer), syntax.ByteOffset, syntax.Err)
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		if semantic.Err != nil {
			return fmt.Errorf("wrong value%s: %w", at(semantic.JSONPointer), semantic.Err)
		}
		return fmt.Errorf("wrong value%s: want %s, got %s", at(semantic.JSONPointer), jsonwords.Expected(semantic.GoType), jsonwords.Found(byte(semantic.JSONKind)))
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("corrupt JSON: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func at(p jsontext.Pointer) string {
	if p == "" {
		return ""
	}
	return " at " + string(p)
}

// scanner walks a large document without building it; tokenizer.json has some 100,000 values, which the reflecting
// decoder takes several times as long for.
type scanner struct {
	*jsontext.Decoder
	text string // the document; strings are cut out of it where nothing in them is escaped
}

func newScanner(data []byte) scanner {
	// Duplicate names are looked for where they matter, in vocabularies; the check of the decoder is slow.
	return scanner{jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)), string(data)}
}

func (s scanner) wrong(want string, got jsontext.Kind) error {
	return fmt.Errorf("wrong value%s: want %s, got %v", at(s.StackPointer()), want, got)
}

// expect consumes one token of the given kind.
func (s scanner) expect(kind jsontext.Kind, want string) error {
	if got := s.PeekKind(); got != kind && got > 0 {
		// Step over the token first: only then does the pointer name it.
		if err := s.SkipValue(); err != nil {
			return err
		}
		return s.wrong(want, got)
	}
	_, err := s.ReadToken()
	return err
}

// object calls field with every key of an object; field must consume the key's value.
func (s scanner) object(field func(key string) error) error {
	if err := s.expect('{', "an object"); err != nil {
		return err
	}
	for s.PeekKind() != '}' {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := s.ReadToken()
	return err
}

// array calls element at every element of an array; element must consume it.
func (s scanner) array(element func() error) error {
	if err := s.expect('[', "an array"); err != nil {
		return err
	}
	for s.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := s.ReadToken()
	return err
}

func (s scanner) str() (string, error) {
	value, err := s.ReadValue()
	if err != nil {
		return "", err
	}
	if value.Kind() != '"' {
		return "", s.wrong("a string", value.Kind())
	}
	if bytes.IndexByte(value, '\\') < 0 {
		end := int(s.InputOffset())
		return s.text[end-len(value)+1 : end-1], nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	return string(unquoted), err
}

func (s scanner) number() (jsontext.Value, error) {
	value, err := s.ReadValue()
	if err == nil && value.Kind() != '0' {
		err = s.wrong("a number", value.Kind())
	}
	return value, err
}

// id reads a token id.
func (s scanner) id() (int, error) {
	value, err := s.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil || n < 0 || n > maxID {
		return 0, fmt.Errorf("id out of range%s: want 0 to %d, got %s", at(s.StackPointer()), maxID, value)
	}
	return int(n), nil
}

func (s scanner) float() (float64, error) {
	value, err := s.number()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0, fmt.Errorf("wrong value%s: want a number that fits, got %s", at(s.StackPointer()), value)
	}
	return f, nil
}

// end makes sure that nothing follows the document.
func (s scanner) end() error {
	if _, err := s.ReadToken(); err != io.EOF {
		if err == nil {
			err = fmt.Errorf("corrupt JSON: something follows the end of the document at byte %d", s.InputOffset())
		}
		return err
	}
	return nil
}
