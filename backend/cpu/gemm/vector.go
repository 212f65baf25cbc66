package gemm

import (
	"unsafe"

	"github.com/gesso-go/gesso/tensor"
)

// vectorOps are the packing routines of an instruction set. They work on whole vectors of lanes words; the methods do the
// rest in plain Go. A nil *vectorOps does everything in plain Go.
//
// The arrays have one routine for each way to make words: copied, widened from bfloat16, widened from binary16.
type vectorOps struct {
	lanes int

	// transpose packs lanes·blocks words of K of lanes columns: dst[word·width + column]. Column j is at src+j·stride;
	// of cols columns the last one is repeated. Strides are in bytes.
	transpose [3]func(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)
	// rows packs n words of 2·lanes columns; word i comes from src+i·stride. dst rows are dstStride bytes apart.
	rows [3]func(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)
	// pairs is rows for words that are pairs of two bfloat16 rows.
	pairs func(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

	widenBF16, widenF16   func(dst *float32, src *uint16, blocks int)
	narrowBF16, narrowF16 func(dst *uint16, src *float32, blocks int)

	// These are described at the methods of quantizer and Packed that use them.
	maxAbs       func(src *float32, blocks int) uint32
	maxAbsBF16   func(src *uint16, blocks int) uint32
	quantize     func(dst *byte, src *float32, blocks int, scale float32, flip uint32)
	quantizeBF16 func(dst *byte, src *uint16, blocks int, scale float32, flip uint32)
	dequantize   func(c *float32, offset *int32, scale *float32, blocks int, row float32, next *float32)
}

// widen writes the elements of src, type t, to the float32 words dst.
func (v *vectorOps) widen(dst []uint32, t tensor.DType, src []byte) {
	switch t {
	case tensor.F32:
		copy(wordBytes(dst), src)
	case tensor.BF16:
		i := 0
		if v != nil && len(dst) >= v.lanes {
			i = len(dst) / v.lanes * v.lanes
			v.widenBF16((*float32)(unsafe.Pointer(&dst[0])), (*uint16)(unsafe.Pointer(&src[:2*i][0])), i/v.lanes)
		}
		for ; i < len(dst); i++ {
			dst[i] = uint32(load16(src, 2*i)) << 16
		}
	case tensor.F16:
		i := 0
		if v != nil && len(dst) >= v.lanes {
			i = len(dst) / v.lanes * v.lanes
			v.widenF16((*float32)(unsafe.Pointer(&dst[0])), (*uint16)(unsafe.Pointer(&src[:2*i][0])), i/v.lanes)
		}
		for ; i < len(dst); i++ {
			dst[i] = f32bits(tensor.F16ToFloat32(load16(src, 2*i)))
		}
	}
}

// narrow rounds src to t and writes it to dst.
func (v *vectorOps) narrow(dst []byte, t tensor.DType, src []float32) {
	if len(src) == 0 {
		return
	}
	switch t {
	case tensor.F32:
		copy(dst, tensor.Bytes(src))
	case tensor.BF16:
		d := unsafe.Slice((*uint16)(unsafe.Pointer(&dst[:2*len(src)][0])), len(src))
		i := 0
		if v != nil && len(src) >= v.lanes {
			i = len(src) / v.lanes * v.lanes
			v.narrowBF16(&d[0], &src[0], i/v.lanes)
		}
		for ; i < len(src); i++ {
			d[i] = tensor.Float32ToBF16(src[i])
		}
	case tensor.F16:
		d := unsafe.Slice((*uint16)(unsafe.Pointer(&dst[:2*len(src)][0])), len(src))
		i := 0
		if v != nil && len(src) >= v.lanes {
			i = len(src) / v.lanes * v.lanes
			v.narrowF16(&d[0], &src[0], i/v.lanes)
		}
		for ; i < len(src); i++ {
			d[i] = tensor.Float32ToF16(src[i])
		}
	}
}

func load32(b []byte, i int) uint32 { return *(*uint32)(unsafe.Pointer(&b[i : i+4][0])) }
func load16(b []byte, i int) uint16 { return *(*uint16)(unsafe.Pointer(&b[i : i+2][0])) }
func f32bits(f float32) uint32      { return *(*uint32)(unsafe.Pointer(&f)) }

// wordBytes returns the memory of w.
func wordBytes(w []uint32) []byte {
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 4*len(w))
}
