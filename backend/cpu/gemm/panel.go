package gemm

import "github.com/gesso-go/gesso/tensor"

// packPanel packs K elements k0..k0+kn of up to cols columns of B, from column n0 on, as one panel: dst[word][cols].
// Columns past the last repeat it, since nobody reads their sums.
func (p *Problem) packPanel(k *kernel, dst []uint32, n0, k0, kn int) {
	cols := min(k.cols, p.N-n0)
	size := p.B.DType.Size()
	clear(dst[(kn+k.perWord()-1)/k.perWord()*k.cols : k.words(kn)*k.cols])
	if p.RowB {
		packRows(k, dst, p.B.Data[(k0*p.B.Stride+n0)*size:], p.B.DType, p.B.Stride, cols, kn)
		return
	}
	packCols(k, dst, p.B.Data[(n0*p.B.Stride+k0)*size:], p.B.DType, p.B.Stride, cols, kn)
}

// wordSource returns the index into vectorOps' arrays of the routine that makes words of k from elements of type t.
func (k *kernel) wordSource(t tensor.DType) int {
	switch {
	case k.kind != wordF32 || t == tensor.F32:
		return 0
	case t == tensor.BF16:
		return 1
	}
	return 2
}

// packCols packs a panel from B stored N×K: column j of the panel is the row at src[j·stride].
func packCols(k *kernel, dst []uint32, src []byte, t tensor.DType, stride, cols, kn int) {
	done := 0 // words
	strideBytes := stride * t.Size()
	if v := k.vec; v != nil {
		blocks := kn / k.perWord() / v.lanes
		if blocks > 0 {
			f := v.transpose[k.wordSource(t)]
			for j := 0; j < k.cols; j += v.lanes {
				first := min(j, cols-1)
				f(&dst[j], uintptr(k.cols)*4, &src[first*strideBytes], uintptr(strideBytes), max(cols-j, 1), blocks)
			}
		}
		done = blocks * v.lanes
	}
	w := k.cols
	for j := range w {
		row := src[min(j, cols-1)*strideBytes:]
		row = row[:kn*t.Size()]
		switch k.wordSource(t) {
		case 0:
			i := 4 * done
			for ; i+4 <= len(row); i += 4 {
				dst[i/4*w+j] = load32(row, i)
			}
			if i < len(row) {
				var last [4]byte
				copy(last[:], row[i:])
				dst[i/4*w+j] = load32(last[:], 0)
			}
		case 1:
			for i := done; i < kn; i++ {
				dst[i*w+j] = uint32(load16(row, 2*i)) << 16
			}
		case 2:
			for i := done; i < kn; i++ {
				dst[i*w+j] = f32bits(tensor.F16ToFloat32(load16(row, 2*i)))
			}
		}
	}
}

// packRows packs a panel from B stored K×N: word i of the panel comes from the row, or the pair of rows, at src[i·stride].
func packRows(k *kernel, dst []uint32, src []byte, t tensor.DType, stride, cols, kn int) {
	w, size := k.cols, t.Size()
	done := 0 // elements
	if v := k.vec; v != nil && cols == w {
		n := kn / k.perWord()
		done = n * k.perWord()
		switch {
		case n == 0:
		case k.kind == wordBF16:
			v.pairs(&dst[0], uintptr(w)*4, &src[0], uintptr(stride*size), n)
		default:
			v.rows[k.wordSource(t)](&dst[0], uintptr(w)*4, &src[0], uintptr(stride*size), n)
		}
	}
	if k.kind == wordF32 {
		for i := done; i < kn; i++ {
			row := dst[i*w:][:w]
			k.vec.widen(row[:cols], t, src[i*stride*size:][:cols*size])
			for j := cols; j < w; j++ {
				row[j] = row[cols-1]
			}
		}
		return
	}
	for i := done; i < kn; i += 2 {
		row := dst[i/2*w:][:w]
		lo := src[i*stride*size:]
		var hi []byte // absent after the last row of an odd K: zero
		if i+1 < kn {
			hi = src[(i+1)*stride*size:]
		}
		for j := range w {
			at := 2 * min(j, cols-1)
			row[j] = uint32(load16(lo, at))
			if hi != nil {
				row[j] |= uint32(load16(hi, at)) << 16
			}
		}
	}
}
