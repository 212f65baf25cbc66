package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// damaged is every way in which a file can be wrong, with what the one line about it must say.
var damaged = []struct {
	name string
	data []byte
	want []string
}{
	{"empty file", nil, []string{"empty"}},
	{"shorter than the length", []byte{1, 2, 3, 4, 5}, []string{"5 bytes", "at least the 8"}},
	{"empty header", make([]byte, 8), []string{"header is empty"}},
	{"zeros of an interrupted download", make([]byte, 4096), []string{"header is empty"}},
	{"header longer than the file", build(`{}`, 0)[:9], []string{"claims 2 bytes", "ends after 1", "truncated"}},
	{"length of 2^64-1", bytes.Repeat([]byte{0xff}, 16), []string{"18446744073709551615", "limit is 100000000"}},
	{"length of 2^63", []byte{0, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'}, []string{"9223372036854775808", "limit"}},
	{"length that overflows when 8 is added", append([]byte{0xf9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "{}"...), []string{"limit"}},
	{"one byte over the limit", append(binary.LittleEndian.AppendUint64(nil, 100_000_001), "{}"...), []string{"100000001", "limit is 100000000"}},
	{"limit, but not there", append(binary.LittleEndian.AppendUint64(nil, 100_000_000), "{}"...), []string{"claims 100000000 bytes", "truncated"}},
	{"not JSON", build(`hello`, 0), []string{"header is not valid", "byte 0", `expected '{', found 'h'`}},
	{"array", build(`[]`, 0), []string{"header is not valid", `expected '{'`}},
	{"only spaces", build(`      `, 0), []string{`expected '{', found the end`}},
	{"unclosed", build(`{"a":`, 0), []string{"header is not valid"}},
	{"trailing garbage", build(`{} x`, 0), []string{"trailing text", `'x'`}},
	{"trailing object", build(`{}{}`, 0), []string{"trailing text"}},
	{"trailing NUL", build("{}\x00", 0), []string{"trailing text"}},
	{"trailing comma", build(`{`+entry("a", "U8", "1", "0,1")+`,}`, 1), []string{`expected '"', found '}'`}},
	{"not UTF-8", build("{\"\xff\xfe\":{}}", 0), []string{"not UTF-8"}},
	{"half a surrogate pair", build(`{"\ud800":{}}`, 0), []string{"surrogate"}},
	{"raw control character", build("{\"a\nb\":{}}", 0), []string{"control character"}},
	{"unknown escape", build(`{"a\x":{}}`, 0), []string{"unknown escape"}},
	{"duplicate key", build(`{`+entry("a", "U8", "1", "0,1")+`,`+entry("a", "U8", "1", "1,2")+`}`, 2), []string{`tensor "a" occurs twice`}},
	{"duplicate key, equal entries", build(`{`+entry("a", "U8", "1", "0,1")+`,`+entry("a", "U8", "1", "0,1")+`}`, 1), []string{`tensor "a" occurs twice`}},
	{"duplicate key, other spelling", build(`{`+entry("a", "U8", "1", "0,1")+`,`+entry(`\u0061`, "U8", "1", "1,2")+`}`, 2), []string{`tensor "a" occurs twice`}},
	{"duplicate field", build(`{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape occurs twice"}},
	{"duplicate metadata", build(`{"__metadata__":{},"__metadata__":{}}`, 0), []string{"__metadata__ occurs twice"}},
	{"duplicate metadata key", build(`{"__metadata__":{"k":"1","k":"2"}}`, 0), []string{"__metadata__", `"k" occurs twice`}},
	{"metadata of numbers", build(`{"__metadata__":{"k":1}}`, 0), []string{"__metadata__", `"k"`, "must be a string", `'1'`}},
	{"metadata null", build(`{"__metadata__":null}`, 0), []string{"__metadata__", "object of strings"}},
	{"metadata array", build(`{"__metadata__":["a"]}`, 0), []string{"__metadata__", "object of strings"}},
	{"entry is null", build(`{"a":null}`, 0), []string{`tensor "a"`, `expected '{'`}},
	{"no dtype", build(`{"a":{"shape":[1],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "dtype is missing"}},
	{"no shape", build(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape is missing"}},
	{"no offsets", build(`{"a":{"dtype":"U8","shape":[1]}}`, 1), []string{`tensor "a"`, "data_offsets is missing"}},
	{"unknown dtype", build(`{`+entry("layer.w", "U16", "1", "0,2")+`}`, 2), []string{`tensor "layer.w"`, `unknown dtype "U16"`, "BF16"}},
	{"dtype in small letters", build(`{`+entry("a", "f32", "1", "0,4")+`}`, 4), []string{`unknown dtype "f32"`}},
	{"dtype is a number", build(`{"a":{"dtype":1,"shape":[1],"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "dtype", `expected '"'`}},
	{"shape is a number", build(`{"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}}`, 1), []string{`tensor "a"`, "shape must be an array"}},
	{"negative extent", build(`{`+entry("a", "U8", "2,-1", "0,1")+`}`, 1), []string{`tensor "a"`, `shape[1] is "-1"`, "≥ 0"}},
	{"fraction", build(`{`+entry("a", "U8", "1.5", "0,1")+`}`, 1), []string{`tensor "a"`, `shape[0] is "1.5"`, "integer"}},
	{"exponent", build(`{`+entry("a", "U8", "1e2", "0,100")+`}`, 100), []string{`shape[0] is "1e2"`, "integer"}},
	{"extent is a string", build(`{`+entry("a", "U8", `"1"`, "0,1")+`}`, 1), []string{"shape[0] is", "integer"}},
	{"leading zero", build(`{`+entry("a", "U8", `01`, "0,1")+`}`, 1), []string{"leading zero"}},
	{"extent of 2^64", build(`{`+entry("a", "U8", "18446744073709551616", "0,1")+`}`, 1), []string{"shape[0] is too large"}},
	{"extent of 2^63", build(`{`+entry("a", "U8", "9223372036854775808", "0,1")+`}`, 1), []string{"shape[0] is too large"}},
	{"product overflows", build(`{`+entry("a", "U8", "4294967296,4294967296", "0,0")+`}`, 0), []string{`tensor "a"`, "too large"}},
	{"product overflows to a small number", build(`{`+entry("a", "U8", "4294967297,4294967297,4294967297", "0,1")+`}`, 1), []string{"too large"}},
	{"product overflows before a zero", build(`{`+entry("a", "U8", "4294967296,4294967296,0", "0,0")+`}`, 0), []string{"too large"}},
	{"bytes overflow", build(`{`+entry("a", "F64", "2305843009213693952", "0,0")+`}`, 0), []string{"too large"}},
	{"too many axes", build(`{`+entry("a", "U8", strings.Repeat("1,", 32)+"1", "0,1")+`}`, 1), []string{`tensor "a"`, "more than 32 axes"}},
	{"one offset", build(`{`+entry("a", "U8", "1", "0")+`}`, 1), []string{`tensor "a"`, "1 numbers, expected 2"}},
	{"three offsets", build(`{`+entry("a", "U8", "1", "0,1,2")+`}`, 1), []string{"more than 2"}},
	{"negative offset", build(`{`+entry("a", "U8", "1", "-1,0")+`}`, 1), []string{`data_offsets[0] is "-1"`}},
	{"reversed offsets", build(`{`+entry("a", "U8", "1", "1,0")+`}`, 1), []string{`tensor "a"`, "[1, 0] are reversed"}},
	{"offsets past the file", build(`{`+entry("a", "U8", "8", "0,8")+`}`, 7), []string{`tensor "a"`, "truncated"}},
	{"offsets near 2^63", build(`{`+entry("a", "U8", "1", "9223372036854775806,9223372036854775807")+`}`, 1), []string{`tensor "a"`, "too large"}},
	{"too few bytes for the shape", build(`{`+entry("a", "F32", "2,3", "0,20")+`}`, 20), []string{`tensor "a"`, "[2 3] of f32 needs 24 bytes", "give 20"}},
	{"too many bytes for the shape", build(`{`+entry("a", "BF16", "3", "0,8")+`}`, 8), []string{"needs 6 bytes", "give 8"}},
	{"scalar of two elements", build(`{`+entry("a", "F32", "", "0,8")+`}`, 8), []string{"[] of f32 needs 4 bytes"}},
	{"overlap", build(`{`+entry("a", "U8", "4", "0,4")+`,`+entry("b", "U8", "4", "2,6")+`}`, 6), []string{`tensor "b" starts at data byte 2`, `inside tensor "a"`}},
	{"two tensors on the same bytes", build(`{`+entry("a", "U8", "4", "0,4")+`,`+entry("b", "U8", "4", "0,4")+`}`, 4), []string{`tensor "b"`, `inside tensor "a"`}},
	{"gap at the start", build(`{`+entry("a", "U8", "4", "4,8")+`}`, 8), []string{`tensor "a" starts at data byte 4, expected 0`}},
	{"gap in the middle", build(`{`+entry("a", "U8", "4", "0,4")+`,`+entry("b", "U8", "4", "5,9")+`}`, 9), []string{`tensor "b" starts at data byte 5, expected 4`}},
	{"trailing bytes", build(`{`+entry("a", "U8", "4", "0,4")+`}`, 5), []string{"trailing bytes"}},
	{"data without tensors", build(`{}`, 1), []string{"trailing bytes"}},
	{"truncated by one byte", build(`{`+entry("a", "U8", "4", "0,4")+`,`+entry("b", "U8", "4", "4,8")+`}`, 7), []string{`tensor "b"`, "truncated"}},
	{"empty tensor past the end", build(`{`+entry("a", "U8", "0", "1,1")+`}`, 0), []string{`tensor "a" starts at data byte 1`}},
	{"nested too deep", build(`{"a":{"x":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`}}`, 0), []string{`tensor "a"`, "nested"}},
	{"very long key", build(`{"`+strings.Repeat("k", 100_000)+`":{}}`, 0), []string{"kkk", "(100000 bytes)"}},
	{"key with line breaks", build(`{"a\nb":{}}`, 0), []string{`"a\nb"`}},

	{"zip archive of torch.save", append([]byte("PK\x03\x04\x00\x00\x08\x08\x00\x00"), make([]byte, 100)...), []string{"not a safetensors file (looks like a PyTorch archive)", "convert"}},
	{"zip archive whose length is plausible", append([]byte("PK\x03\x04\x00\x00\x00\x00\x00\x00"), make([]byte, 100)...), []string{"looks like a PyTorch archive"}},
	{"pickle", []byte("\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01"), []string{"not a safetensors file (looks like a PyTorch archive)"}},
	{"legacy torch pickle", []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."), []string{"looks like a PyTorch archive"}},
	{"short pickle", []byte("\x80\x02}."), []string{"looks like a PyTorch archive"}},
	{"honest but truncated header of 640 bytes", []byte("\x80\x02\x00\x00\x00\x00\x00\x00{\"a\":"), []string{"claims 640 bytes", "truncated"}},
	{"git lfs pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"), []string{"Git LFS pointer", "git lfs pull", "pull the model again"}},
	{"web page", []byte("<!DOCTYPE html>\n<html><body>Not found</body></html>"), []string{"web page"}},
	{"web page after white space", []byte("\r\n  <HTML lang=en>"), []string{"web page"}},
	{"web page too short for a length", []byte("<html>"), []string{"web page"}},
	{"error of an object store", []byte(`<?xml version="1.0"?><Error/>`), []string{"web page"}},
	{"gguf", append([]byte("GGUF\x03\x00\x00\x00"), make([]byte, 100)...), []string{"GGUF"}},
	{"text", []byte(`{"error": "not found"}`), []string{"limit"}},
}

func TestDamagedFile(t *testing.T) {
	for _, c := range damaged {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("dir/model.safetensors", c.data)
			wantError(t, err, append(c.want, "dir/model.safetensors: ")...)
		})
	}
}

func TestValidFile(t *testing.T) {
	deepest := strings.Repeat("1,", 31) + "1"
	for _, c := range []struct {
		name string
		data []byte
		want string // name dtype shape, each
	}{
		{"no tensors", build(`{}`, 0), ""},
		{"no tensors, white space", build(" \t\r\n{ } ", 0), ""},
		{"scalar", build(`{`+entry("a", "F64", "", "0,8")+`}`, 8), `"a" f64[]`},
		{"empty tensors", build(`{`+entry("a", "F32", "0,3", "0,0")+`,`+entry("b", "U8", "1", "0,1")+`,`+entry("c", "I64", "2,0", "1,1")+`}`, 1), `"a" f32[0 3], "b" u8[1], "c" i64[2 0]`},
		{"large extent beside a zero", build(`{`+entry("a", "U8", "0,9223372036854775807", "0,0")+`}`, 0), `"a" u8[0 9223372036854775807]`},
		{"order of the header is free", build(`{`+entry("b", "I16", "2", "1,5")+`,`+entry("a", "BOOL", "1", "0,1")+`}`, 5), `"a" bool[1], "b" i16[2]`},
		{"unknown fields are ignored", build(`{"a":{"note":{"x":[1,-2.5e+3,true,null,"s",{}]},"dtype":"I8","shape":[ 1 ],"data_offsets":[ 0 , 1 ]}}`, 1), `"a" i8[1]`},
		{"escaped names", build(`{"\u0041\ud83d\ude00\n\"\\\/\b\f\r\t":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}`, 1), `"A😀\n\"\\/\b\f\r\t" f8e4m3[1]`},
		{"escaped field", build(`{"a":{"d\u0074ype":"F8_E5M2","shape":[1],"data_offsets":[0,1]}}`, 1), `"a" f8e5m2[1]`},
		{"the empty name", build(`{`+entry("", "U8", "1", "0,1")+`}`, 1), `"" u8[1]`},
		{"32 axes", build(`{`+entry("a", "BF16", deepest, "0,2")+`}`, 2), `"a" bf16[` + strings.ReplaceAll(deepest, ",", " ") + `]`},
		{"metadata", build(`{"__metadata__":{"format":"pt","":""}}`, 0), ""},
		// Lengths that spell a foreign signature.
		{"header of 640 bytes", build(`{`+entry("a", "F16", "1", "0,2")+`}`+strings.Repeat(" ", 640-2-len(entry("a", "F16", "1", "0,2"))), 2), `"a" f16[1]`},
		{"misaligned data", build(`{`+entry("a", "I32", "1", "0,4")+`}`+strings.Repeat(" ", 3), 4), `"a" i32[1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Parse("x", c.data)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for ts := range f.All() {
				got = append(got, ts.String())
			}
			if g := strings.Join(got, ", "); g != c.want {
				t.Errorf("tensors %s, expected %s", g, c.want)
			}
		})
	}
}

// A header of many spaces costs nothing but one pass over it; its memory is the caller's.
func TestPaddedHeader(t *testing.T) {
	const size = 99_000_000
	one := `{` + entry("a", "U8", "1", "0,1") + `}`
	data := binary.LittleEndian.AppendUint64(make([]byte, 0, size+9), size)
	data = append(data, one...)
	data = append(data, bytes.Repeat([]byte{' '}, size-len(one))...)
	data = append(data, 7)
	f, allocated := parseCounting(t, data)
	if !f.Has("a") {
		t.Error("the tensor is lost")
	}
	if allocated > 1<<20 {
		t.Errorf("%d bytes allocated for one tensor", allocated)
	}
}

// The memory of a large header stays below 4 times its size, all allocations counted, for real names and for a header made
// to cost as much as possible.
func TestHeaderMemory(t *testing.T) {
	var real, worst strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&real, `,"transformer_blocks.%d.attn.to_q.weight":{"dtype":"BF16","shape":[1,1],"data_offsets":[%d,%d]}`, i, 2*i, 2*i+2)
		fmt.Fprintf(&worst, `,"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, i)
	}
	for name, data := range map[string][]byte{
		"real":  build("{"+real.String()[1:]+"}", 100_000),
		"worst": build("{"+worst.String()[1:]+"}", 0),
		"axes":  build("{"+strings.ReplaceAll(worst.String()[1:], "[0]", "["+strings.Repeat("1,", 31)+"0]")+"}", 0),
	} {
		f, allocated := parseCounting(t, data)
		if f.Len() != 50_000 {
			t.Errorf("%s: %d tensors", name, f.Len())
		}
		if allocated > 4*uint64(len(data)) {
			t.Errorf("%s: %d bytes allocated for a header of %d", name, allocated, len(data))
		}
	}
}

func parseCounting(t *testing.T, data []byte) (*File, uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := Parse("x", data)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	return f, after.TotalAlloc - before.TotalAlloc
}

// A header that repeats the words by which the number of tensors is estimated must not make it allocate for them.
func TestEstimateIsBounded(t *testing.T) {
	text := `{"a":{"x":[` + strings.Repeat(`"data_offsets",`, 1<<16) + `0],"dtype":"U8"}}`
	data := build(text, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse("x", data)
	runtime.ReadMemStats(&after)
	wantError(t, err, "shape is missing")
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*uint64(len(text)) {
		t.Errorf("%d bytes allocated for a header of %d", n, len(text))
	}
}

func TestMetadata(t *testing.T) {
	f, err := Parse("x", build(`{"__metadata__":{"format":"pt","é":"\u00e9\n"}}`, 0))
	if err != nil {
		t.Fatal(err)
	}
	m := f.Metadata()
	if len(m) != 2 || m["format"] != "pt" || m["é"] != "é\n" {
		t.Errorf("metadata %v", m)
	}
	m["format"] = "changed"
	if f.Metadata()["format"] != "pt" {
		t.Error("a caller can change the metadata of the file")
	}
	var many strings.Builder
	for i := range maxMetadata + 1 {
		fmt.Fprintf(&many, `,"%d":""`, i)
	}
	_, err = Parse("x", build(`{"__metadata__":{`+many.String()[1:]+`}}`, 0))
	wantError(t, err, "__metadata__ has more than 65536 entries")
}

func TestSet(t *testing.T) {
	f, err := Parse("f.safetensors", build(`{`+entry("b", "F32", "2", "0,8")+`,`+entry("a", "U8", "3", "8,11")+`,`+entry("c", "U8", "", "11,12")+`}`, 12))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.Names(), " "); got != "a b c" || f.Len() != 3 {
		t.Errorf("names %q, len %d", got, f.Len())
	}
	if !f.Has("c") || f.Has("d") || f.Has("") {
		t.Error("Has is wrong")
	}
	if f.NumBytes() != 12 {
		t.Errorf("%d bytes", f.NumBytes())
	}
	d := f.DTypes()
	if len(d) != 2 || d[tensor.U8] != (Count{2, 4}) || d[tensor.F32] != (Count{1, 8}) {
		t.Errorf("dtypes %v", d)
	}
	_, err = f.Tensor("d")
	wantError(t, err, `f.safetensors: no tensor "d"`)
	if x, err := f.Either("shared.weight", "b", "a"); err != nil || x.Name != "b" {
		t.Errorf("Either: %v, %v", x, err)
	}
	_, err = f.Either("shared.weight", "encoder.embed_tokens.weight")
	wantError(t, err, `no tensor "shared.weight" or "encoder.embed_tokens.weight"`)
	var zero Set
	if zero.Len() != 0 || zero.Has("a") {
		t.Error("the zero set is not empty")
	}
}
