package gemm

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// QuantizeRows writes rows·k bytes, int8, to dst and a scale for each row: src[i, j] ≈ dst[i, j]·scale[i]. With m the
// largest magnitude of a row, in float32 arithmetic:
//
//	scale = m/127     dst = src·(127/m), rounded to even
//
// A row whose m is below 2⁻¹²⁰ is zero; one with a NaN or an infinity has NaN as its scale.
func QuantizeRows(pool *par.Pool, level isa.Level, dst []byte, scale []float32, src Operand, rows, k int) error {
	if err := src.check("the matrix to quantise", rows, k); err != nil {
		return err
	}
	if len(dst) < rows*k || len(scale) < rows {
		return fmt.Errorf("gemm: %d bytes and %d scales for quantised rows, expected %d and %d", len(dst), len(scale), rows*k, rows)
	}
	size := src.DType.Size()
	q := quantizer{vec: vectorsOf(level)}
	scratch := make([][]uint32, pool.Workers())
	pool.For(rows, 8, func(worker, lo, hi int) {
		for i := lo; i < hi; i++ {
			t, row := src.DType, src.Data[i*src.Stride*size:][:k*size]
			if !q.takes(t) {
				scratch[worker] = grow(scratch[worker], k)
				q.vec.widen(scratch[worker], t, row)
				t, row = tensor.F32, wordBytes(scratch[worker])
			}
			var inv float32
			scale[i], inv = q.scale(t, row)
			q.bytes(dst[i*k:][:k], t, row, inv)
		}
	})
	return nil
}

// quantizer rounds rows of float32 or bfloat16 to int8.
type quantizer struct {
	vec  *vectorOps
	flip uint32 // bits that are exchanged in four bytes: 0, or 0x80808080 to add 128 to each
}

// least is the smallest magnitude that counts: below it 127/m may overflow.
const least = 0x1p-120

// takes reports whether rows of type t need not be widened.
func (q *quantizer) takes(t tensor.DType) bool { return t == tensor.F32 || t == tensor.BF16 }

// scale returns the scale of a row of type t and its inverse.
func (q *quantizer) scale(t tensor.DType, row []byte) (scale, inverse float32) {
	var bits uint32 // of the largest magnitude: NaN and infinities are larger than all numbers
	size := t.Size()
	i, n := 0, len(row)/size
	if v := q.vec; v != nil && n >= v.lanes {
		i = n / v.lanes * v.lanes
		p := unsafe.Pointer(&row[:i*size][0])
		if t == tensor.BF16 {
			bits = v.maxAbsBF16((*uint16)(p), i/v.lanes)
		} else {
			bits = v.maxAbs((*float32)(p), i/v.lanes)
		}
	}
	for ; i < n; i++ {
		bits = max(bits, math.Float32bits(element(t, row, i))&0x7fffffff)
	}
	switch m := math.Float32frombits(bits); {
	case !(m <= math.MaxFloat32):
		return float32(math.NaN()), 0
	case m < least:
		return 0, 0
	default:
		return m / 127, 127 / m
	}
}

// bytes quantises the first elements of a row of type t, one for each byte of dst.
func (q *quantizer) bytes(dst []byte, t tensor.DType, row []byte, inverse float32) {
	i, n := 0, len(dst)
	if v := q.vec; v != nil && n >= v.lanes {
		i = n / v.lanes * v.lanes
		p := unsafe.Pointer(&row[:i*t.Size()][0])
		if t == tensor.BF16 {
			v.quantizeBF16(&dst[0], (*uint16)(p), i/v.lanes, inverse, q.flip)
		} else {
			v.quantize(&dst[0], (*float32)(p), i/v.lanes, inverse, q.flip)
		}
	}
	for ; i < n; i++ {
		x := float64(element(t, row, i) * inverse)
		dst[i] = byte(int8(max(-128, min(math.RoundToEven(x), 127)))) ^ byte(q.flip)
	}
}

// element returns element i of a row of float32 or bfloat16.
func element(t tensor.DType, row []byte, i int) float32 {
	if t == tensor.BF16 {
		return tensor.BF16ToFloat32(load16(row, 2*i))
	}
	return math.Float32frombits(load32(row, 4*i))
}

// quantizeA packs rows lo to hi of the strip of A, all of K, quantised; scales are by row of the strip.
func (r *run) quantizeA(worker, lo, hi int) {
	p, s := &r.p, &r.workers[worker]
	q := quantizer{vec: r.k.vec}
	if r.k.flip {
		q.flip = 0x80808080
	}
	for i := lo; i < hi; i++ {
		t, row := p.A.DType, []byte(nil)
		if p.Source == nil && q.takes(t) {
			row = p.A.Data[(r.row+i)*p.A.Stride*t.Size():][:p.K*t.Size()]
		} else {
			s.row = grow(s.row, p.K)
			s.a = Block{vec: r.k.vec, data: s.row, stride: p.K}
			p.fillA(&s.a, r.row+i, 1, 0, p.K, p.K)
			t, row = tensor.F32, wordBytes(s.row)
		}
		var inv float32
		r.scales[i], inv = q.scale(t, row)
		for w, block := 0, 0; w < r.words; w, block = w+r.wordBlock, block+1 {
			dst := wordBytes(r.a[(block*r.rows+i)*r.strideA:][:min(r.wordBlock, r.words-w)])
			n := min(len(dst), p.K-4*w)
			q.bytes(dst[:n], t, row[4*w*t.Size():], inv)
			for j := n; j < len(dst); j++ {
				dst[j] = byte(q.flip)
			}
		}
	}
}

// offsets computes what a kernel that adds 128 to A's bytes has too much in the sums of a panel: 128·Σb.
func (k *kernel) offsets(dst []int32, panel []uint32) {
	if !k.flip {
		return
	}
	words := len(panel) / k.cols
	t := k.tiles[len(k.tiles)-1]
	a := make([]uint32, words)
	for i := range a {
		a[i] = 0x80808080
	}
	c := make([]float32, t.rows*k.cols)
	t.run(words, &a[0], 0, &panel[0], &c[0], uintptr(4*k.cols), 0, nil)
	for j := range dst {
		dst[j] = int32(math.Float32bits(c[j]))
	}
}

// dequantize makes the sums c of columns from col on float32: (c - offset)·row·scale. Meanwhile as many sums at next may be
// fetched to the first cache.
func (q *Packed) dequantize(c []float32, col int, row float32, scale []float32, next *float32) {
	offset, scale := q.offset[col:][:len(c)], scale[col:][:len(c)]
	i := 0
	if v := q.kernel.vec; v != nil && len(c) >= v.lanes {
		i = len(c) / v.lanes * v.lanes
		v.dequantize(&c[0], &offset[0], &scale[0], i/v.lanes, row, next)
	}
	for ; i < len(c); i++ {
		c[i] = float32(int32(math.Float32bits(c[i]))-offset[i]) * row * scale[i]
	}
}
