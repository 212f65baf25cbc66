package conv

import (
	"fmt"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Packs reports whether p's convolution at level can take its weight packed: not where there are few output channels.
func (p *Problem) Packs(level isa.Level) bool { return fewKernel(level, p) == nil }

// PackWeight packs w (O, C, taps), taps being KH·KW, for images of type x at level, into mem: gemm.PackedBytes of memory for
// O columns and K of taps·C, aligned to 64 bytes, which must stay as long as the result is used; nil to have it made. w may be
// forgotten afterwards.
func PackWeight(mem []byte, pool *par.Pool, level isa.Level, w gemm.Operand, o, c, taps int, x tensor.DType) (*gemm.Packed, error) {
	if min(o, c, taps) < 0 {
		return nil, fmt.Errorf("conv: negative size of weight %d×%d×%d", o, c, taps)
	}
	if err := checkDense("weight", w, o*c*taps, 0); err != nil {
		return nil, err
	}
	r := reorder(pool, w, o, c, taps)
	defer r.free()
	q, err := gemm.PackBInto(mem, pool, level, r.operand, o, c*taps, false, x)
	if err != nil {
		return nil, fmt.Errorf("conv: %w", err)
	}
	return q, nil
}

// UnpackWeight writes what PackWeight packed, (O, C, taps), to dst. It fails where q doesn't unpack.
func UnpackWeight(dst []byte, q *gemm.Packed, o, c, taps int) error {
	if err := q.Unpack(dst); err != nil {
		return fmt.Errorf("conv: %w", err)
	}
	n := o * c * taps
	if n == 0 {
		return nil
	}
	if size := q.DType().Size(); size == 4 {
		restore(unsafe.Slice((*uint32)(unsafe.Pointer(&dst[0])), n), o, c, taps)
	} else {
		restore(unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), n), o, c, taps)
	}
	return nil
}

// restore brings w, (O, taps, C), into the order (O, C, taps).
func restore[T uint16 | uint32](w []T, o, c, taps int) {
	row := make([]T, c*taps)
	for i := range o {
		d := w[i*c*taps:][:c*taps]
		copy(row, d)
		for t := range taps {
			for j, v := range row[t*c:][:c] {
				d[j*taps+t] = v
			}
		}
	}
}

// reordered is a weight as the rows (O, taps·C).
type reordered struct {
	operand gemm.Operand
	buffer  *[]uint32 // nil: the weight itself
}

var buffers par.Kept[[]uint32]

// reorder brings w, (O, C, taps), into the order (O, taps, C).
func reorder(pool *par.Pool, w gemm.Operand, o, c, taps int) reordered {
	k := c * taps
	w.Stride = k
	if taps == 1 || c == 1 {
		return reordered{operand: w}
	}
	buf := buffers.Get()
	size := w.DType.Size()
	words := (o*k*size + 3) / 4
	if cap(*buf) < words {
		*buf = make([]uint32, words)
	}
	r := reordered{operand: gemm.Operand{DType: w.DType, Stride: k}, buffer: buf}
	if words == 0 {
		return r
	}
	dst, src := unsafe.Pointer(&(*buf)[:words][0]), unsafe.Pointer(&w.Data[0])
	pool.For(o, max(1, 1<<14/k), func(_, lo, hi int) {
		if size == 4 {
			reorderAs(unsafe.Slice((*uint32)(dst), o*k), unsafe.Slice((*uint32)(src), o*k), lo, hi, c, taps)
		} else {
			reorderAs(unsafe.Slice((*uint16)(dst), o*k), unsafe.Slice((*uint16)(src), o*k), lo, hi, c, taps)
		}
	})
	r.operand.Data = unsafe.Slice((*byte)(dst), o*k*size)
	return r
}

// reorderAs reorders rows lo to hi.
func reorderAs[T uint16 | uint32](dst, src []T, lo, hi, c, taps int) {
	for i := lo; i < hi; i++ {
		d, s := dst[i*c*taps:][:c*taps], src[i*c*taps:][:c*taps]
		for t := range taps {
			row := d[t*c:][:c]
			for j := range row {
				row[j] = s[j*taps+t]
			}
		}
	}
}

func (r *reordered) free() {
	if r.buffer != nil {
		buffers.Put(r.buffer)
	}
}
