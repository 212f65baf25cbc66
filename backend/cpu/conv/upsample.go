package conv

import (
	"fmt"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// RunUpsampled is the convolution of an image of which every pixel is repeated twice along height and width, without that
// image: p is about the small one, with a kernel of 3×3, stride 1 and padding 1, and the result has 2H × 2W pixels.
//
// The pixels of the result with even and odd coordinates make four images. Of each, a pixel sees 2×2 pixels of the small
// image only, with the sums of the weights that meet the same pixel: 4 products instead of 9. The sums are taken in float32
// and rounded to the weight's type.
func RunUpsampled(pool *par.Pool, level isa.Level, p *Problem, emit gemm.Emit) error {
	if p.KH != 3 || p.KW != 3 || max(p.StrideY, 1) != 1 || max(p.StrideX, 1) != 1 || p.Pad != Same(1) || p.Packed != nil {
		return fmt.Errorf("conv: upsampled: kernel %d×%d, strides %d and %d, padding %v: expected 3×3, 1 and 1, padding 1", p.KH, p.KW, p.StrideY, p.StrideX, p.Pad)
	}
	if err := p.check(); err != nil {
		return err
	}
	u := upsamplings.Get()
	defer upsamplings.Put(u)
	k := 4 * p.C
	size := p.Weight.DType.Size()
	phase := p.O * k // elements of one phase's weight
	u.words = grow(u.words, (4*phase*size+3)/4)
	for len(u.rows) < pool.Workers() {
		u.rows = append(u.rows, nil)
	}
	for i := range u.rows {
		u.rows[i] = grow(u.rows[i], (9+16)*p.C)
	}
	weights := tensor.Bytes(u.words)
	pool.For(p.O, max(1, 1<<14/max(k, 1)), func(worker, lo, hi int) {
		for o := lo; o < hi; o++ {
			sumWeights(weights, phase, p, o, u.rows[worker])
		}
	})
	for py := range 2 {
		for px := range 2 {
			q := *p
			q.KH, q.KW = 2, 2
			q.Pad = Pad{Top: 1 - py, Bottom: py, Left: 1 - px, Right: px}
			g := gemm.Problem{M: p.N * p.H * p.W, N: p.O, K: k, Source: newPatches(&q),
				B: gemm.Operand{DType: p.Weight.DType, Data: weights[(2*py+px)*phase*size:], Stride: k}}
			err := gemm.Run(pool, level, &g, func(worker, row, col int, acc []float32) {
				line := row / p.W // image · H + y
				emit(worker, ((2*line+py)*p.W+row%p.W)*2+px, col, acc)
			})
			if err != nil {
				return fmt.Errorf("conv: %w", err)
			}
		}
	}
	return nil
}

// upsampling is memory kept between calls.
type upsampling struct {
	words []float32   // the weights of the four phases
	rows  [][]float32 // of each worker
}

var upsamplings par.Kept[upsampling]

// sumWeights writes output channel o of the four phases' weights, each (O, 2, 2, C), phase elements apart.
func sumWeights(dst []byte, phase int, p *Problem, o int, scratch []float32) {
	c, d := p.C, p.Weight.DType
	if c == 0 {
		return
	}
	w, sums := scratch[:9*c], scratch[9*c:][:16*c]
	size := d.Size()
	src := p.Weight.Data[o*9*c*size:][:9*c*size]
	switch d {
	case tensor.F32:
		copy(tensor.Bytes(w), src)
	case tensor.BF16:
		for i, v := range unsafe.Slice((*uint16)(unsafe.Pointer(&src[0])), 9*c) {
			w[i] = tensor.BF16ToFloat32(v)
		}
	default:
		for i, v := range unsafe.Slice((*uint16)(unsafe.Pointer(&src[0])), 9*c) {
			w[i] = tensor.F16ToFloat32(v)
		}
	}
	// The taps that meet the same pixel, for an even and an odd coordinate.
	taps := [2][2][]int{{{0}, {1, 2}}, {{0, 1}, {2}}}
	for py := range 2 {
		for px := range 2 {
			for ty, ys := range taps[py] {
				for tx, xs := range taps[px] {
					row := sums[((2*py+px)*4+2*ty+tx)*c:][:c]
					clear(row)
					for _, ky := range ys {
						for _, kx := range xs {
							for i := range row {
								row[i] += w[9*i+3*ky+kx]
							}
						}
					}
				}
			}
		}
	}
	for ph := range 4 {
		to := dst[(ph*phase+o*4*c)*size:][:4*c*size]
		from := sums[ph*4*c:][:4*c]
		switch d {
		case tensor.F32:
			copy(to, tensor.Bytes(from))
		case tensor.BF16:
			for i, v := range from {
				unsafe.Slice((*uint16)(unsafe.Pointer(&to[0])), 4*c)[i] = tensor.Float32ToBF16(v)
			}
		default:
			for i, v := range from {
				unsafe.Slice((*uint16)(unsafe.Pointer(&to[0])), 4*c)[i] = tensor.Float32ToF16(v)
			}
		}
	}
}
