package weights

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// Whatever the bytes: no panic; and a file that opens is exactly tiled by its tensors, is JSON to another parser, and is the
// same when written and read again.
func FuzzOpen(f *testing.F) {
	for _, c := range damaged {
		if len(c.data) < 10_000 {
			f.Add(c.data)
		}
	}
	f.Add(build(`{"__metadata__":{"format":"pt"},`+entry("a", "F32", "2,3", "0,24")+`,`+entry("b", "BF16", "", "24,26")+`}  `, 26))
	f.Add(build(`{`+entry(`\u0061\ud83d\ude00`, "I64", "0", "0,0")+`}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("x", data)
		if err != nil {
			wantError(t, err, "x: ")
			return
		}
		owned := make([]bool, len(data))
		arrays := map[string]*tensor.Array{}
		total := 0
		for x := range file.All() {
			a := x.Array()
			if err := a.Check(); err != nil {
				t.Fatal(err)
			}
			for i := range a.Data {
				if at := int(x.off) + i; owned[at] {
					t.Fatalf("%s shares byte %d", x, at)
				} else {
					owned[at] = true
				}
			}
			total += len(a.Data)
			arrays[x.Name] = a
			for axis, dim := range x.Shape {
				if v, err := x.Slice(axis, dim/2, dim); err != nil || v.CopyTo(make([]byte, v.NumBytes())) != nil {
					t.Fatal(err)
				}
			}
		}
		size := int(data[0]) | int(data[1])<<8 | int(data[2])<<16 | int(data[3])<<24
		if 8+size+total != len(data) || len(arrays) != file.Len() {
			t.Fatalf("%d bytes of %d tensors in a file of %d with a header of %d", total, file.Len(), len(data), size)
		}
		var header map[string]json.RawMessage
		if err := json.Unmarshal(data[8:8+size], &header); err != nil {
			t.Fatal(err)
		}
		delete(header, metadataKey)
		if got := slices.Sorted(maps.Keys(header)); !slices.Equal(got, file.Names()) {
			t.Fatalf("names %q, encoding/json has %q", file.Names(), got)
		}
		var again bytes.Buffer
		if err := Write(&again, arrays, file.Metadata()); err != nil {
			t.Fatal(err)
		}
		second, err := Parse("y", again.Bytes())
		if err != nil || !slices.Equal(second.Names(), file.Names()) || !maps.Equal(second.Metadata(), file.Metadata()) {
			t.Fatalf("written again: %v", err)
		}
		for x := range second.All() {
			if a := arrays[x.Name]; x.DType != a.DType || !x.Shape.Equal(a.Shape) || !bytes.Equal(x.Bytes(), a.Data) {
				t.Fatalf("%s differs when written again", x)
			}
		}
	})
}

// Whatever the bytes: no panic, and an index that is read names plain files and agrees with another parser.
func FuzzIndex(f *testing.F) {
	for _, s := range []string{
		index("a→x.safetensors b→y.safetensors"), `{}`, `{"weight_map":{}}`, `{"weight_map":{"a":"../x"}}`, `{"weight_map":{"a":1}}`,
		`{"weight_map":{"a":"x","a":"y"}}`, `{"metadata":{"total_size":1e9},"weight_map":{"\u00e9":"x"}}`, `[`, `{"weight_map":{"a":"x"}} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseIndex(data)
		if err != nil {
			wantError(t, err)
			return
		}
		var want map[string]json.RawMessage // with exact names: encoding/json ignores the case of a struct's
		var weightMap map[string]string
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(want["weight_map"], &weightMap); err != nil || !maps.Equal(m, weightMap) {
			t.Fatalf("%q, encoding/json has %q, %v", m, weightMap, err)
		}
		for _, file := range m {
			if file == "" || file == "." || file == ".." || bytes.ContainsAny([]byte(file), "/\\") {
				t.Fatalf("file %q", file)
			}
		}
	})
}
