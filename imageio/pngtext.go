package imageio

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Text is one text entry of a PNG file, such as the parameters that a picture was made with.
type Text struct {
	Key   string // 1 to 79 printable ASCII characters: "parameters", "Software", …
	Value string // UTF-8
}

const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	pngHeaderEnd = 8 + 12 + 13 // signature and IHDR chunk, before which nothing may stand
	maxText      = 16 << 20    // bytes of one text entry
	maxAllText   = 64 << 20    // bytes of all text entries of a file
)

// appendText appends the chunk of t. ASCII goes into tEXt, which every reader knows, anything else into iTXt.
// Source: PNG specification (third edition), 11.3.3.
func appendText(dst []byte, t Text) ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	kind, body := "tEXt", t.Key+"\x00"+t.Value
	if strings.ContainsFunc(t.Value, func(r rune) bool { return r >= utf8.RuneSelf }) {
		// not compressed, no language, no translated key
		kind, body = "iTXt", t.Key+"\x00\x00\x00\x00\x00"+t.Value
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	from := len(dst)
	dst = append(append(dst, kind...), body...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:])), nil
}

func (t Text) check() error {
	bad := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case t.Key == "" || len(t.Key) > 79 || strings.ContainsFunc(t.Key, bad) || strings.Trim(t.Key, " ") != t.Key:
		return fmt.Errorf("text key %q, expected 1 to 79 printable ASCII characters without outer spaces", t.Key)
	case strings.ContainsRune(t.Value, 0):
		return fmt.Errorf("text of %q has a zero byte", t.Key)
	case !utf8.ValidString(t.Value):
		return fmt.Errorf("text of %q is not UTF-8", t.Key)
	case len(t.Value) > maxText:
		return fmt.Errorf("text of %q has %d bytes, expected at most %d", t.Key, len(t.Value), maxText)
	}
	return nil
}

// ReadText returns the text entries of a PNG file in the order of the file: tEXt, zTXt and iTXt chunks. Damaged and
// oversized entries are left out. Where the file itself breaks off, what came before is returned with an error.
func ReadText(r io.Reader) ([]Text, error) {
	in := bufio.NewReader(r)
	head := make([]byte, len(pngSignature))
	if _, err := io.ReadFull(in, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return nil, fmt.Errorf("read PNG text: %w", err)
	}
	if string(head) != pngSignature {
		return nil, fmt.Errorf("read PNG text: not a PNG file")
	}
	var texts []Text
	total := 0
	for {
		var h [8]byte // length, kind
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return texts, fmt.Errorf("read PNG text: file ends before its IEND chunk: %w", unexpected(err))
		}
		size, kind := int64(binary.BigEndian.Uint32(h[:4])), string(h[4:])
		if kind == "IEND" {
			return texts, nil
		}
		isText := kind == "tEXt" || kind == "zTXt" || kind == "iTXt"
		if !isText || size > maxText {
			if _, err := io.CopyN(io.Discard, in, size+4); err != nil {
				return texts, fmt.Errorf("read PNG text: chunk %q is cut off: %w", kind, unexpected(err))
			}
			continue
		}
		var body bytes.Buffer // grows with what is there, not with what the chunk claims
		if _, err := io.CopyN(&body, in, size+4); err != nil {
			return texts, fmt.Errorf("read PNG text: chunk %q is cut off: %w", kind, unexpected(err))
		}
		data, sum := body.Bytes()[:size], binary.BigEndian.Uint32(body.Bytes()[size:])
		if crc32.Update(crc32.ChecksumIEEE(h[4:]), crc32.IEEETable, data) != sum {
			continue
		}
		t, ok := parseText(kind, data)
		if total += len(t.Value); ok && total <= maxAllText {
			texts = append(texts, t)
		}
	}
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadTextFile is [ReadText] of a file.
func ReadTextFile(path string) ([]Text, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	texts, err := ReadText(f)
	if err != nil {
		return texts, fmt.Errorf("%s: %w", path, err)
	}
	return texts, nil
}

// parseText decodes the body of a text chunk.
func parseText(kind string, data []byte) (Text, bool) {
	key, rest, ok := bytes.Cut(data, []byte{0})
	if !ok || len(key) == 0 {
		return Text{}, false
	}
	t := Text{Key: decodeText(key)}
	compressed := kind == "zTXt"
	switch kind {
	case "zTXt":
		if len(rest) < 1 || rest[0] != 0 { // method 0 is deflate
			return t, false
		}
		rest = rest[1:]
	case "iTXt":
		if len(rest) < 2 || rest[0] > 1 || rest[1] != 0 {
			return t, false
		}
		compressed = rest[0] == 1
		_, rest, ok = bytes.Cut(rest[2:], []byte{0}) // language
		if !ok {
			return t, false
		}
		_, rest, ok = bytes.Cut(rest, []byte{0}) // translated key
		if !ok {
			return t, false
		}
	}
	if compressed {
		if rest, ok = inflate(rest); !ok {
			return t, false
		}
	}
	t.Value = decodeText(rest)
	return t, true
}

// inflate unpacks b unless it is damaged or unpacks to more than maxText bytes.
func inflate(b []byte) ([]byte, bool) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, false
	}
	out, err := io.ReadAll(io.LimitReader(z, maxText+1))
	return out, err == nil && len(out) <= maxText
}

// decodeText reads UTF-8 or, where b is not, Latin-1. The specification has Latin-1 in tEXt and zTXt, but several
// programs put UTF-8 there.
func decodeText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}
