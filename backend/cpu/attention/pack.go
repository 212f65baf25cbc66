package attention

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/vec"
	"github.com/gesso-go/gesso/tensor"
)

// layout says how one key head's K and V are packed, in 32-bit words:
//
//	K  keys rows of kStride words: D floats, or D/2 pairs (d, d+1) of bfloat16
//	V  one row of vStride words per key (floats), or per two keys (pairs of their bfloat16 elements); for kernels with a panel
//	   turned, one row of vStride such pairs per element of D
//
// Keys and D are padded with zeros to multiples of rowPad, or of panelPad. Strides end half a cache line off a power of two, so that
// columns spread over the sets of the caches.
type layout struct {
	pair             int // elements in a word along the contracted axis: 1, or 2 for bfloat16
	keys             int // Nk padded
	depth            int // D padded
	kStride, vStride int
	kWords, vWords   int
}

func newLayout(k *kernels, p *Problem) layout {
	pad := rowPad
	if k.panel != nil {
		pad = panelPad
	}
	l := layout{pair: 1, keys: roundUp(p.Nk, pad), depth: roundUp(p.D, pad)}
	if k.bf16 {
		l.pair = 2
	}
	l.kStride = roundUp(l.depth/l.pair, 16) + 16
	l.vStride = roundUp(l.depth, 16) + 16
	l.kWords = l.keys * l.kStride
	l.vWords = l.keys / l.pair * l.vStride
	if k.panel != nil {
		l.vStride = l.keys/l.pair + 16
		l.vWords = l.depth * l.vStride
	}
	return l
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func halves(b []byte) []uint16 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(&b[0])), len(b)/2)
}

func floats(b []byte) []float32 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// halfWords and words show the same memory as another type.
func halfWords(w []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(&w[0])), 2*len(w))
}

func words(w []float32) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(&w[0])), len(w)) }

// row widens the D elements of v at the given offset (in elements) into dst.
func row(f *vec.Funcs, dst []float32, v *View, d tensor.DType, off int) {
	switch n := len(dst); d {
	case tensor.BF16:
		f.FromBF16(dst, halves(v.Data)[off:off+n])
	case tensor.F16:
		f.FromF16(dst, halves(v.Data)[off:off+n])
	default:
		copy(dst, floats(v.Data)[off:off+n])
	}
}

// packK fills rows [lo, hi) of a packed K; rows from Nk on become zeros.
func (r *runner) packK(dst []float32, batch, head, lo, hi int) {
	l, p := &r.l, r.p
	for j := lo; j < hi; j++ {
		out := dst[j*l.kStride : j*l.kStride+l.depth/l.pair]
		if j >= p.Nk {
			clear(out)
			continue
		}
		off := batch*p.K.Batch + j*p.K.Token + head*p.K.Head
		if l.pair == 2 {
			h := halfWords(out)
			copy(h, halves(p.K.Data)[off:off+p.D])
			clear(h[p.D:])
		} else {
			row(r.f, out[:p.D], &p.K, p.DType, off)
			clear(out[p.D:])
		}
	}
}

// packV fills keys [lo, hi) of a packed V; lo and hi are even, or multiples of 16 where V is turned, keys from Nk on count as
// zeros. Tmp holds 8·depth floats.
func (r *runner) packV(dst, tmp []float32, batch, head, lo, hi int) {
	l, p := &r.l, r.p
	if l.pair == 1 {
		for j := lo; j < hi; j++ {
			out := dst[j*l.vStride : j*l.vStride+l.depth]
			if j >= p.Nk {
				clear(out)
				continue
			}
			row(r.f, out[:p.D], &p.V, p.DType, batch*p.V.Batch+j*p.V.Token+head*p.V.Head)
			clear(out[p.D:])
		}
		return
	}
	for j := lo; j < hi; j += 2 {
		if r.k.panel == nil {
			r.pairRow(words(dst[j/2*l.vStride:][:l.depth]), batch, head, j)
			continue
		}
		i := (j - lo) / 2 % 8
		r.pairRow(words(tmp[i*l.depth:][:l.depth]), batch, head, j)
		if i == 7 {
			r.k.transpose(&dst[j/2-7], uintptr(l.vStride)*4, &tmp[0], uintptr(l.depth)*4, l.depth)
		}
	}
}

// pairRow makes the words of keys j and j+1 of V.
func (r *runner) pairRow(out []uint32, batch, head, j int) {
	p := r.p
	if j >= p.Nk {
		clear(out)
		return
	}
	src := halves(p.V.Data)
	off := batch*p.V.Batch + j*p.V.Token + head*p.V.Head
	even := src[off : off+p.D]
	clear(out[p.D:])
	out = out[:len(even)]
	if j+1 >= p.Nk {
		for i, v := range even {
			out[i] = uint32(v)
		}
		return
	}
	odd := src[off+p.V.Token : off+p.V.Token+p.D]
	whole := len(even) &^ 15
	r.k.pairs(&out[0], &even[0], &odd[0], whole)
	for i := whole; i < len(even); i++ {
		out[i] = uint32(even[i]) | uint32(odd[i])<<16
	}
}

// packQ transposes queries [q0, q0+n) into a panel of width queries: dst (depth/pair, width) words. Queries from n on are
// zeros. Tmp holds 8·depth floats.
func (r *runner) packQ(dst, tmp []float32, batch, head, q0, n, width int) {
	l, p := &r.l, r.p
	rows := l.depth / l.pair
	for q := 0; q < width; q += 8 {
		for i := range 8 {
			out := tmp[i*rows : (i+1)*rows]
			if q+i >= n {
				clear(out)
				continue
			}
			off := batch*p.Q.Batch + (q0+q+i)*p.Q.Token + head*p.Q.Head
			if l.pair == 2 {
				h := halfWords(out)
				copy(h, halves(p.Q.Data)[off:off+p.D])
				clear(h[p.D:])
			} else {
				row(r.f, out[:p.D], &p.Q, p.DType, off)
				clear(out[p.D:])
			}
		}
		r.k.transpose(&dst[q], uintptr(width)*4, &tmp[0], uintptr(rows)*4, rows)
	}
}

// store divides a finished panel o (depth, width) by its sums and writes queries [q0, q0+n) of the result. Tmp holds
// 8·depth floats.
func (r *runner) store(o, sum, tmp []float32, batch, head, q0, n, width int) {
	p, depth := r.p, r.l.depth
	for q := 0; q < n; q += 8 {
		// The columns of 8 queries are the rows of the transpose; o's rows are taken 8 at a time.
		for d := 0; d < depth; d += 8 {
			r.k.transpose(&tmp[d], uintptr(depth)*4, &o[d*width+q], uintptr(width)*4, 8)
		}
		for i := range min(8, n-q) {
			inv := float32(0) // no key seen
			if s := sum[q+i]; s != 0 {
				inv = 1 / s
			}
			line := tmp[i*depth : i*depth+p.D]
			off := batch*p.Out.Batch + (q0+q+i)*p.Out.Token + head*p.Out.Head
			switch p.DType {
			case tensor.BF16:
				r.f.MulScalar(line, line, inv)
				r.f.ToBF16(halves(p.Out.Data)[off:off+p.D], line)
			case tensor.F16:
				r.f.MulScalar(line, line, inv)
				r.f.ToF16(halves(p.Out.Data)[off:off+p.D], line)
			default:
				r.f.MulScalar(floats(p.Out.Data)[off:off+p.D], line, inv)
			}
		}
	}
}
