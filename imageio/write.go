package imageio

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/gesso-go/gesso/internal/outfile"
)

// Options say how a picture is written. The zero value is a PNG without text, or a JPEG of quality 95.
type Options struct {
	Text    []Text // written into PNG files only
	Quality int    // of JPEG files, 1 to 100; 0 is 95
}

// Encode writes m to w.
func Encode(w io.Writer, f Format, m image.Image, o Options) error {
	b, err := encode(f, m, o)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

func encode(f Format, m image.Image, o Options) ([]byte, error) {
	if m.Bounds().Empty() {
		return nil, fmt.Errorf("encode %s: the picture is empty", f)
	}
	var b bytes.Buffer
	if f == JPEG {
		q := o.Quality
		if q == 0 {
			q = 95
		}
		if q < 1 || q > 100 {
			return nil, fmt.Errorf("encode JPEG: quality %d, expected 1 to 100", q)
		}
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: q}); err != nil {
			return nil, fmt.Errorf("encode JPEG: %w", err)
		}
		return b.Bytes(), nil
	}
	if err := png.Encode(&b, m); err != nil {
		return nil, fmt.Errorf("encode PNG: %w", err)
	}
	if len(o.Text) == 0 {
		return b.Bytes(), nil
	}
	// Text goes before the pixels, where a reader finds it without reading on.
	out := append([]byte(nil), b.Bytes()[:pngHeaderEnd]...)
	for _, t := range o.Text {
		var err error
		if out, err = appendText(out, t); err != nil {
			return nil, fmt.Errorf("encode PNG: %w", err)
		}
	}
	return append(out, b.Bytes()[pngHeaderEnd:]...), nil
}

// WriteFile writes m to path in the format of its extension. The file appears under its name when it is complete; an
// error leaves neither it nor a temporary file behind, and an older file of that name as it was. Symbolic links are
// followed, and devices and pipes written to.
func WriteFile(path string, m image.Image, o Options) error {
	f, err := FormatOf(path)
	if err != nil {
		return err
	}
	b, err := encode(f, m, o)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return outfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
