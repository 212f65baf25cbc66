package imageio

import (
	"fmt"
	"image"
	"image/color"

	"github.com/gesso-go/gesso/tensor"
)

// Images returns the pictures of a U8 array of shape (N, H, W, C) or (H, W, C), RGB or grey. They share no memory
// with it.
func Images(pixels *tensor.Array) ([]image.Image, error) {
	n, h, w, channels, err := Convention{Layout: NHWC}.dims(pixels.Shape)
	if err != nil {
		return nil, fmt.Errorf("pictures: %w", err)
	}
	if pixels.DType != tensor.U8 {
		return nil, fmt.Errorf("pictures: array %s, expected u8", pixels)
	}
	if err := pixels.Check(); err != nil {
		return nil, fmt.Errorf("pictures: %w", err)
	}
	out := make([]image.Image, n)
	size := h * w * channels
	for i := range out {
		src := pixels.Data[i*size:][:size]
		if channels == 1 {
			m := image.NewGray(image.Rect(0, 0, w, h))
			copy(m.Pix, src)
			out[i] = m
			continue
		}
		m := image.NewNRGBA(image.Rect(0, 0, w, h))
		for p := range h * w {
			d, s := m.Pix[4*p:][:4], src[3*p:][:3]
			d[0], d[1], d[2], d[3] = s[0], s[1], s[2], 255
		}
		out[i] = m
	}
	return out, nil
}

// Pixels returns a picture as a U8 array of shape (1, H, W, 3). Grey becomes RGB, 16 bits become 8; transparency is
// dropped and the colour beneath it kept, as Pillow's convert("RGB") does.
func Pixels(m image.Image) *tensor.Array {
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	out := tensor.New(tensor.U8, 1, h, w, 3)
	at := pixelReader(m)
	for y := range h {
		row := out.Data[y*w*3:][:w*3]
		for x := range w {
			row[3*x], row[3*x+1], row[3*x+2] = at(b.Min.X+x, b.Min.Y+y)
		}
	}
	return out
}

// pixelReader returns the fastest way to read m's colours without their alpha.
func pixelReader(m image.Image) func(x, y int) (r, g, b uint8) {
	straight := func(pix []uint8, stride int, rect image.Rectangle) func(x, y int) (r, g, b uint8) {
		return func(x, y int) (r, g, b uint8) {
			p := pix[(y-rect.Min.Y)*stride+(x-rect.Min.X)*4:][:3]
			return p[0], p[1], p[2]
		}
	}
	switch m := m.(type) {
	case *image.NRGBA:
		return straight(m.Pix, m.Stride, m.Rect)
	case *image.RGBA:
		if m.Opaque() { // otherwise colours are multiplied by their alpha
			return straight(m.Pix, m.Stride, m.Rect)
		}
	case *image.NRGBA64:
		return func(x, y int) (r, g, b uint8) {
			p := m.Pix[m.PixOffset(x, y):][:8] // high bytes first
			return p[0], p[2], p[4]
		}
	case *image.NYCbCrA:
		return pixelReader(&m.YCbCr)
	case *image.YCbCr:
		return func(x, y int) (r, g, b uint8) {
			yi, ci := m.YOffset(x, y), m.COffset(x, y)
			return color.YCbCrToRGB(m.Y[yi], m.Cb[ci], m.Cr[ci])
		}
	}
	return func(x, y int) (r, g, b uint8) {
		c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
		return c.R, c.G, c.B
	}
}
