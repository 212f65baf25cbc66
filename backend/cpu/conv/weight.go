package conv

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Packed is a weight that was packed once for the kernel that will use it.
type Packed struct {
	b            *gemm.Packed
	o, c, kh, kw int
}

// PackWeight packs w (O, C, KH, KW) for convolutions of images of type x at level. w may be forgotten afterwards.
func PackWeight(pool *par.Pool, level isa.Level, w gemm.Operand, o, c, kh, kw int, x tensor.DType) (*Packed, error) {
	if min(o, c, kh, kw) < 0 {
		return nil, fmt.Errorf("conv: negative size of weight %d×%d×%d×%d", o, c, kh, kw)
	}
	if err := checkDense("weight", w, o*c*kh*kw, 0); err != nil {
		return nil, err
	}
	r := reorder(w, o, c, kh, kw)
	defer r.free()
	b, err := gemm.PackB(pool, level, r.operand, o, c*kh*kw, false, x)
	if err != nil {
		return nil, fmt.Errorf("conv: %w", err)
	}
	return &Packed{b: b, o: o, c: c, kh: kh, kw: kw}, nil
}

// Bytes returns the memory that q holds.
func (q *Packed) Bytes() int { return q.b.Bytes() }

func (q *Packed) fits(p *Problem) error {
	if q.o != p.O || q.c != p.C || q.kh != p.KH || q.kw != p.KW {
		return fmt.Errorf("conv: packed weight is %d×%d×%d×%d, expected %d×%d×%d×%d", q.o, q.c, q.kh, q.kw, p.O, p.C, p.KH, p.KW)
	}
	return nil
}

// reordered is a weight as the rows (O, KH·KW·C).
type reordered struct {
	operand gemm.Operand
	buffer  *[]uint32 // nil: the weight itself
}

var buffers = sync.Pool{New: func() any { return new([]uint32) }}

// reorder brings w, (O, C, KH, KW), into the order (O, KH, KW, C).
func reorder(w gemm.Operand, o, c, kh, kw int) reordered {
	k := c * kh * kw
	w.Stride = k
	if kh*kw == 1 || c == 1 {
		return reordered{operand: w}
	}
	buf := buffers.Get().(*[]uint32)
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
	if size == 4 {
		reorderAs(unsafe.Slice((*uint32)(dst), o*k), unsafe.Slice((*uint32)(src), o*k), o, c, kh*kw)
	} else {
		reorderAs(unsafe.Slice((*uint16)(dst), o*k), unsafe.Slice((*uint16)(src), o*k), o, c, kh*kw)
	}
	r.operand.Data = unsafe.Slice((*byte)(dst), o*k*size)
	return r
}

func reorderAs[T uint16 | uint32](dst, src []T, o, c, taps int) {
	for i := range o {
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
