package gemm

import (
	"unsafe"

	"github.com/gesso-go/gesso/tensor"
)

// packPanel packs K elements k0..k0+kn of up to cols columns of B, from column n0 on, as one panel: dst[word][cols].
// Columns past the last repeat it, since nobody reads their sums.
func (p *Problem) packPanel(k *kernel, dst []uint32, n0, k0, kn int) {
	cols := min(k.cols, p.N-n0)
	size := p.B.DType.Size()
	if p.RowB {
		src := p.B.Data[(k0*p.B.Stride+n0)*size:]
		packRows(k, dst, src, p.B.DType, p.B.Stride, cols, kn)
		return
	}
	src := p.B.Data[(n0*p.B.Stride+k0)*size:]
	packCols(k, dst, src, p.B.DType, p.B.Stride, cols, kn)
}

// packCols packs a panel from B stored N×K: column j of the panel is the row at src[j·stride].
func packCols(k *kernel, dst []uint32, src []byte, t tensor.DType, stride, cols, kn int) {
	w := k.cols
	for j := range w {
		row := src[min(j, cols-1)*stride*t.Size():]
		row = row[:kn*t.Size()]
		switch {
		case k.half || t == tensor.F32:
			i := 0
			for ; i+4 <= len(row); i += 4 {
				dst[i/4*w+j] = load32(row, i)
			}
			if i < len(row) {
				dst[i/4*w+j] = uint32(load16(row, i))
			}
		case t == tensor.BF16:
			for i := range kn {
				dst[i*w+j] = uint32(load16(row, 2*i)) << 16
			}
		case t == tensor.F16:
			for i := range kn {
				dst[i*w+j] = f32bits(tensor.F16ToFloat32(load16(row, 2*i)))
			}
		}
	}
}

// packRows packs a panel from B stored K×N: word i of the panel comes from the row (or the pair of rows) at src[i·stride].
func packRows(k *kernel, dst []uint32, src []byte, t tensor.DType, stride, cols, kn int) {
	w := k.cols
	size := t.Size()
	if !k.half {
		for i := range kn {
			row := dst[i*w:][:w]
			k.widen(row[:cols], t, src[i*stride*size:][:cols*size])
			for j := cols; j < w; j++ {
				row[j] = row[cols-1]
			}
		}
		return
	}
	for i := 0; i < kn; i += 2 {
		row := dst[i/2*w:][:w]
		lo := src[i*stride*size:]
		var hi []byte
		if i+1 < kn {
			hi = src[(i+1)*stride*size:]
		}
		for j := range w {
			x := uint32(load16(lo, 2*min(j, cols-1)))
			if hi != nil {
				x |= uint32(load16(hi, 2*min(j, cols-1))) << 16
			}
			row[j] = x
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
