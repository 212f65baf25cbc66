package xet

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
)

func mustHash(t testing.TB, s string) Hash {
	t.Helper()
	h, err := ParseHash(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Values of the reference implementation.
func TestHashChunkMatchesReference(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, c := range []struct{ data, want string }{
		{"", "e0f2cf784e7e5f10c34f84af150e9a5ff9664216debad915364d741049870f67"},
		{"hello world", "4e39378b9d359f118190557a1f44130219a54e5fcfa07bd96cf50b466fe651b1"},
		{string(all), "9f57228ea7fbc2959b01cdcede0f3f9688f0cfcc442352f3b020d4a9dfe20222"},
	} {
		if got := HashChunk([]byte(c.data)).String(); got != c.want {
			t.Errorf("HashChunk(%.20q) = %s, want %s", c.data, got, c.want)
		}
	}
}

func TestSumOfSmallFile(t *testing.T) {
	h, n, err := Sum(strings.NewReader("hello world"))
	if err != nil || n != 11 || h.String() != "f15edd43b7e85cfd25e2758ffe13b99fdd09dfa817e8d9f6548722a7a126db7f" {
		t.Errorf("Sum = %s, %d, %v", h, n, err)
	}
	if h, n, err := Sum(strings.NewReader("")); err != nil || n != 0 || h != (Hash{}) {
		t.Errorf("Sum of nothing = %s, %d, %v", h, n, err)
	}
}

func TestHashStringSwapsWords(t *testing.T) {
	var h Hash
	for i := range h {
		h[i] = byte(i)
	}
	const want = "07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918"
	if h.String() != want || mustHash(t, want) != h {
		t.Errorf("String = %s, want %s", h, want)
	}
	for _, bad := range []string{"", want[:63], want + "0", strings.ToUpper(want), "g" + want[1:], "+" + want[1:]} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("ParseHash(%q) succeeded", bad)
		}
	}
}

func TestTreeMatchesReference(t *testing.T) {
	var vectors []struct {
		Chunks   [][2]any    `json:"chunks"`
		XorbHash string      `json:"xorb_hash"`
		Salted   [][2]string `json:"file_hash_by_salt"`
	}
	readJSON(t, "merkle_vectors.json", &vectors)
	for i, v := range vectors {
		var trees []Tree
		for range 1 + len(v.Salted) {
			var tree Tree
			for _, c := range v.Chunks {
				tree.Add(Leaf{mustHash(t, c[0].(string)), uint64(c[1].(float64))})
			}
			trees = append(trees, tree)
		}
		if got := trees[0].Root().String(); got != v.XorbHash {
			t.Errorf("tree %d (%d chunks): root %s, want %s", i, len(v.Chunks), got, v.XorbHash)
		}
		for j, s := range v.Salted {
			salt := mustHash(t, s[0])
			if got := trees[1+j].SaltedFileHash(salt[:]).String(); got != s[1] {
				t.Errorf("tree %d salt %s: %s, want %s", i, s[0][:8], got, s[1])
			}
		}
	}
	if len(vectors) == 0 {
		t.Error("no vectors")
	}
}

// batchRoot is the published definition, written as it is told: group a whole level, then the next.
func batchRoot(nodes []Leaf) Hash {
	if len(nodes) == 0 {
		return Hash{}
	}
	for len(nodes) > 1 {
		var next []Leaf
		for rest := nodes; len(rest) > 0; {
			n := min(maxGroup, len(rest))
			for i := 2; i < n; i++ {
				if rest[i].Hash[24]%4 == 0 {
					n = i + 1
					break
				}
			}
			next = append(next, merge(rest[:n]))
			rest = rest[n:]
		}
		nodes = next
	}
	return nodes[0].Hash
}

func TestTreeEqualsBatchDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		var tree Tree
		var leaves []Leaf
		for range n * n / 20 {
			l := Leaf{Size: uint64(rng.IntN(1 << 17))}
			for i := range l.Hash {
				l.Hash[i] = byte(rng.Uint32())
			}
			leaves = append(leaves, l)
			tree.Add(l)
		}
		if got, want := tree.Root(), batchRoot(leaves); got != want {
			t.Fatalf("%d leaves: %s, want %s", len(leaves), got, want)
		}
	}
}

func TestCutMatchesReference(t *testing.T) {
	var v struct {
		Pattern    []int            `json:"pattern"`
		Length     int              `json:"length"`
		Boundaries map[string][]int `json:"boundaries_by_padding"`
		Constant   []int            `json:"const_59_len_1000000"`
		Random     struct {
			Length     int    `json:"length"`
			Probe      [3]int `json:"data_0_127_111111"`
			Boundaries []int  `json:"boundaries"`
		} `json:"splitmix64"`
	}
	readJSON(t, "chunk_boundary_vectors.json", &v)
	pattern := make([]byte, len(v.Pattern))
	for i, b := range v.Pattern {
		pattern[i] = byte(b)
	}
	for padding := range len(v.Boundaries) {
		base := append(bytes.Clone(pattern), make([]byte, padding)...)
		var data []byte
		for len(data) < v.Length {
			data = append(data, base[:min(len(base), v.Length-len(data))]...)
		}
		want := v.Boundaries[strconv.Itoa(padding)]
		if got := boundaries(t, data); !slices.Equal(got, want) {
			t.Errorf("padding %d: %v, want %v", padding, got, want)
		}
	}
	if got := boundaries(t, bytes.Repeat([]byte{59}, 1_000_000)); !slices.Equal(got, v.Constant) {
		t.Errorf("constant: %v, want %v", got, v.Constant)
	}
	random := splitmix64(0, v.Random.Length)
	if got := [3]int{int(random[0]), int(random[127]), int(random[111111])}; got != v.Random.Probe {
		t.Fatalf("random bytes %v, want %v", got, v.Random.Probe)
	}
	if got := boundaries(t, random); !slices.Equal(got, v.Random.Boundaries) {
		t.Errorf("random: %v, want %v", got, v.Random.Boundaries)
	}
}

// splitmix64 returns n bytes of the generator of Steele, Lea and Flood (2014), little endian.
func splitmix64(seed uint64, n int) []byte {
	var out []byte
	for len(out) < n {
		seed += 0x9E3779B97F4A7C15
		z := (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		out = binary.LittleEndian.AppendUint64(out, z^z>>31)
	}
	return out[:n]
}

func boundaries(t *testing.T, data []byte) (ends []int) {
	t.Helper()
	end := 0
	err := Chunks(bytes.NewReader(data), func(chunk []byte) error {
		end += len(chunk)
		ends = append(ends, end)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// Files that the official uploader hashed.
func TestSumMatchesUploader(t *testing.T) {
	dir := shareddata.Dir(t, "data", "xet")
	var files map[string]struct {
		Hash string `json:"xet_hash"`
		Size int64  `json:"size"`
	}
	readJSON(t, "files.json", &files)
	a := read(t, filepath.Join(shareddata.Dir(t, "data", "t5"), "spiece.model"))
	b := bytes.Clone(a[:300000])
	for i := range 1000 {
		b = append(b, byte(i*37+11))
	}
	b = append(append(b, a[300000:]...), a[100000:420000]...)
	content := map[string][]byte{
		"a.bin": a, "b.bin": b, "c.safetensors": read(t, filepath.Join(dir, "c.safetensors")),
		"d_small.txt": []byte("hello world"),
	}
	for name, f := range files {
		h, n, err := Sum(bytes.NewReader(content[name]))
		if err != nil || n != f.Size || h.String() != f.Hash {
			t.Errorf("%s: %s, %d bytes, %v; want %s, %d bytes", name, h, n, err, f.Hash, f.Size)
		}
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	if err := json.Unmarshal(read(t, filepath.Join(shareddata.Dir(t, "data", "xet"), name)), v); err != nil {
		t.Fatal(err)
	}
}

func FuzzCut(f *testing.F) {
	f.Add([]byte("hello"), uint16(3))
	f.Add(bytes.Repeat([]byte{59}, 300), uint16(1000))
	f.Fuzz(func(t *testing.T, seed []byte, times uint16) {
		data := bytes.Repeat(seed, int(times)%512)
		if len(data) == 0 {
			return
		}
		// The skipping search must agree with the definition, which looks at every byte.
		var want []int
		var h uint64
		n := 0
		for i, b := range data {
			h = h<<1 + gear[b]
			if n++; n >= MinChunk && (h&chunkMask == 0 || n == MaxChunk) {
				want = append(want, i+1)
				h, n = 0, 0
			}
		}
		if n > 0 {
			want = append(want, len(data))
		}
		if got := boundaries(t, data); !slices.Equal(got, want) {
			t.Errorf("boundaries %v, want %v", got, want)
		}
	})
}
