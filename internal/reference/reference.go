// Package reference reads the tensors of reference runs, for tests.
package reference

import (
	"testing"

	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// Tensors returns the arrays of a safetensors file; they stay valid until the end of the test.
func Tensors(t testing.TB, path string) map[string]*tensor.Array {
	t.Helper()
	f, err := weights.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	out := make(map[string]*tensor.Array, f.Len())
	for x := range f.All() {
		out[x.Name] = x.Array()
	}
	return out
}
