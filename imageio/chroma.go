package imageio

import (
	"image"
	"image/jpeg"
	"io"

	"golang.org/x/image/webp"
)

// A JPEG or lossy WebP file has fewer colour samples than pixels. The package image repeats them, and takes WebP's levels
// for JPEG's; libjpeg-turbo and libwebp, which Pillow reads with, interpolate, and so do these decoders.

func decodeJPEG(r io.Reader) (image.Image, error) {
	m, err := jpeg.Decode(r)
	if c, ok := m.(*image.YCbCr); ok && err == nil {
		return fromJPEG(c), nil
	}
	return m, err
}

func decodeWebP(r io.Reader) (image.Image, error) {
	m, err := webp.Decode(r)
	if err != nil {
		return m, err
	}
	switch m := m.(type) {
	case *image.YCbCr:
		return fromWebP(m), nil
	case *image.NYCbCrA:
		return fromWebP(&m.YCbCr), nil // nobody looks at the alpha
	}
	return m, nil
}

// samples is one plane of colour samples. Coordinates beyond its edges mean the samples there.
type samples struct {
	pix          []uint8
	stride, w, h int
}

func (s samples) at(x, y int) int {
	return int(s.pix[min(max(y, 0), s.h-1)*s.stride+min(max(x, 0), s.w-1)])
}

// chroma returns the planes of m, whose upper left corner is the file's.
func chroma(m *image.YCbCr) (cb, cr samples) {
	x, y := 1, 1
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio422:
		x = 2
	case image.YCbCrSubsampleRatio420:
		x, y = 2, 2
	case image.YCbCrSubsampleRatio440:
		y = 2
	case image.YCbCrSubsampleRatio411:
		x = 4
	case image.YCbCrSubsampleRatio410:
		x, y = 4, 2
	}
	w, h := (m.Rect.Dx()+x-1)/x, (m.Rect.Dy()+y-1)/y
	return samples{m.Cb, m.CStride, w, h}, samples{m.Cr, m.CStride, w, h}
}

// fromJPEG makes the pixels that libjpeg-turbo makes of these samples.
// Source: jdsample.c (fancy upsampling), jdcolor.c.
func fromJPEG(m *image.YCbCr) *image.NRGBA {
	cb, cr := chroma(m)
	sample := func(s samples, x, y int) int { return s.at(m.COffset(x, y)%m.CStride, m.COffset(x, y)/m.CStride) }
	switch ratio := m.SubsampleRatio; {
	case ratio == image.YCbCrSubsampleRatio422 && cb.w > 2:
		sample = func(s samples, x, y int) int {
			return (3*s.at(x/2, y) + s.at(x/2-1+x%2*2, y) + 1 + x%2) >> 2
		}
	case ratio == image.YCbCrSubsampleRatio420 && cb.w > 2:
		sample = func(s samples, x, y int) int {
			column := func(x int) int { return 3*s.at(x, y/2) + s.at(x, y/2-1+y%2*2) }
			return (3*column(x/2) + column(x/2-1+x%2*2) + 8 - x%2) >> 4
		}
	case ratio == image.YCbCrSubsampleRatio440:
		sample = func(s samples, x, y int) int {
			return (3*s.at(x, y/2) + s.at(x, y/2-1+y%2*2) + 1 + y%2) >> 2
		}
	}
	const half = 1 << 15
	return convert(m, func(x, y, luma int) (r, g, b int) {
		u, v := sample(cb, x, y)-128, sample(cr, x, y)-128
		return luma + (91881*v+half)>>16, luma + (-22554*u-46802*v+half)>>16, luma + (116130*u+half)>>16
	})
}

// fromWebP makes the pixels that libwebp makes of these samples, whose luma goes from 16 to 235.
// Source: libwebp, src/dsp/upsampling.c and src/dsp/yuv.h.
func fromWebP(m *image.YCbCr) *image.NRGBA {
	cb, cr := chroma(m)
	sample := func(s samples, x, y int) int {
		// The four samples around the pixel: near, beside it, above or below it, and across.
		dx, dy := x%2*2-1, y%2*2-1
		near, beside := s.at(x/2, y/2), s.at(x/2+dx, y/2)
		over, across := s.at(x/2, y/2+dy), s.at(x/2+dx, y/2+dy)
		if x == 0 || x == m.Rect.Dx()-1 && x%2 == 1 {
			return (3*near + over + 2) >> 2
		}
		return ((near+beside+over+across+8+2*(beside+over))>>3 + near) >> 1
	}
	return convert(m, func(x, y, luma int) (r, g, b int) {
		u, v := sample(cb, x, y), sample(cr, x, y)
		luma = luma * 19077 >> 8
		return (luma + v*26149>>8 - 14234) >> 6, (luma - u*6419>>8 - v*13320>>8 + 8708) >> 6, (luma + u*33050>>8 - 17685) >> 6
	})
}

// convert makes each pixel from its place and luma.
func convert(m *image.YCbCr, pixel func(x, y, luma int) (r, g, b int)) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, m.Rect.Dx(), m.Rect.Dy()))
	for y := range m.Rect.Dy() {
		row := out.Pix[y*out.Stride:]
		for x := range m.Rect.Dx() {
			r, g, b := pixel(x, y, int(m.Y[y*m.YStride+x]))
			p := row[4*x:][:4]
			p[0], p[1], p[2], p[3] = clamp8(r), clamp8(g), clamp8(b), 255
		}
	}
	return out
}

func clamp8(v int) uint8 { return uint8(min(max(v, 0), 255)) }
