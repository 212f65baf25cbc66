package weights

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON text (RFC 8259) front to back, in place. It stands in for encoding/json because that silently keeps
// the last of two equal keys, and because a header of 100 MB must cost time and memory in proportion.
type scanner struct {
	data []byte // valid UTF-8
	pos  int
}

// errorf reports a syntax error at the current byte.
func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", s.pos, fmt.Sprintf(format, args...))
}

// found names the next byte for an error message.
func (s *scanner) found() string {
	if s.pos >= len(s.data) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return fmt.Sprintf("%q", r)
}

// space skips white space.
func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, or 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// expect consumes c, after white space.
func (s *scanner) expect(c byte) error {
	if s.peek() != c || s.pos >= len(s.data) {
		return s.errorf("expected %q, found %s", c, s.found())
	}
	s.pos++
	return nil
}

// end reports anything but white space after the value.
func (s *scanner) end() error {
	if s.space(); s.pos < len(s.data) {
		return s.errorf("trailing text after the JSON object, starting with %s", s.found())
	}
	return nil
}

// object reads {"key": value, …}; member is called at each value and must consume it. key is only valid until then.
func (s *scanner) object(member func(key []byte) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.pos++
			continue
		}
		return s.expect('}')
	}
}

// array reads [value, …]; element is called at each value and must consume it.
func (s *scanner) array(element func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if s.peek() == ',' {
			s.pos++
			continue
		}
		return s.expect(']')
	}
}

// string reads a string. Without escapes the result is a view of the text.
func (s *scanner) string() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.pos
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return s.data[start : s.pos-1], nil
		case c == '\\':
			return s.escaped(append([]byte(nil), s.data[start:s.pos]...))
		case c < 0x20:
			return nil, s.errorf("control character %q in a string", c)
		}
		s.pos++
	}
	return nil, s.errorf("string without a closing quote")
}

// escaped reads the rest of a string that has an escape at the current byte, appending to out.
func (s *scanner) escaped(out []byte) ([]byte, error) {
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		switch {
		case c == '"':
			s.pos++
			return out, nil
		case c < 0x20:
			return nil, s.errorf("control character %q in a string", c)
		case c != '\\':
			out = append(out, c)
			s.pos++
			continue
		}
		s.pos++
		if s.pos >= len(s.data) {
			break
		}
		c = s.data[s.pos]
		s.pos++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, err := s.hex4()
			if err != nil {
				return nil, err
			}
			if utf16.IsSurrogate(r) {
				var low rune
				if s.pos+1 < len(s.data) && s.data[s.pos] == '\\' && s.data[s.pos+1] == 'u' {
					s.pos += 2
					if low, err = s.hex4(); err != nil {
						return nil, err
					}
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return nil, s.errorf("half of a surrogate pair in a string")
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			s.pos--
			return nil, s.errorf("unknown escape \\%s in a string", s.found())
		}
	}
	return nil, s.errorf("string without a closing quote")
}

// hex4 reads the four digits of a \u escape.
func (s *scanner) hex4() (rune, error) {
	var r rune
	for range 4 {
		if s.pos >= len(s.data) {
			return 0, s.errorf("string without a closing quote")
		}
		c := s.data[s.pos]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, s.errorf("expected four hex digits after \\u, found %s", s.found())
		}
		r = r<<4 | rune(c)
		s.pos++
	}
	return r, nil
}

var errOverflow = errors.New("is too large")

// natural reads an integer ≥ 0. Where the value is another number, or no number, the error says what it is, to follow
// the name of the field.
func (s *scanner) natural() (int64, error) {
	s.space()
	start := s.pos
	if err := s.skip(0); err != nil {
		return 0, err
	}
	text := s.data[start:s.pos]
	var n int64
	for i, c := range text {
		switch {
		case '0' <= c && c <= '9':
			if n > (math.MaxInt64-int64(c-'0'))/10 {
				return 0, errOverflow
			}
			n = n*10 + int64(c-'0')
		case i == 0 && c == '-':
			return 0, fmt.Errorf("is %s, expected an integer ≥ 0", clip(text))
		default:
			return 0, fmt.Errorf("is %s, expected an integer", clip(text))
		}
	}
	return n, nil
}

// maxDepth bounds the nesting of values that are skipped, as serde_json does.
const maxDepth = 128

// skip reads a value of any kind.
func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return s.errorf("nested more than %d deep", maxDepth)
	}
	switch c := s.peek(); {
	case c == '{':
		return s.object(func([]byte) error { return s.skip(depth + 1) })
	case c == '[':
		return s.array(func() error { return s.skip(depth + 1) })
	case c == '"':
		_, err := s.string()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if n := len(word); len(s.data)-s.pos >= n && string(s.data[s.pos:s.pos+n]) == word {
			s.pos += n
			return nil
		}
	}
	return s.errorf("expected a value, found %s", s.found())
}

// number skips a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number() error {
	at := func(set string) bool {
		if s.pos < len(s.data) {
			for i := range len(set) {
				if s.data[s.pos] == set[i] {
					s.pos++
					return true
				}
			}
		}
		return false
	}
	digits := func() error {
		start := s.pos
		for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
			s.pos++
		}
		if s.pos == start {
			return s.errorf("expected a digit, found %s", s.found())
		}
		return nil
	}
	at("-")
	if at("0") {
		if s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
			return s.errorf("number with a leading zero")
		}
	} else if err := digits(); err != nil {
		return err
	}
	if at(".") {
		if err := digits(); err != nil {
			return err
		}
	}
	if at("eE") {
		at("+-")
		return digits()
	}
	return nil
}

// clip quotes text from a file for an error message, so that a key of any length still makes one short line.
func clip[T string | []byte](text T) string {
	const limit = 160
	if len(text) <= limit {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q… (%d bytes)", text[:limit], len(text))
}
