// Package frame puts a text's tokens between the special ones, cuts them to a length and pads them.
package frame

import (
	"fmt"

	"github.com/gesso-go/gesso/tokenizer"
)

// Frame is what surrounds the tokens of a text.
type Frame struct {
	Before, After []int64 // special tokens that survive every cut
	Pad           int64
	PadLeft       bool // padding comes before the tokens
	TruncateLeft  bool // the beginning of the text is cut instead of its end
}

// Encode frames the tokens of a text, as tokenizer.Tokenizer's Encode describes it; decode is asked for the tokens that
// were cut.
func (f Frame) Encode(body []int64, maxLength int, decode func([]int64) string) (tokenizer.Encoding, error) {
	special := len(f.Before) + len(f.After)
	if maxLength < 0 || maxLength > 0 && maxLength < special {
		return tokenizer.Encoding{}, fmt.Errorf("maximum length %d: want 0 or at least %d, the number of special tokens", maxLength, special)
	}
	var cut []int64
	if room := maxLength - special; maxLength > 0 && len(body) > room {
		if over := len(body) - room; f.TruncateLeft {
			cut, body = body[:over], body[over:]
		} else {
			cut, body = body[room:], body[:room]
		}
	}
	length := max(maxLength, special+len(body))
	e := tokenizer.Encoding{IDs: make([]int64, length), Mask: make([]int64, length)}
	start, padding := 0, e.IDs[special+len(body):]
	if f.PadLeft {
		start = length - special - len(body)
		padding = e.IDs[:start]
	}
	for i := range padding {
		padding[i] = f.Pad
	}
	ids := e.IDs[start:]
	n := copy(ids, f.Before)
	n += copy(ids[n:], body)
	n += copy(ids[n:], f.After)
	for i := range n {
		e.Mask[start+i] = 1
	}
	if len(cut) > 0 {
		e.Truncated = decode(cut)
	}
	return e, nil
}
