package imageio

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// readSafetensors returns the arrays of a safetensors file.
func readSafetensors(t testing.TB, path string) map[string]*tensor.Array {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 8 + int(binary.LittleEndian.Uint64(b))
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:n], &header); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out := map[string]*tensor.Array{}
	for name, raw := range header {
		if name == "__metadata__" {
			continue
		}
		var h struct {
			DType   string
			Shape   []int
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &h); err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
		d, err := tensor.ParseDType(h.DType)
		if err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
		out[name] = &tensor.Array{DType: d, Shape: h.Shape, Data: b[n+h.Offsets[0] : n+h.Offsets[1]]}
	}
	return out
}
