package imageio

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/tensor"
)

// Layout is the order of a float array's axes.
type Layout uint8

// The layouts; N may be left out.
const (
	NCHW Layout = iota
	NHWC
)

// Range is the interval that a float array's values are in.
type Range uint8

// The ranges.
const (
	Symmetric Range = iota // [-1, 1], a VAE's
	Unit                   // [0, 1]
)

// Convention says how a float array holds a picture. The zero value is a VAE's: NCHW in [-1, 1].
type Convention struct {
	Layout Layout
	Range  Range
}

// dims returns the extents of shape, which has three or four axes and one or three channels.
func (c Convention) dims(shape tensor.Shape) (n, h, w, channels int, err error) {
	s := shape
	if len(s) == 3 {
		s = append(tensor.Shape{1}, s...)
	}
	if len(s) != 4 {
		return 0, 0, 0, 0, fmt.Errorf("shape %v is not a picture's, expected 3 or 4 axes", shape)
	}
	n, h, w, channels = s[0], s[1], s[2], s[3]
	if c.Layout == NCHW {
		n, channels, h, w = s[0], s[1], s[2], s[3]
	}
	if channels != 1 && channels != 3 {
		return 0, 0, 0, 0, fmt.Errorf("shape %v has %d channels, expected 1 or 3", shape, channels)
	}
	if h < 1 || w < 1 || n < 0 {
		return 0, 0, 0, 0, fmt.Errorf("shape %v holds no picture", shape)
	}
	return n, h, w, channels, nil
}

// NonFinite counts NaN and infinite values and returns the index of the first, or -1.
func NonFinite(a *tensor.Array) (count, first int) {
	first = a.FirstNonFinite()
	if first < 0 {
		return 0, -1
	}
	for _, v := range a.Float64s()[first:] {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			count++
		}
	}
	return count, first
}

// NonFiniteError reports values that no picture can be made from, most often from a VAE that overflowed in float16.
type NonFiniteError struct {
	Shape        tensor.Shape
	Count, First int // First is an index into the row-major values
}

func (e *NonFiniteError) Error() string {
	at := e.First
	index := make(tensor.Shape, len(e.Shape))
	for i, stride := range e.Shape.Strides() {
		index[i], at = at/stride, at%stride
	}
	return fmt.Sprintf("picture has %d of %d values that are not finite, the first at %v of %v",
		e.Count, e.Shape.Size(), index, e.Shape)
}

// Denormalize returns a, in [-1, 1], as values in [0, 1] of the same type and shape. Every operation rounds to the type:
// a bf16 picture has fewer shades than its bits could tell.
// Source: VaeImageProcessor.denormalize (diffusers/image_processor.py).
func Denormalize(a *tensor.Array) (*tensor.Array, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("denormalize: %w", err)
	}
	if a.DType == tensor.F64 {
		out := tensor.New(tensor.F64, a.Shape...)
		o := tensor.View[float64](out.Data)
		for i, v := range a.Float64s() {
			o[i] = min(max(float64(v*0.5)+0.5, 0), 1)
		}
		return out, nil
	}
	if a.DType != tensor.F32 && !a.DType.IsHalf() {
		return nil, fmt.Errorf("denormalize: array %s, expected f32, bf16, f16 or f64", a)
	}
	d := a.DType
	out := make([]float32, a.Shape.Size())
	for i, v := range a.Float32s() {
		v = tensor.RoundTo(d, v*0.5)
		v = tensor.RoundTo(d, float32(v)+0.5)
		out[i] = min(max(v, 0), 1) // NaN stays NaN
	}
	return tensor.FromFloat32(out, a.Shape...).Convert(d)
}

// Quantize returns a float picture as a U8 array of shape (N, H, W, C): denormalised in its own type, then in float32
// multiplied by 255 and rounded half to even. NaN or infinite values are a [NonFiniteError].
// Source: VaeImageProcessor.postprocess, numpy_to_pil (diffusers/image_processor.py).
func Quantize(a *tensor.Array, c Convention) (*tensor.Array, error) {
	n, h, w, channels, err := c.dims(a.Shape)
	if err != nil {
		return nil, fmt.Errorf("quantize picture: %w", err)
	}
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("quantize picture: %w", err)
	}
	if count, first := NonFinite(a); count > 0 {
		return nil, &NonFiniteError{Shape: a.Shape.Clone(), Count: count, First: first}
	}
	if c.Range == Symmetric {
		if a, err = Denormalize(a); err != nil {
			return nil, fmt.Errorf("quantize picture: %w", err)
		}
	}
	out := tensor.New(tensor.U8, n, h, w, channels)
	v := a.Float32s()
	if c.Layout == NHWC {
		for i, x := range v {
			out.Data[i] = level(x)
		}
		return out, nil
	}
	plane := h * w
	for i := range n {
		for ch := range channels {
			src := v[(i*channels+ch)*plane:][:plane] // (H, W)
			dst := out.Data[i*plane*channels+ch:]
			for p, x := range src {
				dst[p*channels] = level(x)
			}
		}
	}
	return out, nil
}

// level returns the 8-bit level of a value in [0, 1]. Values outside, which only a caller's own [0, 1] array can hold,
// are clamped.
func level(x float32) uint8 {
	x = float32(min(max(x, 0), 1) * 255)
	return uint8(math.RoundToEven(float64(x)))
}

// Floats returns a U8 picture of shape (N, H, W, C) as a float32 array in the given convention.
// Source: VaeImageProcessor.preprocess (diffusers/image_processor.py).
func Floats(pixels *tensor.Array, c Convention) (*tensor.Array, error) {
	n, h, w, channels, err := Convention{Layout: NHWC}.dims(pixels.Shape)
	if err != nil {
		return nil, fmt.Errorf("picture to floats: %w", err)
	}
	if pixels.DType != tensor.U8 {
		return nil, fmt.Errorf("picture to floats: array %s, expected u8", pixels)
	}
	if err := pixels.Check(); err != nil {
		return nil, fmt.Errorf("picture to floats: %w", err)
	}
	var value [256]float32
	for i := range value {
		value[i] = float32(i) / 255
		if c.Range == Symmetric {
			value[i] = float32(2*value[i]) - 1
		}
	}
	if c.Layout == NHWC {
		out := tensor.New(tensor.F32, n, h, w, channels)
		v := tensor.View[float32](out.Data)
		for i, p := range pixels.Data {
			v[i] = value[p]
		}
		return out, nil
	}
	out := tensor.New(tensor.F32, n, channels, h, w)
	v := tensor.View[float32](out.Data)
	plane := h * w
	for i := range n {
		for ch := range channels {
			dst := v[(i*channels+ch)*plane:][:plane] // (H, W)
			src := pixels.Data[i*plane*channels+ch:]
			for p := range dst {
				dst[p] = value[src[p*channels]]
			}
		}
	}
	return out, nil
}
