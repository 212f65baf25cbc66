package weights

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

// The expected bytes are the reference writer's layout, by hand: wide types first, then names; the header padded to 8.
func TestWriteLayout(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, map[string]*tensor.Array{
		"b.w":    {DType: tensor.F32, Shape: tensor.Shape{1}, Data: []byte{1, 2, 3, 4}},
		"a":      {DType: tensor.BF16, Shape: tensor.Shape{2, 1}, Data: []byte{5, 6, 7, 8}},
		"B":      {DType: tensor.F32, Shape: tensor.Shape{}, Data: []byte{9, 10, 11, 12}},
		"none\n": {DType: tensor.U8, Shape: tensor.Shape{0}, Data: nil},
	}, map[string]string{"k": "é\"\\\x01</x>", "format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"format":"pt","k":"é\"\\\u0001</x>"},` +
		`"B":{"dtype":"F32","shape":[],"data_offsets":[0,4]},` +
		`"b.w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},` +
		`"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]},` +
		`"none\n":{"dtype":"U8","shape":[0],"data_offsets":[12,12]}}`
	header += strings.Repeat(" ", 7-(len(header)+7)%8)
	want := build(header, 0)
	want = append(want, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8)
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("written\n%q, expected\n%q", b.Bytes(), want)
	}
	if _, err := Parse("x", b.Bytes()); err != nil {
		t.Error(err)
	}
}

// All types in one file, as the reference orders them.
func TestWriteOrdersTypes(t *testing.T) {
	arrays := map[string]*tensor.Array{}
	for _, d := range dtypeNames {
		arrays[d.name] = counting(d.dtype, 0, 3)
	}
	var b bytes.Buffer
	if err := Write(&b, arrays, nil); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("x", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	order := slices.Collect(f.All())
	slices.SortFunc(order, func(a, b *Tensor) int { return int(a.off - b.off) })
	var names []string
	for _, x := range order {
		names = append(names, x.Name)
		if x.off%int64(x.DType.Size()) != 0 && x.DType.Size() != 4 && x.DType.Size() != 2 { // 3 elements of 8, then 3 of 4 …
			t.Errorf("%s is misaligned", x)
		}
		if a := arrays[x.Name]; x.DType != a.DType || !bytes.Equal(x.Bytes(), a.Data) {
			t.Errorf("%s has other data", x)
		}
	}
	if got := strings.Join(names, " "); got != "I64 F64 F32 I32 BF16 F16 I16 F8_E4M3 F8_E5M2 I8 U8 BOOL" {
		t.Errorf("order %s", got)
	}
}

func TestWriteErrors(t *testing.T) {
	ok := counting(tensor.U8, 0, 1)
	for _, c := range []struct {
		name     string
		array    *tensor.Array
		metadata map[string]string
		want     string
	}{
		{"x", nil, nil, `tensor "x" is nil`},
		{"__metadata__", ok, nil, "__metadata__ is no name"},
		{"\xff", ok, nil, "not UTF-8"},
		{"x", &tensor.Array{Shape: tensor.Shape{1}, Data: []byte{1}}, nil, `tensor "x": invalid cannot be stored`},
		{"x", &tensor.Array{DType: tensor.F32, Shape: tensor.Shape{2}, Data: make([]byte, 4)}, nil, `tensor "x"`},
		{"x", &tensor.Array{DType: tensor.F32, Shape: tensor.Shape{-1}}, nil, "negative"},
		{"x", &tensor.Array{DType: tensor.U8, Shape: slices.Repeat(tensor.Shape{1}, 33), Data: []byte{1}}, nil, "more than 32 axes"},
		{"x", ok, map[string]string{"k": "\xff"}, `"k" or its value is not UTF-8`},
		{"x", ok, map[string]string{"k": strings.Repeat("x", maxHeader)}, "limit is 100000000"},
	} {
		var b bytes.Buffer
		err := Write(&b, map[string]*tensor.Array{c.name: c.array}, c.metadata)
		wantError(t, err, c.want)
		if b.Len() > 0 {
			t.Errorf("%d bytes written before the error %v", b.Len(), err)
		}
	}
}

// A failed Save leaves the old file as it is and no other behind.
func TestSaveIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := join(dir, "a.safetensors")
	save(t, path, "x")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, Save(path, map[string]*tensor.Array{"x": nil}, nil), "write "+path, `tensor "x" is nil`)
	now, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(old, now) {
		t.Errorf("the old file changed: %v", err)
	}
	save(t, path, "y")
	if f := open(t, path); !f.Has("y") || f.Has("x") {
		t.Errorf("the file has %v", f.Names())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	err = Save(join(dir, "none/a.safetensors"), nil, nil)
	wantError(t, err, "write ", "none")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

// A file of the reference implementation, read and written again, is the same byte for byte.
func TestReferenceFileRoundTrip(t *testing.T) {
	roundTrip(t, "testdata/reference.safetensors")
	f := open(t, "testdata/reference.safetensors")
	if d := f.DTypes(); len(d) != 5 || f.Metadata() == nil || f.Len() < 5 {
		t.Errorf("types %v, metadata %v", d, f.Metadata())
	}
	x, err := f.Tensor("seq0.call0")
	if err != nil {
		t.Fatal(err)
	}
	if v := x.Array().Float32s(); len(v) != 3 || v[0] != 1.5409960746765137 { // torch.manual_seed(0); torch.randn(3)
		t.Errorf("seq0.call0 is %v", v)
	}
}

func TestGoldenFilesRoundTrip(t *testing.T) {
	count := 0
	err := filepath.WalkDir(shareddata.Dir(t, "golden"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".safetensors" {
			count++
			roundTrip(t, path)
		}
		return err
	})
	if err != nil || count < 30 {
		t.Errorf("%d files found, %v", count, err)
	}
}

func roundTrip(t *testing.T, path string) {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	arrays := map[string]*tensor.Array{}
	for x := range f.All() {
		arrays[x.Name] = x.Array()
	}
	var b bytes.Buffer
	if err := Write(&b, arrays, f.Metadata()); err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if len(f.Metadata()) <= 1 {
		if !bytes.Equal(b.Bytes(), f.data) {
			t.Errorf("%s: not the same bytes when written again", path)
		}
		return
	}
	// The reference writes several metadata keys in the random order of a hash map.
	g, err := Parse(path, b.Bytes())
	if err != nil || !maps.Equal(f.Metadata(), g.Metadata()) || !slices.Equal(f.Names(), g.Names()) || b.Len() != len(f.data) {
		t.Errorf("%s: not the same when written again: %v", path, err)
	}
}
