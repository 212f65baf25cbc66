package gemm

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
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
		row := grow(scratch[worker], k)
		scratch[worker] = row
		for i := lo; i < hi; i++ {
			q.vec.widen(row, src.DType, src.Data[i*src.Stride*size:][:k*size])
			var inv float32
			scale[i], inv = q.scale(row)
			q.bytes(dst[i*k:][:k], row, inv)
		}
	})
	return nil
}

// quantizer rounds rows of float32 to int8.
type quantizer struct {
	vec  *vectorOps
	flip uint32 // bits that are exchanged in four bytes: 0, or 0x80808080 to add 128 to each
}

// least is the smallest magnitude that counts: below it 127/m may overflow.
const least = 0x1p-120

// scale returns a row's scale and its inverse.
func (q *quantizer) scale(row []uint32) (scale, inverse float32) {
	var bits uint32 // of the largest magnitude: NaN and infinities are larger than all numbers
	i := 0
	if q.vec != nil && len(row) >= q.vec.lanes {
		i = len(row) / q.vec.lanes * q.vec.lanes
		bits = q.vec.maxAbs((*float32)(unsafe.Pointer(&row[0])), i/q.vec.lanes)
	}
	for _, x := range row[i:] {
		bits = max(bits, x&0x7fffffff)
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

// bytes quantises a row.
func (q *quantizer) bytes(dst []byte, row []uint32, inverse float32) {
	i := 0
	if q.vec != nil && len(row) >= q.vec.lanes {
		i = len(row) / q.vec.lanes * q.vec.lanes
		q.vec.quantize(&dst[:i][0], (*float32)(unsafe.Pointer(&row[0])), i/q.vec.lanes, inverse, q.flip)
	}
	for ; i < len(row); i++ {
		x := float64(math.Float32frombits(row[i]) * inverse)
		dst[i] = byte(int8(max(-128, min(math.RoundToEven(x), 127)))) ^ byte(q.flip)
	}
}

// fill packs rows lo to hi of the strip of A that starts at row p0, all of K, quantised; scales are by row of the strip.
func (r *run) quantizeA(worker, lo, hi int) {
	p, s := &r.p, &r.workers[worker]
	q := quantizer{vec: r.k.vec}
	if r.k.flip {
		q.flip = 0x80808080
	}
	s.row = grow(s.row, p.K)
	s.quant = grow(s.quant, r.words)
	line := Block{vec: r.k.vec, data: s.row, stride: p.K}
	s.a = line
	bytes := wordBytes(s.quant)
	for i := lo; i < hi; i++ {
		p.fillA(&s.a, r.row+i, 1, 0, p.K, p.K)
		var inv float32
		r.scales[i], inv = q.scale(s.row)
		q.bytes(bytes[:p.K], s.row, inv)
		for j := p.K; j < len(bytes); j++ {
			bytes[j] = byte(q.flip)
		}
		for w, block := 0, 0; w < r.words; w, block = w+r.wordBlock, block+1 {
			copy(r.a[(block*r.rows+i)*r.strideA:], s.quant[w:min(w+r.wordBlock, r.words)])
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

// dequantize makes the sums c of columns from col on float32: (c - offset)·row·scale.
func (q *Packed) dequantize(c []float32, col int, row float32, scale []float32) {
	offset, scale := q.offset[col:][:len(c)], scale[col:][:len(c)]
	i := 0
	if v := q.kernel.vec; v != nil && len(c) >= v.lanes {
		i = len(c) / v.lanes * v.lanes
		v.dequantize(&c[0], &offset[0], &scale[0], i/v.lanes, row)
	}
	for ; i < len(c); i++ {
		c[i] = float32(int32(math.Float32bits(c[i]))-offset[i]) * row * scale[i]
	}
}
