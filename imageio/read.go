package imageio

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"

	"golang.org/x/image/webp"
)

// Limits keep a small file from claiming a huge picture. The zero value allows 2^26 pixels (8192 by 8192) and 256 MiB.
type Limits struct {
	Pixels int
	Bytes  int64
}

// codecs are the formats that pictures are read from, by their first bytes.
var codecs = []struct {
	name        string
	match       func(b []byte) bool
	config      func(io.Reader) (image.Config, error)
	decode      func(io.Reader) (image.Image, error)
	orientation func(b []byte) int
}{
	{"PNG", func(b []byte) bool { return bytes.HasPrefix(b, []byte(pngSignature)) }, png.DecodeConfig, png.Decode, pngOrientation},
	{"JPEG", func(b []byte) bool { return bytes.HasPrefix(b, []byte("\xff\xd8\xff")) }, jpeg.DecodeConfig, decodeJPEG, jpegOrientation},
	{"WebP", func(b []byte) bool {
		return len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP"
	}, webp.DecodeConfig, decodeWebP, webpOrientation},
}

// Read reads a PNG, JPEG or WebP picture, turned upright where its Exif data says how it was held, as Diffusers'
// load_image does. Take [Pixels] and [Floats] of the result for a model. WebP gives the levels that Pillow reads; JPEG
// decoders differ by up to three from one library to another.
func Read(r io.Reader, l Limits) (image.Image, error) {
	if l.Pixels == 0 {
		l.Pixels = 1 << 26
	}
	if l.Bytes == 0 {
		l.Bytes = 256 << 20
	}
	b, err := io.ReadAll(io.LimitReader(r, l.Bytes+1))
	if err != nil {
		return nil, fmt.Errorf("read picture: %w", err)
	}
	if int64(len(b)) > l.Bytes {
		return nil, fmt.Errorf("read picture: file is larger than %d bytes", l.Bytes)
	}
	for _, c := range codecs {
		if !c.match(b) {
			continue
		}
		config, err := c.config(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("read %s picture: %w", c.name, err)
		}
		if w, h := config.Width, config.Height; w < 1 || h < 1 || w > l.Pixels/h {
			return nil, fmt.Errorf("read %s picture: size %d by %d, expected 1 to %d pixels", c.name, w, h, l.Pixels)
		}
		m, err := c.decode(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("read %s picture: %w", c.name, err)
		}
		return upright(m, c.orientation(b)), nil
	}
	return nil, fmt.Errorf("read picture: not a PNG, JPEG or WebP file")
}

// ReadFile is [Read] of a file.
func ReadFile(path string, l Limits) (image.Image, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() { // opening a pipe could wait for ever
		return nil, fmt.Errorf("read picture: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read picture: %w", err)
	}
	defer f.Close()
	m, err := Read(f, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
