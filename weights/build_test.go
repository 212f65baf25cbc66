package weights

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// build returns a safetensors file with this header and this many data bytes.
func build(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

// entry is one tensor of a header.
func entry(name, dtype, shape, offsets string) string {
	return `"` + name + `":{"dtype":"` + dtype + `","shape":[` + shape + `],"data_offsets":[` + offsets + `]}`
}

// counting returns an array whose elements, as bytes of its type's size, count up from seed.
func counting(d tensor.DType, seed int, shape ...int) *tensor.Array {
	a := tensor.New(d, shape...)
	for i := range a.Data {
		a.Data[i] = byte(seed + i)
		if d == tensor.Bool {
			a.Data[i] &= 1
		}
	}
	return a
}

// save writes a file of F32 tensors of shape (2, 3) with the given names.
func save(t testing.TB, path string, names ...string) {
	t.Helper()
	m := map[string]*tensor.Array{}
	for _, name := range names {
		m[name] = counting(tensor.F32, len(name), 2, 3)
	}
	if err := Save(path, m, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func join(dir, name string) string { return filepath.Join(dir, name) }

// wantError checks that err is one line with all the parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, expected one with %q", parts)
	}
	text := err.Error()
	if strings.Contains(text, "\n") || len(text) > 1000 {
		t.Errorf("the error is not one short line: %q", text)
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("error %q, expected it to contain %q", text, p)
		}
	}
}
