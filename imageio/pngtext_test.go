package imageio

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/shareddata"
)

// pillowText was written by Pillow 13.0: tEXt in Latin-1, zTXt, and a compressed iTXt with language and translated key.
const pillowText = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAAD3RFWHRwYXJhbWV0ZXJzAGNhZukpJJyJAAAAFHpUWHR6aXAAAHicS0xKThxFxCEAiE1y2b8WMfYAAAAZaVRYdGl0eHQAAQBqYQDpjbUAeJx73rMaAAR7Ah+rGdtHAAAACklEQVR4nGPQAAAAKgApazFUcwAAAABJRU5ErkJggg=="

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chunk returns a PNG chunk.
func chunk(kind, body string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, kind...), body...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

func dot() image.Image { return image.NewGray(image.Rect(0, 0, 1, 1)) }

func TestTextComesBack(t *testing.T) {
	want := []Text{
		{"parameters", `{"prompt":"a cat\nholding a sign"}`},
		{"prompt", "eine Katze, 猫, 🐈, Ã©"},
		{"Software", "Gesso"},
		{"empty", ""},
		{"Software", "a second entry"},
	}
	var b bytes.Buffer
	if err := Encode(&b, PNG, dot(), Options{Text: want}); err != nil {
		t.Fatal(err)
	}
	got, err := ReadText(bytes.NewReader(b.Bytes()))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := png.Decode(&b); err != nil {
		t.Errorf("the picture is broken: %v", err)
	}
	for kind, n := range map[string]int{"tEXt": 4, "iTXt": 1} {
		b.Reset()
		if err := Encode(&b, PNG, dot(), Options{Text: want}); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(b.Bytes(), []byte(kind)); got != n {
			t.Errorf("%d %s chunks, want %d", got, kind, n)
		}
	}
}

func TestTextThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		t    Text
		want string
	}{
		{Text{"", "x"}, `text key ""`},
		{Text{strings.Repeat("k", 80), "x"}, "1 to 79 printable"},
		{Text{" k", "x"}, "outer spaces"},
		{Text{"ké", "x"}, "printable ASCII"},
		{Text{"k\x00", "x"}, "printable ASCII"},
		{Text{"k", "a\x00b"}, "zero byte"},
		{Text{"k", "\xff"}, "not UTF-8"},
		{Text{"k", strings.Repeat("x", maxText+1)}, "expected at most"},
	} {
		err := Encode(io.Discard, PNG, dot(), Options{Text: []Text{c.t}})
		wantError(t, err, c.want)
	}
}

func TestPillowTextIsRead(t *testing.T) {
	got, err := ReadText(bytes.NewReader(unbase64(t, pillowText)))
	want := []Text{{"parameters", "café"}, {"zip", strings.Repeat("abc", 100)}, {"itxt", "猫"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRealFileIsRead(t *testing.T) {
	path := filepath.Join(shareddata.Dir(t, "data", "png"), "sdcpp_anima_example.png")
	got, err := ReadTextFile(path)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %q, %v", got, err)
	}
	for _, e := range got {
		if e.Key != "parameters" || !strings.HasPrefix(e.Value, "a lovely cat holding a sign says 'anima.cpp'\nSteps: 20, CFG scale: 6") {
			t.Errorf("entry is %q", e)
		}
	}
	m, err := ReadFile(path, Limits{})
	if err != nil || m.Bounds() != image.Rect(0, 0, 512, 512) {
		t.Errorf("picture is %v, %v", m, err)
	}
}

func TestDamagedTextIsLeftOut(t *testing.T) {
	broken := []byte(chunk("tEXt", "a\x00checksum"))
	broken[len(broken)-1]++
	file := pngSignature + string(broken) +
		chunk("tEXt", "no value") + chunk("tEXt", "\x00no key") +
		chunk("zTXt", "z\x00") + chunk("zTXt", "z\x00\x01method") + chunk("zTXt", "z\x00\x00not deflate") +
		chunk("iTXt", "i\x00") + chunk("iTXt", "i\x00\x02\x00\x00\x00flag") + chunk("iTXt", "i\x00\x00\x00no language") +
		chunk("iTXt", "i\x00\x00\x00\x00no translated key") + chunk("iTXt", "i\x00\x01\x00\x00\x00not deflate") +
		chunk("tEXt", "good\x00yes") + chunk("IDAT", "pixels") + chunk("tEXt", "after\x00\xfcber") + chunk("IEND", "") + "trailing bytes"
	got, err := ReadText(strings.NewReader(file))
	want := []Text{{"good", "yes"}, {"after", "über"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBrokenFilesKeepWhatCameBefore(t *testing.T) {
	good := pngSignature + chunk("tEXt", "good\x00yes")
	for name, rest := range map[string]string{
		"no end":             "",
		"cut header":         "\x00\x00",
		"cut text":           "\x00\x00\x10\x00tEXtkey\x00va",
		"cut pixels":         "\x7f\xff\xff\xffIDATxx",
		"a claim of 4 GiB":   "\xff\xff\xff\xfftEXtkey\x00va",
		"a text of 16 MiB +": "\x01\x00\x00\x01tEXtkey\x00va",
	} {
		got, err := ReadText(strings.NewReader(good + rest))
		if !errors.Is(err, io.ErrUnexpectedEOF) || !slices.Equal(got, []Text{{"good", "yes"}}) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for _, s := range []string{"", "\x89PN", "GIF89a, surely", "\xff\xd8\xff\xe0"} {
		_, err := ReadText(strings.NewReader(s))
		wantError(t, err, "not a PNG file")
	}
}

func TestCompressedTextHasALimit(t *testing.T) {
	bomb := zlibOf(t, bytes.Repeat([]byte("x"), maxText+1))
	fits := zlibOf(t, bytes.Repeat([]byte("y"), maxText))
	got, err := ReadText(strings.NewReader(pngSignature + chunk("zTXt", "bomb\x00\x00"+bomb) + chunk("zTXt", "fits\x00\x00"+fits) + chunk("IEND", "")))
	if err != nil || len(got) != 1 || got[0].Key != "fits" || len(got[0].Value) != maxText {
		t.Errorf("%d entries, %v", len(got), err)
	}
	// many that fit do not add up without end
	got, err = ReadText(strings.NewReader(pngSignature + strings.Repeat(chunk("zTXt", "fits\x00\x00"+fits), 6) + chunk("IEND", "")))
	if err != nil || len(got) != maxAllText/maxText {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

func FuzzReadText(f *testing.F) {
	f.Add(unbase64(f, pillowText))
	f.Add([]byte(pngSignature + chunk("iTXt", "k\x00\x00\x00\x00\x00v") + chunk("IEND", "")))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, _ := ReadText(bytes.NewReader(b))
		for _, e := range texts {
			if e.Key == "" {
				t.Errorf("entry without key: %q", e)
			}
		}
	})
}

func FuzzTextComesBack(f *testing.F) {
	f.Add("parameters", "a cat")
	f.Add("prompt", "猫\n")
	f.Fuzz(func(t *testing.T, key, value string) {
		var b bytes.Buffer
		want := Text{key, value}
		if Encode(&b, PNG, dot(), Options{Text: []Text{want}}) != nil {
			return
		}
		got, err := ReadText(&b)
		if err != nil || !slices.Equal(got, []Text{want}) {
			t.Errorf("%q came back as %q, %v", want, got, err)
		}
	})
}
