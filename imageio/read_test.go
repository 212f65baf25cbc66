package imageio

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gesso-go/gesso/tensor"
)

// tinyWebP is Pillow's lossless WebP of the grey levels 40 80 120 / 160 200 240, with Exif orientation 6.
const tinyWebP = "UklGRlwAAABXRUJQVlA4WAoAAAAIAAAAAgAAAQAAVlA4TBsAAAAvAkAAAC9QlKIUZf4jgJq2DdhQ519Ojeh/TC8ARVhJRhoAAABNTQAqAAAACAABARIAAwAAAAEABgAAAAAAAA=="

// exif returns a TIFF structure with an orientation, behind another tag.
func exif(order binary.AppendByteOrder, orientation uint16) string {
	b := []byte("MM")
	if order.AppendUint16(nil, 1)[0] == 1 {
		b = []byte("II")
	}
	b = order.AppendUint16(b, 42)
	b = order.AppendUint32(b, 8) // offset of the entries
	b = order.AppendUint16(b, 2)
	for _, e := range [][2]uint16{{0x0100, 3}, {0x0112, orientation}} {
		b = order.AppendUint16(b, e[0])
		b = order.AppendUint16(b, 3)
		b = order.AppendUint32(b, 1)
		b = order.AppendUint16(b, e[1])
		b = order.AppendUint16(b, 0)
	}
	return string(order.AppendUint32(b, 0))
}

// digits writes a picture as rows of level/40.
func digits(m image.Image) string {
	a := Pixels(m)
	var rows []string
	for y := range a.Shape[1] {
		row := ""
		for x := range a.Shape[2] {
			row += fmt.Sprint(a.Data[(y*a.Shape[2]+x)*3] / 40)
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, "/")
}

func sixLevels(t *testing.T) image.Image {
	t.Helper()
	m, err := Images(&tensor.Array{DType: tensor.U8, Shape: tensor.Shape{2, 3, 1}, Data: []byte{40, 80, 120, 160, 200, 240}})
	if err != nil {
		t.Fatal(err)
	}
	return m[0]
}

// The wanted rows are those of PIL.ImageOps.exif_transpose, Pillow 13.0.
func TestPicturesAreTurnedUpright(t *testing.T) {
	var plain bytes.Buffer
	if err := png.Encode(&plain, sixLevels(t)); err != nil {
		t.Fatal(err)
	}
	want := []string{0: "123/456", 1: "123/456", 2: "321/654", 3: "654/321", 4: "456/123", 5: "14/25/36", 6: "41/52/63", 7: "63/52/41",
		8: "36/25/14", 9: "123/456"}
	for o, want := range want {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			file := plain.String()
			file = file[:pngHeaderEnd] + chunk("eXIf", exif(order, uint16(o))) + file[pngHeaderEnd:]
			m, err := Read(strings.NewReader(file), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := digits(m); got != want {
				t.Errorf("orientation %d (%v): %s, want %s", o, order, got, want)
			}
		}
	}
	m, err := Read(bytes.NewReader(unbase64(t, tinyWebP)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := digits(m); got != want[6] {
		t.Errorf("WebP: %s, want %s", got, want[6])
	}
}

func TestJPEGIsTurnedUpright(t *testing.T) {
	_, m := gradient(t, 32, 16, 3)
	var b bytes.Buffer
	if err := Encode(&b, JPEG, m, Options{}); err != nil {
		t.Fatal(err)
	}
	body := string(exifHeader) + exif(binary.BigEndian, 6)
	segment := func(kind byte, body string) string {
		return string(binary.BigEndian.AppendUint16([]byte{0xff, kind}, uint16(len(body)+2))) + body
	}
	file := b.String()
	file = file[:2] + segment(0xe0, "JFIF") + segment(0xe1, "http://ns.adobe.com/xap/1.0/") + segment(0xe1, body) + file[2:]
	got, err := Read(strings.NewReader(file), Limits{})
	if err != nil || got.Bounds() != image.Rect(0, 0, 16, 32) {
		t.Fatalf("got %v, %v", got, err)
	}
	if got, err = Read(&b, Limits{}); err != nil || got.Bounds() != image.Rect(0, 0, 32, 16) {
		t.Errorf("without Exif: %v, %v", got, err)
	}
}

// Every kind of picture gives the colours beneath its transparency, whatever its origin.
func TestPixelsOfEveryKind(t *testing.T) {
	r := image.Rect(3, 4, 5, 6)
	nrgba := image.NewNRGBA(r)
	rgba := image.NewRGBA(r)
	translucent := image.NewRGBA(r)
	gray := image.NewGray(r)
	deep := image.NewNRGBA64(r)
	palette := image.NewPaletted(r, color.Palette{color.NRGBA{10, 20, 30, 255}, color.NRGBA{40, 50, 60, 0}})
	ycbcr := image.NewYCbCr(r, image.YCbCrSubsampleRatio444)
	nrgba.SetNRGBA(4, 5, color.NRGBA{40, 50, 60, 0})
	for i := 3; i < len(rgba.Pix); i += 4 {
		rgba.Pix[i] = 255
	}
	rgba.SetRGBA(4, 5, color.RGBA{40, 50, 60, 255})
	translucent.SetRGBA(4, 5, color.RGBA{20, 25, 30, 128})
	gray.SetGray(4, 5, color.Gray{40})
	deep.SetNRGBA64(4, 5, color.NRGBA64{40<<8 | 200, 50 << 8, 60 << 8, 65535})
	palette.SetColorIndex(4, 5, 1)
	for i := range ycbcr.Y {
		ycbcr.Y[i], ycbcr.Cb[i], ycbcr.Cr[i] = uint8(i), 128, 128
	}
	for name, c := range map[string]struct {
		m    image.Image
		want [3]uint8
	}{
		"nrgba":              {nrgba, [3]uint8{40, 50, 60}},
		"nrgba, a part":      {nrgba.SubImage(image.Rect(4, 5, 5, 6)), [3]uint8{40, 50, 60}},
		"rgba":               {rgba, [3]uint8{40, 50, 60}},
		"rgba, a part":       {rgba.SubImage(image.Rect(4, 4, 5, 6)), [3]uint8{40, 50, 60}},
		"premultiplied rgba": {translucent, [3]uint8{39, 49, 59}},
		"gray":               {gray, [3]uint8{40, 40, 40}},
		"16 bits":            {deep, [3]uint8{40, 50, 60}},
		"palette":            {palette, [3]uint8{40, 50, 60}},
		"ycbcr":              {ycbcr, [3]uint8{3, 3, 3}},
	} {
		a := Pixels(c.m)
		b := c.m.Bounds()
		if !a.Shape.Equal(tensor.Shape{1, b.Dy(), b.Dx(), 3}) {
			t.Fatalf("%s: %s", name, a)
		}
		if got := [3]uint8(a.Data[len(a.Data)-3:]); got != c.want {
			t.Errorf("%s: last pixel is %v, want %v", name, got, c.want)
		}
	}
}

// A file of a hundred bytes may claim any size.
func TestHugePicturesAreRefusedBeforeDecoding(t *testing.T) {
	header := func(w, h uint32) string {
		b := binary.BigEndian.AppendUint32(nil, w)
		b = binary.BigEndian.AppendUint32(b, h)
		return pngSignature + chunk("IHDR", string(b)+"\x08\x02\x00\x00\x00") + chunk("IDAT", "") + chunk("IEND", "")
	}
	_, err := Read(strings.NewReader(header(60000, 60000)), Limits{})
	wantError(t, err, "size 60000 by 60000", "67108864 pixels")
	_, err = Read(strings.NewReader(header(11, 10)), Limits{Pixels: 100})
	wantError(t, err, "size 11 by 10, expected 1 to 100 pixels")
	_, err = Read(strings.NewReader(header(10, 10)), Limits{Pixels: 100})
	wantError(t, err, "read PNG picture") // of the right size, but without pixels
	if strings.Contains(err.Error(), "size") {
		t.Errorf("error is %v", err)
	}
	_, err = Read(strings.NewReader(header(1, 1)), Limits{Bytes: 20})
	wantError(t, err, "larger than 20 bytes")
}

func TestDevicesAreNotRead(t *testing.T) {
	_, err := ReadFile(os.DevNull, Limits{})
	wantError(t, err, os.DevNull, "not a regular file")
}

func TestFilesThatAreNoPicture(t *testing.T) {
	for _, s := range []string{"", "GIF89a", "RIFF\x00\x00\x00\x00WAVE", "<html>"} {
		_, err := Read(strings.NewReader(s), Limits{})
		wantError(t, err, "not a PNG, JPEG or WebP file")
	}
	for s, want := range map[string]string{
		pngSignature: "read PNG picture", "\xff\xd8\xff": "read JPEG picture", "RIFF\x00\x00\x00\x00WEBP": "read WebP picture",
	} {
		_, err := Read(strings.NewReader(s), Limits{})
		wantError(t, err, want)
	}
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), Limits{}); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	if _, err := ReadFile("no/such.png", Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if _, err := ReadTextFile("no/such.png"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	_, err := ReadFile("testdata/README.md", Limits{})
	wantError(t, err, "testdata/README.md", "not a PNG")
	_, err = ReadTextFile("testdata/README.md")
	wantError(t, err, "testdata/README.md", "not a PNG")
}

func FuzzRead(f *testing.F) {
	f.Add(unbase64(f, pillowText))
	f.Add(unbase64(f, tinyWebP))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x10Exif\x00\x00II*\x00\xff\xff\xff\xff"))
	f.Add([]byte(pngSignature + chunk("eXIf", exif(binary.BigEndian, 6))))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(bytes.NewReader(b), Limits{Pixels: 1 << 16})
		if err == nil && (m.Bounds().Empty() || m.Bounds().Dx()*m.Bounds().Dy() > 1<<16) {
			t.Errorf("a picture of %v was accepted", m.Bounds())
		}
		// the orientation of files that no decoder accepts
		for _, c := range codecs {
			if c.match(b) {
				if o := c.orientation(b); o < 1 || o > 8 {
					t.Errorf("orientation %d", o)
				}
			}
		}
	})
}
