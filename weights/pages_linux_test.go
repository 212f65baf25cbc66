package weights

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// resident returns the bytes of the mapping of path that are in the memory of this process.
func resident(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	kb, inside := 0, false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		var n int
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err == nil && inside {
			kb += n
		}
		if first, _, _ := strings.Cut(line, " "); !strings.HasSuffix(first, ":") { // ADDRESS-ADDRESS … PATH
			inside = strings.HasSuffix(line, path)
		}
	}
	return kb << 10
}

// Opening maps a file and holds none of it; reading brings pages in, Release gives back those of its tensor or part.
func TestReleaseGivesPagesBack(t *testing.T) {
	path := join(t.TempDir(), "a.safetensors")
	const half = 4 << 20
	a, b := tensor.New(tensor.U8, half), tensor.New(tensor.U8, 4, half/4)
	if err := Save(path, map[string]*tensor.Array{"a": a, "b": b}, nil); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	const slack = 1 << 20 // the kernel maps neighbouring pages along
	if n := resident(t, path); n != 0 {
		t.Errorf("%d bytes resident after opening", n)
	}
	x, _ := f.Tensor("a")
	y, _ := f.Tensor("b")
	buffer := make([]byte, half)
	for _, z := range []*Tensor{x, y} {
		if err := z.CopyTo(buffer); err != nil {
			t.Fatal(err)
		}
	}
	if n := resident(t, path); n < 2*half {
		t.Errorf("%d bytes resident after reading all %d", n, 2*half)
	}
	x.Release()
	if n := resident(t, path); n > half+slack || n < half-slack {
		t.Errorf("%d bytes resident after releasing one of two tensors of %d", n, half)
	}
	rows, err := y.Slice(0, 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	rows.Release()
	if n := resident(t, path); n > half/4+slack {
		t.Errorf("%d bytes resident after releasing three of the last four rows", n)
	}
	f.Release()
	if n := resident(t, path); n != 0 {
		t.Errorf("%d bytes resident after releasing the file", n)
	}
}
