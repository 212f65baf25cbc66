package imageio

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// Resize returns a U8 picture (N, H, W, C) at another size, by Lanczos' filter with a window of three lobes: what
// Pillow's (13.0) resize makes with LANCZOS, level for level, and so what Diffusers feeds to a VAE.
// Source: Pillow, src/libImaging/Resample.c.
func Resize(pixels *tensor.Array, height, width int) (*tensor.Array, error) {
	n, h, w, channels, err := Convention{Layout: NHWC}.dims(pixels.Shape)
	if err != nil {
		return nil, fmt.Errorf("resize picture: %w", err)
	}
	if pixels.DType != tensor.U8 {
		return nil, fmt.Errorf("resize picture: array %s, expected u8", pixels)
	}
	if err := pixels.Check(); err != nil {
		return nil, fmt.Errorf("resize picture: %w", err)
	}
	if height < 1 || width < 1 {
		return nil, fmt.Errorf("resize picture: size %d by %d, expected at least one pixel", width, height)
	}
	out := tensor.New(tensor.U8, n, height, width, channels)
	size := h * w * channels
	for i := range n {
		p := plane8{pixels.Data[i*size:][:size], h, w, channels}
		// Levels are rounded after each pass, so their order is part of the result.
		if h > height && h-height > 2*(w-width) {
			p = p.tall(height).wide(width)
		} else {
			p = p.wide(width).tall(height)
		}
		copy(out.Data[i*height*width*channels:], p.pix)
	}
	return out, nil
}

// lanczosLobes is the filter's support at the original size.
const lanczosLobes = 3

// fixedBits is the precision of weights: 8 bits are left for the level and 2 for sums beyond it.
const fixedBits = 32 - 8 - 2

// filter is the weights of the input samples, from first on, that make one output sample.
type filter struct {
	first   int
	weights []int32
}

// filters returns the weights of every output sample of a line.
func filters(in, out int) []filter {
	scale := float64(in) / float64(out)
	stretch := max(scale, 1) // a smaller picture averages over more of the larger one
	support := lanczosLobes * stretch
	all := make([]filter, out)
	for i := range all {
		center := float64((float64(i) + 0.5) * scale)
		first := max(int(center-support+0.5), 0)
		last := min(int(center+support+0.5), in)
		w := make([]float64, last-first)
		sum := 0.0
		for j := range w {
			w[j] = lanczos(float64((float64(j+first) - center + 0.5) * (1 / stretch)))
			sum += w[j]
		}
		f := filter{first: first, weights: make([]int32, len(w))}
		for j, v := range w {
			if sum != 0 {
				v /= sum
			}
			f.weights[j] = int32(float64(v*(1<<fixedBits)) + math.Copysign(0.5, v))
		}
		all[i] = f
	}
	return all
}

// lanczos is sinc(x)·sinc(x/3) within the window.
func lanczos(x float64) float64 {
	if x < -lanczosLobes || x >= lanczosLobes {
		return 0
	}
	return sinc(x) * sinc(x/lanczosLobes)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}

// plane8 is one picture of interleaved channels.
type plane8 struct {
	pix            []uint8
	h, w, channels int
}

// wide returns the picture at another width. A pass that keeps the size changes nothing.
func (p plane8) wide(width int) plane8 {
	if width == p.w {
		return p
	}
	out := plane8{make([]uint8, p.h*width*p.channels), p.h, width, p.channels}
	fs := filters(p.w, width)
	for y := range p.h {
		src, dst := p.pix[y*p.w*p.channels:], out.pix[y*width*p.channels:]
		for i, f := range fs {
			for c := range p.channels {
				sum := int32(half)
				at := f.first*p.channels + c
				for _, w := range f.weights {
					sum += int32(src[at]) * w
					at += p.channels
				}
				dst[i*p.channels+c] = clip8(sum)
			}
		}
	}
	return out
}

// tall returns the picture at another height.
func (p plane8) tall(height int) plane8 {
	if height == p.h {
		return p
	}
	row := p.w * p.channels
	out := plane8{make([]uint8, height*row), height, p.w, p.channels}
	sums := make([]int32, row)
	for y, f := range filters(p.h, height) {
		for x := range sums {
			sums[x] = half
		}
		for j, w := range f.weights { // row by row, as memory lies
			for x, v := range p.pix[(f.first+j)*row:][:row] {
				sums[x] += int32(v) * w
			}
		}
		for x, sum := range sums {
			out.pix[y*row+x] = clip8(sum)
		}
	}
	return out
}

// half is what rounds a sum to the nearest level.
const half = 1 << (fixedBits - 1)

func clip8(sum int32) uint8 { return uint8(min(max(sum>>fixedBits, 0), 255)) }

// Luma returns an RGB picture (N, H, W, 3) as grey levels (N, H, W, 1), weighted as Pillow's convert("L") does.
func Luma(pixels *tensor.Array) (*tensor.Array, error) {
	n, h, w, channels, err := Convention{Layout: NHWC}.dims(pixels.Shape)
	if err != nil {
		return nil, fmt.Errorf("grey picture: %w", err)
	}
	if pixels.DType != tensor.U8 {
		return nil, fmt.Errorf("grey picture: array %s, expected u8", pixels)
	}
	if err := pixels.Check(); err != nil {
		return nil, fmt.Errorf("grey picture: %w", err)
	}
	if channels == 1 {
		return pixels, nil
	}
	out := tensor.New(tensor.U8, n, h, w, 1)
	for i := range out.Data {
		p := pixels.Data[3*i:][:3]
		out.Data[i] = uint8((uint32(p[0])*19595 + uint32(p[1])*38470 + uint32(p[2])*7471 + 0x8000) >> 16)
	}
	return out, nil
}
