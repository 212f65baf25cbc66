package attention

import (
	"math"
	"unsafe"

	"github.com/gesso-go/gesso/tensor"
)

// kernels is what one level offers. A panel holds 1, 2 or 3 vectors of queries; arrays over a panel are contiguous.
type kernels struct {
	lanes   int  // queries in a vector
	vectors int  // the most vectors in a panel
	rows    int  // rows of a tile, a divisor of rowPad
	bf16    bool // operands and probabilities are pairs of bfloat16 in 32-bit words

	// tile[v-1] computes rows of C, each v vectors wide: C = C·alpha + A·B, or A·B where alpha is nil. Row r of A at step
	// k is the 32-bit word at a + r·rowStride + k·step bytes; step k of B is the panel row k. Words are floats, or pairs of
	// bfloat16 whose two products are summed.
	tile [3]tileFunc

	// softmax does one step of the online softmax on one vector of queries: see softmaxGo. SoftmaxRound rounds the
	// probabilities to bfloat16, softmaxBF16 makes pairs of them.
	softmax      func(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)
	softmaxRound func(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)
	softmaxBF16  func(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32, p *uint32)

	// panel, if there, does all rows of a product at once in place of tile, with pairs of bfloat16: C (rows, 32) = A (rows, k) ·
	// B (k, 32), or C += A·B with acc 1. k is a multiple of 16 words, as which each row of A lies in memory, so V is packed
	// turned. Panels are then always of 32 queries.
	panel func(rows, k int, a *uint32, rowStride uintptr, b *uint32, c *float32, ldc uintptr, acc int)

	// pairs makes n words, a multiple of 16, of an element of even and one of odd: with bf16 only.
	pairs func(dst *uint32, even, odd *uint16, n int)

	transpose func(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int)                // see transposeGo
	bias      func(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int, scale float32) // see biasGo

	// fetch brings rows of some bytes, stride bytes apart, to the cache, fetchToWrite to be written there; nil where there is no
	// such instruction.
	fetch, fetchToWrite func(p unsafe.Pointer, stride uintptr, rows, bytes int)
}

// rowPad is what numbers of keys and head sizes are padded to in packed K and V: a multiple of every level's rows.
const rowPad = 8

// panelPad is that of kernels with a panel: 16 words of pairs.
const panelPad = 32

type tileFunc = func(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)

var portable = kernels{lanes: 16, vectors: 1, rows: 4, tile: [3]tileFunc{tileGo}, softmax: softmaxGo, softmaxRound: softmaxRoundGo, transpose: transposeGo, bias: biasGo}

// tileGo is the portable tile of 4 rows and 16 queries, in squares of 2 and 4 that stay in registers.
func tileGo(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32) {
	const lanes = 16
	out := unsafe.Slice(c, 4*lanes)
	for r := range uintptr(2) {
		for q := 0; q < lanes; q += 4 {
			var c00, c01, c02, c03, c10, c11, c12, c13 float32
			p0 := unsafe.Add(a, 2*r*rowStride)
			bs := unsafe.Add(b, 4*q)
			for i := range uintptr(k) {
				x0 := *(*float32)(unsafe.Add(p0, i*step))
				x1 := *(*float32)(unsafe.Add(p0, i*step+rowStride))
				y := (*[4]float32)(unsafe.Add(bs, i*4*lanes))
				y0, y1, y2, y3 := y[0], y[1], y[2], y[3]
				c00 += x0 * y0
				c01 += x0 * y1
				c02 += x0 * y2
				c03 += x0 * y3
				c10 += x1 * y0
				c11 += x1 * y1
				c12 += x1 * y2
				c13 += x1 * y3
			}
			o0 := (*[4]float32)(out[int(2*r)*lanes+q:])
			o1 := (*[4]float32)(out[int(2*r+1)*lanes+q:])
			if alpha != nil {
				f := (*[4]float32)(unsafe.Add(unsafe.Pointer(alpha), 4*q))
				c00, c01, c02, c03 = c00+o0[0]*f[0], c01+o0[1]*f[1], c02+o0[2]*f[2], c03+o0[3]*f[3]
				c10, c11, c12, c13 = c10+o1[0]*f[0], c11+o1[1]*f[1], c12+o1[2]*f[2], c13+o1[3]*f[3]
			}
			*o0 = [4]float32{c00, c01, c02, c03}
			*o1 = [4]float32{c10, c11, c12, c13}
		}
	}
}

// softmaxGo takes a column block s of rows scores for 16 queries, rows stride bytes apart, to p = 2^(score·c - top) in
// place. It updates top, the largest score·c of each query so far, and sum, the sum of its p, and sets alpha =
// 2^(old top - new top), by which earlier results must be multiplied.
func softmaxGo(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32) {
	softmaxBy(exp2, false, s, stride, rows, c, top, sum, alpha)
}

// softmaxRoundGo is softmaxGo for bfloat16 operands. As in PyTorch, p is taken from [exp2Fast] and rounded to bfloat16
// in place, while sum is that of the unrounded p.
func softmaxRoundGo(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32) {
	softmaxBy(exp2Fast, true, s, stride, rows, c, top, sum, alpha)
}

func softmaxBy(exp func(x float32) float32, round bool, s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32) {
	const lanes = 16
	tops, sums, alphas := unsafe.Slice(top, lanes), unsafe.Slice(sum, lanes), unsafe.Slice(alpha, lanes)
	row := func(j int) *[lanes]float32 {
		return (*[lanes]float32)(unsafe.Add(unsafe.Pointer(s), uintptr(j)*stride))
	}
	var high [lanes]float32
	for q := range high {
		high[q] = minusInf
	}
	for j := range rows {
		for q, v := range row(j) {
			if v > high[q] {
				high[q] = v
			}
		}
	}
	for q := range high {
		high[q] = max(high[q]*c, tops[q])
		old := tops[q]
		tops[q] = high[q]
		if high[q] == minusInf {
			high[q] = 0 // no key seen yet
		}
		alphas[q] = exp2(old - high[q])
		sums[q] *= alphas[q]
	}
	for j := range rows {
		r := row(j)
		for q, v := range r {
			p := exp(v*c - high[q])
			sums[q] += p
			if round {
				p = tensor.RoundTo(tensor.BF16, p)
			}
			r[q] = p
		}
	}
}

var minusInf = float32(math.Inf(-1))

// exp2 is 2^x for x that isn't above 0, with a relative error below 2e-7; what is below the normal range is 0 or tiny.
func exp2(x float32) float32 {
	if x < -127 {
		return 0
	}
	if x != x {
		return x
	}
	n := float32(math.RoundToEven(float64(x)))
	r := x - n
	p := float32(0.00015576450095977634) // the coefficients are explained in gen
	p = p*r + 0.0013394566485658288
	p = p*r + 0.009617839008569717
	p = p*r + 0.05550353229045868
	p = p*r + 0.24022650718688965
	p = p*r + 0.6931471824645996
	p = p*r + 1
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

// exp2Fast is 2^x for x that isn't above 0 with a relative error below 1.2e-4: the bits of a float32 as a number are a
// piecewise linear logarithm, corrected by a cubic (Malossi, Ineichen, Bekas and Curioni 2015). PyTorch's attention takes
// its probabilities of half types from it, so these are rounded as there.
func exp2Fast(x float32) float32 {
	if x < -127 {
		return 0
	}
	if x != x {
		return x
	}
	f := x - float32(math.Floor(float64(x)))
	t := x - (((-0.079204240219773236*f-0.22433836478672356)*f+0.30354260500649682)*f + 0.00010703434948458272)
	return math.Float32frombits(uint32(max(t*(1<<23)+127<<23, 0)))
}

// transposeGo transposes 8 rows of n words into n rows of 8; strides are in bytes, n is a multiple of 4 (the assembly
// takes multiples of 8 and leaves the rest).
func transposeGo(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int) {
	for i := range 8 {
		for d, v := range unsafe.Slice((*uint32)(unsafe.Add(unsafe.Pointer(src), uintptr(i)*srcStride)), n) {
			*(*uint32)(unsafe.Add(unsafe.Pointer(dst), uintptr(d)*dstStride+4*uintptr(i))) = v
		}
	}
}

const log2e = math.Log2E

// lowScore is what biased scores below it are raised to: masks written as a bias of the most negative float32 then
// don't overflow when they are multiplied by log₂e, and a row of nothing else is a uniform average, as in PyTorch. -Inf
// stays -Inf.
const lowScore = -2e38

// biasGo adds 8 rows of n biases (queries, keys) to n rows of 8 scores (keys, queries), and takes them to powers of two:
// score = (score·scale + bias)·log₂e. Strides are in bytes; the assembly takes multiples of 8 keys and leaves the rest.
func biasGo(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int, scale float32) {
	for i := range 8 {
		for j, b := range unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(src), uintptr(i)*srcStride)), n) {
			s := (*float32)(unsafe.Add(unsafe.Pointer(dst), uintptr(j)*dstStride+4*uintptr(i)))
			*s = biased(*s, b, scale)
		}
	}
}

func biased(score, bias, scale float32) float32 {
	x := score*scale + bias
	if x < lowScore && x != minusInf {
		x = lowScore
	}
	return x * log2e
}
