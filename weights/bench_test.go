package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// manyTensors is a file of n small tensors with names as in a transformer.
func manyTensors(b *testing.B, n int) []byte {
	b.Helper()
	arrays := make(map[string]*tensor.Array, n)
	one := counting(tensor.BF16, 0, 2, 2)
	for i := range n {
		arrays[fmt.Sprintf("transformer_blocks.%d.attn.to_%d.weight", i/10, i%10)] = one
	}
	var buf bytes.Buffer
	if err := Write(&buf, arrays, map[string]string{"format": "pt"}); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

// BenchmarkOpenFile maps, validates and closes a file. MB/s count the header.
func BenchmarkOpenFile(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := manyTensors(b, n)
			path := join(b.TempDir(), "f.safetensors")
			if err := os.WriteFile(path, data, 0o666); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(binary.LittleEndian.Uint64(data)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := OpenFile(path)
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncodingJSON is the peer of BenchmarkOpenFile: encoding/json over the same header, without any validation.
func BenchmarkEncodingJSON(b *testing.B) {
	type info struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := manyTensors(b, n)
			size := binary.LittleEndian.Uint64(data)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				var m map[string]info
				if err := json.Unmarshal(data[8:8+size], &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTensor(b *testing.B) {
	f, err := Parse("x", manyTensors(b, 100_000))
	if err != nil {
		b.Fatal(err)
	}
	names := f.Names()
	i := 0
	for b.Loop() {
		if !f.Has(names[i%len(names)]) {
			b.Fatal("lost")
		}
		i += 7919
	}
}

// BenchmarkSlice copies half of a (3072, 3072) bf16 projection out of a mapped file, as rows and as columns.
func BenchmarkSlice(b *testing.B) {
	path := join(b.TempDir(), "f.safetensors")
	if err := Save(path, map[string]*tensor.Array{"w": tensor.New(tensor.BF16, 3072, 3072)}, nil); err != nil {
		b.Fatal(err)
	}
	f := open(b, path)
	x, err := f.Tensor("w")
	if err != nil {
		b.Fatal(err)
	}
	for axis, name := range []string{"rows", "columns"} {
		b.Run(name, func(b *testing.B) {
			v, err := x.Slice(axis, 1536, 3072)
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, v.NumBytes())
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				if err := v.CopyTo(dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
