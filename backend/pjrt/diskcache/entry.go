package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Entry is a compiled program with what is known of it.
type Entry struct {
	Key            string          `json:"key"`
	Name           string          `json:"name"` // for people
	Platform       string          `json:"platform"`
	Version        string          `json:"version"`
	Topology       string          `json:"topology"`
	Created        time.Time       `json:"created"`
	CompileSeconds float64         `json:"compile_seconds"`
	Meta           json.RawMessage `json:"meta,omitempty"` // the compiler's figures, or whatever else its user keeps

	Data []byte `json:"-"` // the plugin's serialised program

	Size int64     `json:"size,omitempty"` // of the file; set by List
	Used time.Time `json:"used,omitzero"`  // last; set by List
}

// An entry is a fixed part, a header in JSON and the plugin's bytes:
//
//	0   "GESSOPRG"
//	8   version, 4 bytes little endian
//	12  length of the header, 4 bytes
//	16  length of the data, 8 bytes
//	24  SHA-256 of header and data
//	56  header, data
const (
	magic         = "GESSOPRG"
	formatVersion = 1
	fixedSize     = 56
	maxHeader     = 1 << 20
)

var errDamaged = errors.New("damaged entry")

func (e *Entry) bytes() ([]byte, error) {
	kept := *e
	kept.Size, kept.Used = 0, time.Time{}
	header, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	if len(header) > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes", len(header))
	}
	b := make([]byte, fixedSize, fixedSize+len(header)+len(e.Data))
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(header)))
	binary.LittleEndian.PutUint64(b[16:], uint64(len(e.Data)))
	b = append(append(b, header...), e.Data...)
	sum := sha256.Sum256(b[fixedSize:])
	copy(b[24:], sum[:])
	return b, nil
}

// parse reads an entry and checks all of it.
func parse(b []byte) (*Entry, error) {
	e, n, err := parseHeader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b[fixedSize:]); !bytes.Equal(sum[:], b[24:fixedSize]) {
		return nil, errDamaged
	}
	e.Data = b[n:]
	return e, nil
}

// parseHeader reads the front of an entry whose file has the given size, and returns where its data begin. The checksum is
// not looked at.
func parseHeader(r io.Reader, size int64) (*Entry, int64, error) {
	var fixed [fixedSize]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return nil, 0, errDamaged
	}
	if string(fixed[:8]) != magic {
		return nil, 0, errDamaged
	}
	if v := binary.LittleEndian.Uint32(fixed[8:]); v != formatVersion {
		return nil, 0, fmt.Errorf("an entry of format %d, expected %d", v, formatVersion)
	}
	header, data := int64(binary.LittleEndian.Uint32(fixed[12:])), binary.LittleEndian.Uint64(fixed[16:])
	if header > maxHeader || size < fixedSize+header || data != uint64(size-fixedSize-header) {
		return nil, 0, errDamaged
	}
	b := make([]byte, header)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, 0, errDamaged
	}
	e := &Entry{}
	if err := json.Unmarshal(b, e); err != nil {
		return nil, 0, errDamaged
	}
	return e, fixedSize + header, nil
}
