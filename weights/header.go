package weights

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gesso-go/gesso/tensor"
)

// Limits on a header. The first is the reference implementation's; the others bound what a hostile header can make us
// allocate to a small multiple of its size, and lie far above what real files have.
const (
	maxHeader   = 100_000_000 // bytes
	maxAxes     = 32          // axes of one tensor, numpy's limit
	maxMetadata = 1 << 16     // entries of __metadata__
)

// metadataKey is the one key of a header that is no tensor.
const metadataKey = "__metadata__"

// A safetensors file is the length of the header (uint64, little-endian), the header (a JSON object), and the data:
//
//	{"__metadata__": {"format": "pt"}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//
// Offsets count from the end of the header. Source: github.com/huggingface/safetensors, README and tensor.rs (validate).
type header struct {
	size     int      // bytes from the start of the file to the data
	tensors  []Tensor // sorted by name; offsets count from the start of the file
	metadata map[string]string
	dims     []int // where the next shapes go
}

// parseHeader reads and validates the header of a file whose whole contents are data.
func parseHeader(data []byte) (*header, error) {
	if len(data) == 0 {
		return nil, errors.New("the file is empty")
	}
	n, err := headerLength(data)
	if err != nil {
		return nil, err
	}
	text := data[8 : 8+n]
	if !utf8.Valid(text) {
		return nil, errors.New("the header is not UTF-8 text")
	}
	h := &header{size: 8 + n}
	// An entry takes at least 49 bytes, so that a header that only repeats the word cannot inflate the estimate.
	h.tensors = make([]Tensor, 0, min(bytes.Count(text, []byte(`"data_offsets"`)), n/49+1))
	s := &scanner{data: text}
	if s.peek() != '{' {
		if what := sniff(data); what != "" {
			return nil, errors.New(what)
		}
	}
	if err := s.object(func(key []byte) error { return h.member(s, key) }); err != nil {
		return nil, fmt.Errorf("the header is not valid: %w", err)
	}
	if err := s.end(); err != nil {
		return nil, fmt.Errorf("the header is not valid: %w", err)
	}
	if err := h.layOut(len(data) - h.size); err != nil {
		return nil, err
	}
	return h, nil
}

// headerLength returns the length of the JSON text, which the file is known to hold.
func headerLength(data []byte) (int, error) {
	what := sniff(data)
	if len(data) < 8 {
		if what != "" {
			return 0, errors.New(what)
		}
		return 0, fmt.Errorf("the file has %d bytes, expected at least the 8 of a safetensors header length", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	// The length of an honest header may spell a foreign signature (640 is pickle's \x80\x02): believe the signature
	// only where the rest is no header either.
	switch {
	case n > maxHeader && what != "":
		return 0, errors.New(what)
	case n > maxHeader:
		return 0, fmt.Errorf("the header claims %d bytes, the limit is %d: not a safetensors file, or a damaged one", n, maxHeader)
	case n > uint64(len(data)-8) && what != "" && !bytes.HasPrefix(data[8:], []byte("{")):
		return 0, errors.New(what)
	case n > uint64(len(data)-8):
		return 0, fmt.Errorf("the header claims %d bytes but the file ends after %d: the file is truncated, fetch it again", n, len(data)-8)
	case n == 0:
		return 0, errors.New("the header is empty, expected a JSON object: an interrupted download? fetch it again")
	}
	return int(n), nil
}

// member reads one entry of the header's object.
func (h *header) member(s *scanner, key []byte) error {
	if string(key) == metadataKey {
		if h.metadata != nil {
			return fmt.Errorf("%s occurs twice", metadataKey)
		}
		h.metadata = map[string]string{}
		return h.readMetadata(s)
	}
	t := Tensor{Name: string(key)}
	if err := h.readTensor(s, &t); err != nil {
		return fmt.Errorf("tensor %s: %w", clip(key), err)
	}
	h.tensors = append(h.tensors, t)
	return nil
}

func (h *header) readMetadata(s *scanner) error {
	if s.peek() != '{' {
		return s.errorf("%s must be an object of strings, found %s", metadataKey, s.found())
	}
	return s.object(func(key []byte) error {
		name := string(key)
		if s.peek() != '"' {
			return s.errorf("%s: the value of %s must be a string, found %s", metadataKey, clip(name), s.found())
		}
		value, err := s.string()
		if err != nil {
			return err
		}
		if _, twice := h.metadata[name]; twice {
			return fmt.Errorf("%s: key %s occurs twice", metadataKey, clip(name))
		}
		if len(h.metadata) == maxMetadata {
			return fmt.Errorf("%s has more than %d entries", metadataKey, maxMetadata)
		}
		h.metadata[name] = string(value)
		return nil
	})
}

// readTensor reads the object that describes t and checks everything that needs no other tensor.
func (h *header) readTensor(s *scanner, t *Tensor) error {
	var start, stop int64
	var seen struct{ dtype, shape, offsets bool }
	err := s.object(func(key []byte) error {
		field := &seen.dtype
		switch string(key) {
		case "dtype":
		case "shape":
			field = &seen.shape
		case "data_offsets":
			field = &seen.offsets
		default: // unknown fields are ignored, as by the reference
			return s.skip(0)
		}
		if *field {
			return fmt.Errorf("%s occurs twice", key)
		}
		*field = true
		var err error
		switch field {
		case &seen.dtype:
			t.DType, err = readDType(s)
		case &seen.shape:
			t.Shape, err = h.readShape(s)
		default:
			start, stop, err = readOffsets(s)
		}
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case !seen.dtype:
		return errors.New("dtype is missing")
	case !seen.shape:
		return errors.New("shape is missing")
	case !seen.offsets:
		return errors.New("data_offsets is missing")
	}
	want, ok := byteCount(t.Shape, t.DType)
	switch {
	case !ok:
		return fmt.Errorf("shape %v of %s is too large", t.Shape, t.DType)
	case stop < start:
		return fmt.Errorf("data_offsets [%d, %d] are reversed", start, stop)
	case stop-start != want:
		return fmt.Errorf("shape %v of %s needs %d bytes, data_offsets [%d, %d] give %d", t.Shape, t.DType, want, start, stop, stop-start)
	case stop > math.MaxInt64-int64(h.size):
		return fmt.Errorf("data_offsets [%d, %d] are too large", start, stop)
	}
	t.off = start + int64(h.size)
	return nil
}

func readDType(s *scanner) (tensor.DType, error) {
	name, err := s.string()
	if err != nil {
		return tensor.Invalid, fmt.Errorf("dtype: %w", err)
	}
	d, ok := parseDType(name)
	if !ok {
		return tensor.Invalid, fmt.Errorf("unknown dtype %s, expected one of %s", clip(name), knownDTypes)
	}
	return d, nil
}

func (h *header) readShape(s *scanner) (tensor.Shape, error) {
	if s.peek() != '[' {
		return nil, s.errorf("shape must be an array, found %s", s.found())
	}
	var dims [maxAxes]int
	n := 0
	err := s.array(func() error {
		if n == maxAxes {
			return fmt.Errorf("shape has more than %d axes", maxAxes)
		}
		d, err := s.natural()
		if err != nil {
			return fmt.Errorf("shape[%d] %w", n, err)
		}
		if d > math.MaxInt {
			return fmt.Errorf("shape[%d] %w", n, errOverflow)
		}
		dims[n] = int(d)
		n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Shapes share blocks of memory: one allocation for some 500 tensors.
	if cap(h.dims)-len(h.dims) < n {
		h.dims = make([]int, 0, 1024)
	}
	first := len(h.dims)
	h.dims = append(h.dims, dims[:n]...)
	return tensor.Shape(h.dims[first:len(h.dims):len(h.dims)]), nil
}

func readOffsets(s *scanner) (start, stop int64, err error) {
	if s.peek() != '[' {
		return 0, 0, s.errorf("data_offsets must be an array, found %s", s.found())
	}
	var v [2]int64
	n := 0
	err = s.array(func() error {
		if n == 2 {
			return errors.New("data_offsets has more than 2 numbers")
		}
		if v[n], err = s.natural(); err != nil {
			return fmt.Errorf("data_offsets[%d] %w", n, err)
		}
		n++
		return nil
	})
	if err == nil && n != 2 {
		err = fmt.Errorf("data_offsets has %d numbers, expected 2", n)
	}
	return v[0], v[1], err
}

// byteCount returns the bytes of a tensor. As in the reference no partial product may overflow, even beside a zero.
func byteCount(shape tensor.Shape, d tensor.DType) (int64, bool) {
	n := int64(1)
	for _, dim := range shape {
		if dim != 0 && n > math.MaxInt64/int64(dim) {
			return 0, false
		}
		n *= int64(dim)
	}
	size := int64(d.Size())
	if size == 0 || n > math.MaxInt64/size {
		return 0, false
	}
	return n * size, true
}

// layOut checks that the tensors tile the data exactly, whatever their order in the header, and sorts them by name.
func (h *header) layOut(dataSize int) error {
	slices.SortFunc(h.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.end(), b.end()))
	})
	tiling := h.checkTiling(dataSize)
	slices.SortFunc(h.tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	// Two entries for one key usually break the tiling as well; the key is the better message.
	for i := 1; i < len(h.tensors); i++ {
		if h.tensors[i].Name == h.tensors[i-1].Name {
			return fmt.Errorf("tensor %s occurs twice in the header", clip(h.tensors[i].Name))
		}
	}
	return tiling
}

// checkTiling wants the tensors sorted by offset.
func (h *header) checkTiling(dataSize int) error {
	end := int64(h.size)
	for i := range h.tensors {
		t := &h.tensors[i]
		if t.off < end {
			return fmt.Errorf("tensor %s starts at data byte %d, inside tensor %s", clip(t.Name), t.off-int64(h.size), clip(h.tensors[i-1].Name))
		}
		if t.off > end {
			return fmt.Errorf("tensor %s starts at data byte %d, expected %d: no tensor owns the bytes between",
				clip(t.Name), t.off-int64(h.size), end-int64(h.size))
		}
		end = t.end()
	}
	size := int64(h.size) + int64(dataSize)
	if end > size {
		return fmt.Errorf("tensor %s ends at byte %d but the file has %d: the file is truncated, fetch it again",
			clip(h.tensors[len(h.tensors)-1].Name), end, size)
	}
	if end < size {
		return fmt.Errorf("the tensors end at byte %d but the file has %d: trailing bytes", end, size)
	}
	return nil
}
