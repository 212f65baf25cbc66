package hf

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Token is an added token: a string that is cut out of the text before the model sees it. The fields are those of
// Transformers' AddedToken.
type Token struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // matches only where no word character touches it
	LStrip     bool   `json:"lstrip"`      // eats the white space before it
	RStrip     bool   `json:"rstrip"`      // eats the white space after it
	Normalized bool   `json:"normalized"`  // looked for in the normalised text instead of the raw one
	Special    bool   `json:"special"`     // a control token, not text
	ID         int    `json:"id"`          // -1 where the file gives none
}

// Special gives an added token as Transformers makes it of a bare name.
func Special(content string) Token { return Token{Content: content, Special: true, ID: -1} }

// TokenOrName reads a special token that a settings file gives either by name or as an object. It is the zero Token
// where the value is null.
type TokenOrName struct{ Token }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *TokenOrName) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch kind := dec.PeekKind(); kind {
	case '"':
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		t.Token = Special(name.String())
	case '{':
		t.Token = Token{Special: true, ID: -1}
		if err := json.UnmarshalDecode(dec, &t.Token); err != nil {
			return err
		}
	case 'n':
		return dec.SkipValue()
	default:
		return fmt.Errorf("want a token's name or object, got %v", kind)
	}
	return nil
}
