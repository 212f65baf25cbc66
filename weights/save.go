package weights

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gesso-go/gesso/internal/outfile"
	"github.com/gesso-go/gesso/tensor"
)

// Save writes tensors and metadata to a safetensors file, byte for byte as the reference writer lays them out. It writes
// a temporary file beside path and renames it, so that path holds the old contents or all of the new. metadata may be
// nil for none; the Python libraries expect {"format": "pt"} in files they load as models.
func Save(path string, tensors map[string]*tensor.Array, metadata map[string]string) error {
	return outfile.Write(path, func(w io.Writer) error { return Write(w, tensors, metadata) })
}

// Write is Save to a stream.
func Write(w io.Writer, tensors map[string]*tensor.Array, metadata map[string]string) error {
	names := slices.Collect(maps.Keys(tensors))
	for _, name := range names {
		a := tensors[name]
		switch {
		case a == nil:
			return fmt.Errorf("tensor %s is nil", clip(name))
		case name == metadataKey:
			return fmt.Errorf("%s is no name for a tensor", metadataKey)
		case !utf8.ValidString(name):
			return fmt.Errorf("tensor %s: the name is not UTF-8", clip(name))
		case rank(a.DType) < 0:
			return fmt.Errorf("tensor %s: %s cannot be stored", clip(name), a.DType)
		case len(a.Shape) > maxAxes:
			return fmt.Errorf("tensor %s: more than %d axes", clip(name), maxAxes)
		}
		if err := a.Check(); err != nil {
			return fmt.Errorf("tensor %s: %w", clip(name), err)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(tensors[a].DType), rank(tensors[b].DType)), strings.Compare(a, b))
	})
	text, err := headerText(names, tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := w.Write(tensors[name].Data); err != nil {
			return err
		}
	}
	return nil
}

// headerText returns the header, padded with spaces so that the data starts on a multiple of 8.
func headerText(names []string, tensors map[string]*tensor.Array, metadata map[string]string) ([]byte, error) {
	b := []byte{'{'}
	sep := ""
	if len(metadata) > maxMetadata {
		return nil, fmt.Errorf("%s has more than %d entries", metadataKey, maxMetadata)
	}
	if metadata != nil {
		b = append(b, `"`+metadataKey+`":{`...)
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
				return nil, fmt.Errorf("%s: key %s or its value is not UTF-8", metadataKey, clip(key))
			}
			b = appendString(append(b, sep...), key)
			b = appendString(append(b, ':'), metadata[key])
			sep = ","
		}
		b = append(b, '}')
		sep = "," // also after an empty one
	}
	off := 0
	for _, name := range names {
		a := tensors[name]
		b = appendString(append(b, sep...), name)
		b = append(b, `:{"dtype":"`+dtypeNames[rank(a.DType)].name+`","shape":[`...)
		for i, d := range a.Shape {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(d), 10)
		}
		b = fmt.Appendf(b, `],"data_offsets":[%d,%d]}`, off, off+len(a.Data))
		off += len(a.Data)
		sep = ","
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if len(b) > maxHeader {
		return nil, fmt.Errorf("the header would have %d bytes, the limit is %d", len(b), maxHeader)
	}
	return b, nil
}

// appendString appends valid UTF-8 as a JSON string, escaped no more than JSON requires, as the reference does.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= 0x20:
			b = append(b, c)
		default: // encoding/json knows the short forms: \n, \t …
			quoted, _ := json.Marshal(string(rune(c)))
			b = append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return append(b, '"')
}
