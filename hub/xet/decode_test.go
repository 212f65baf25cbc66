package xet

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"github.com/gesso-go/gesso/internal/shareddata"
)

// The xorb that the official uploader made: its name is its hash, and all schemes are in it.
func TestReadXorbOfUploader(t *testing.T) {
	const name = "673f9d18e8bd04ae912dda73037f080a100c4169829ea793990ddb8cd88ef091"
	data := read(t, filepath.Join(shareddata.Dir(t, "data", "xet"), name+".xorb"))
	hash, leaves, err := ReadXorb(data)
	if err != nil || hash.String() != name || len(leaves) != 37 {
		t.Errorf("hash %s, %d chunks, %v", hash, len(leaves), err)
	}
	schemes := map[Scheme]int{}
	for at := 0; at < len(data); {
		h, err := parseHeader(data[at:])
		if err != nil {
			t.Fatal(err)
		}
		schemes[h.scheme]++
		at += chunkHeader + h.stored
	}
	if schemes[Stored] != 1 || schemes[LZ4] != 30 || schemes[GroupedLZ4] != 6 {
		t.Errorf("schemes %v", schemes)
	}
}

// sample returns bytes that look like floats, so that each scheme has something to shrink.
func sample(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte(rng.Uint32() & 0x0F); i%4 == 3 {
			b[i] = 0x3c
		}
	}
	return b
}

func TestChunkRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 31, 32, 33, 127, 4096, 65535, 65537, MaxChunk - 1, MaxChunk} {
		for scheme := Stored; scheme <= GroupedLZ4; scheme++ {
			chunk := sample(n)
			data, err := AppendChunk(nil, chunk, scheme)
			if err != nil {
				t.Fatal(err)
			}
			for _, end := range []string{"", footerTag + "\x01 and so on"} {
				var r ChunkReader
				r.Reset(strings.NewReader(string(data) + end))
				got, err := r.Next()
				if err != nil || !bytes.Equal(got, chunk) {
					t.Errorf("%d bytes, scheme %d: %d bytes, %v", n, scheme, len(got), err)
				}
				if _, err := r.Next(); err != io.EOF {
					t.Errorf("%d bytes, scheme %d: after the last chunk: %v", n, scheme, err)
				}
			}
		}
	}
}

// Every frame that is legal is read, not just the form that the uploader writes.
func TestAnyLegalFrame(t *testing.T) {
	want := sample(100_000)
	for _, options := range [][]lz4.Option{
		{}, {lz4.ChecksumOption(true)}, {lz4.BlockChecksumOption(true)}, {lz4.BlockSizeOption(lz4.Block64Kb)}, {lz4.BlockSizeOption(lz4.Block4Mb)},
		{lz4.SizeOption(uint64(len(want)))}, {lz4.CompressionLevelOption(lz4.Level9)},
	} {
		var frame bytes.Buffer
		w := lz4.NewWriter(&frame)
		if err := w.Apply(options...); err != nil {
			t.Fatal(err)
		}
		w.Write(want)
		w.Close()
		got := make([]byte, len(want))
		if err := decodeFrame(got, frame.Bytes()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %v", options, err)
		}
		for _, n := range []int{len(want) - 1, len(want) + 1} {
			if err := decodeFrame(make([]byte, n), frame.Bytes()); err == nil {
				t.Errorf("%v: %d bytes taken for %d", options, len(want), n)
			}
		}
	}
}

func TestBadChunks(t *testing.T) {
	good, err := AppendChunk(nil, sample(5000), GroupedLZ4)
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int, b byte) []byte { c := bytes.Clone(good); c[at] = b; return c }
	for name, data := range map[string][]byte{
		"version": change(0, 1), "scheme": change(4, 3), "auto scheme": change(4, 99), "too large": change(7, 0x7f), "stored too large": change(3, 0xff),
		"no frame": change(8, 0), "cut in the header": good[:5], "cut in the payload": good[:len(good)-1], "other size": change(5, good[5]+1),
		"stored of another size": {0, 4, 0, 0, 0, 5, 0, 0, 1, 2, 3, 4, 5},
	} {
		if _, _, err := ReadXorb(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzGroup(f *testing.F) {
	for _, n := range []int{0, 1, 2, 3, 10, 31, 32, 33, 67} {
		f.Add(sample(n))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		grouped, back := make([]byte, len(data)), make([]byte, len(data))
		group(grouped, data)
		at := 0
		for i := range 4 { // the definition
			for k := i; k < len(data); k += 4 {
				if grouped[at] != data[k] {
					t.Fatalf("byte %d of group %d", k, i)
				}
				at++
			}
		}
		ungroup(back, grouped)
		if !bytes.Equal(back, data) {
			t.Errorf("%x became %x", data, back)
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(encodeFrame(sample(100)), uint32(100))
	f.Add(encodeFrame([]byte("0123456789")), uint32(10))
	f.Add([]byte{4, 0x22, 0x4d, 0x18, 0x60, 0x50, 0xfb, 0, 0, 0, 0}, uint32(0))
	f.Add([]byte{4, 0x22, 0x4d, 0x18, 0x60, 0x50, 0xfb, 0xff, 0xff, 0xff, 0x7f}, uint32(9))
	f.Fuzz(func(t *testing.T, data []byte, size uint32) {
		size %= MaxChunk + 1
		fast, slow := make([]byte, size), make([]byte, size)
		if decodeFrame(fast, data) == nil && decodeAnyFrame(slow, data) == nil && !bytes.Equal(fast, slow) {
			t.Error("two decoders, two results")
		}
	})
}

func FuzzReadXorb(f *testing.F) {
	var data []byte
	for scheme := Stored; scheme <= GroupedLZ4; scheme++ {
		var err error
		if data, err = AppendChunk(data, sample(300), scheme); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(data))
	}
	f.Add(append(bytes.Clone(data), footerTag+"\x01"...))
	f.Add(data[:len(data)-2])
	f.Fuzz(func(t *testing.T, data []byte) {
		hash, leaves, err := ReadXorb(data)
		if err != nil {
			return
		}
		for _, l := range leaves {
			if l.Size > MaxChunk {
				t.Errorf("chunk of %d bytes", l.Size)
			}
		}
		if (hash == Hash{}) != (len(leaves) == 0) {
			t.Errorf("hash %s of %d chunks", hash, len(leaves))
		}
	})
}

const (
	v1Answer = `{"offset_into_first_range":5,"terms":[{"hash":"H","unpacked_length":100,"range":{"start":1,"end":3}},{"hash":"H","unpacked_length":50,"range":{"start":2,"end":3}}],
"fetch_info":{"H":[{"range":{"start":1,"end":4},"url":"http://x/y","url_range":{"start":10,"end":99}}]}}`
	v2Answer = `{"offset_into_first_range":5,"terms":[{"hash":"H","unpacked_length":100,"range":{"start":1,"end":3}},{"hash":"H","unpacked_length":50,"range":{"start":2,"end":3}}],
"xorbs":{"H":[{"url":"http://x/y","ranges":[{"chunks":{"start":1,"end":4},"bytes":{"start":10,"end":99}}]}]}}`
)

func answer(s string) []byte {
	return []byte(strings.ReplaceAll(s, `"H"`, `"`+strings.Repeat("ab", 32)+`"`))
}

func TestParseReconstruction(t *testing.T) {
	for _, s := range []string{v1Answer, v2Answer} {
		r, err := ParseReconstruction(answer(s))
		if err != nil || len(r.Terms) != 2 || len(r.Parts) != 1 || r.Size() != 145 || r.Parts[0].Bytes != (Range{10, 100}) || r.Parts[0].URL != "http://x/y" {
			t.Errorf("%+v, %v", r, err)
		}
		for _, c := range [][2]string{
			{`"start":1,"end":3`, `"start":3,"end":3`},    // empty
			{`"start":1,"end":3`, `"start":0,"end":3`},    // outside of the part
			{`"start":1,"end":3`, `"start":1,"end":9`},    // beyond it
			{`"start":1,"end":3`, `"start":-1,"end":3`},   //
			{`"start":10,"end":99`, `"start":10,"end":9`}, // no byte
			{`"start":10,"end":99`, `"start":10`},
			{`"start":10,"end":99`, `"start":10,"end":9999999999`},
			{`"unpacked_length":100`, `"unpacked_length":-1`},
			{`"unpacked_length":100`, `"unpacked_length":4294967296`}, // more than its chunks can hold
			{`"offset_into_first_range":5`, `"offset_into_first_range":101`},
			{`"offset_into_first_range":5`, `"offset_into_first_range":-1`},
			{`"hash":"H","unpacked_length":50`, `"hash":"x","unpacked_length":50`},
		} {
			bad := strings.Replace(s, c[0], c[1], 1)
			if bad == s {
				t.Fatalf("%s isn't in the answer", c[0])
			}
			if _, err := ParseReconstruction(answer(bad)); err == nil {
				t.Errorf("%s was accepted", c[1])
			}
		}
	}
}

func FuzzParseReconstruction(f *testing.F) {
	f.Add(answer(v1Answer))
	f.Add(answer(v2Answer))
	f.Add([]byte(`{"terms":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseReconstruction(data)
		if err != nil {
			return
		}
		if r.Size() < 0 {
			t.Errorf("%d bytes", r.Size())
		}
		for _, term := range r.Terms {
			p := r.Parts[term.Part]
			if p.Xorb != term.Xorb || term.Chunks.First < p.Chunks.First || term.Chunks.End > p.Chunks.End || term.Chunks.Len() <= 0 ||
				term.Size > term.Chunks.Len()*MaxChunk || p.Bytes.Len() <= 0 {
				t.Errorf("term %+v in part %+v", term, p)
			}
		}
	})
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-9/100")
	f.Add("bytes 5-4/*")
	f.Add("bytes 0-9223372036854775807/*")
	f.Fuzz(func(t *testing.T, s string) {
		if r, total, err := ParseContentRange(s); err == nil && (r.Len() <= 0 || r.First < 0 || total >= 0 && r.End > total) {
			t.Errorf("%q is %+v of %d", s, r, total)
		}
	})
}
