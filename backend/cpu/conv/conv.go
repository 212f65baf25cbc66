// Package conv computes 2-D convolutions on the CPU as a matrix product whose left operand, the patches, is made on the
// fly and never stored: most are read in the image, where they lie.
//
// Images are NHWC, weights OIHW as checkpoints store them. The result is the matrix [N·OH·OW, O], handed out by rows (one
// output pixel each, all channels) through a [gemm.Emit]; where there are at most [FewOutputs] channels, acc may be several
// whole rows. Few channels, as a decoder's last convolution has, would leave most of a tile of the product empty: they have
// kernels of their own, in which vectors lie along the patch.
//
//	p := &conv.Problem{
//		N: 1, H: 64, W: 64, C: 320, O: 640, KH: 3, KW: 3, Pad: conv.Same(1),
//		X:      gemm.Operand{DType: tensor.F32, Data: x},
//		Weight: gemm.Operand{DType: tensor.F32, Data: w},
//	}
//	oh, ow := p.OutSize()
//	err := conv.Run(pool, level, p, gemm.Output{DType: tensor.F32, Data: y, Stride: 640, Bias: bias}.Emit(level))
package conv

//go:generate go run ./gen

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Problem is one convolution (cross-correlation, as in every framework), one group, no dilation.
type Problem struct {
	N, H, W, C       int // images, height, width, input channels
	O, KH, KW        int // output channels, kernel height and width
	StrideY, StrideX int // 0 means 1
	Pad              Pad // zeros around the image

	X      gemm.Operand // (N, H, W, C), dense: Stride is 0 or C
	Weight gemm.Operand // (O, C, KH, KW), dense: Stride is 0; or Packed
	Packed *gemm.Packed // the weight packed before, in place of Weight: see PackWeight
}

// Pad counts the rows and columns of zeros on each side of an image.
type Pad struct{ Top, Bottom, Left, Right int }

// Same is the same padding on every side.
func Same(n int) Pad { return Pad{n, n, n, n} }

// OutSize returns the height and width of the result; 0 where the kernel does not fit.
func (p *Problem) OutSize() (oh, ow int) {
	oh = (p.H+p.Pad.Top+p.Pad.Bottom-p.KH)/max(p.StrideY, 1) + 1
	ow = (p.W+p.Pad.Left+p.Pad.Right-p.KW)/max(p.StrideX, 1) + 1
	if p.H+p.Pad.Top+p.Pad.Bottom < p.KH || p.W+p.Pad.Left+p.Pad.Right < p.KW {
		return 0, 0
	}
	return oh, ow
}

// Run computes p on the workers of pool (nil: on the caller) and hands the sums to emit: row (n·OH+y)·OW+x, column o.
func Run(pool *par.Pool, level isa.Level, p *Problem, emit gemm.Emit) error {
	if err := p.check(); err != nil {
		return err
	}
	oh, ow := p.OutSize()
	if k := fewKernel(level, p); k != nil {
		runFew(pool, k, p, emit)
		return nil
	}
	g := gemm.Problem{M: p.N * oh * ow, N: p.O, K: p.KH * p.KW * p.C}
	if p.pointwise() {
		g.A = gemm.Operand{DType: p.X.DType, Data: p.X.Data, Stride: p.C}
	} else {
		g.Source = newPatches(p)
	}
	if p.Packed != nil {
		g.Packed = p.Packed
	} else {
		w := reorder(pool, p.Weight, p.O, p.C, p.KH*p.KW)
		defer w.free()
		g.B = w.operand
	}
	if err := gemm.Run(pool, level, &g, emit); err != nil {
		return fmt.Errorf("conv: %w", err)
	}
	return nil
}

// pointwise reports that the patches are the image itself.
func (p *Problem) pointwise() bool {
	return p.KH == 1 && p.KW == 1 && p.StrideY <= 1 && p.StrideX <= 1 && p.Pad == Pad{}
}

func (p *Problem) check() error {
	if min(p.N, p.H, p.W, p.C, p.O) < 0 || p.KH < 1 || p.KW < 1 || p.StrideY < 0 || p.StrideX < 0 ||
		min(p.Pad.Top, p.Pad.Bottom, p.Pad.Left, p.Pad.Right) < 0 {
		return fmt.Errorf("conv: impossible sizes: image %d×%d×%d×%d, kernel %d×%d, stride %d×%d, padding %v",
			p.N, p.H, p.W, p.C, p.KH, p.KW, p.StrideY, p.StrideX, p.Pad)
	}
	if err := checkDense("image", p.X, p.N*p.H*p.W*p.C, p.C); err != nil {
		return err
	}
	if p.Packed != nil {
		return nil
	}
	return checkDense("weight", p.Weight, p.O*p.C*p.KH*p.KW, 0)
}

func checkDense(name string, o gemm.Operand, n, stride int) error {
	if o.DType != tensor.F32 && !o.DType.IsHalf() {
		return fmt.Errorf("conv: %s is %v, expected f32, bf16 or f16", name, o.DType)
	}
	if o.Stride != 0 && o.Stride != stride {
		return fmt.Errorf("conv: %s has stride %d, expected a dense one", name, o.Stride)
	}
	if len(o.Data) < n*o.DType.Size() {
		return fmt.Errorf("conv: %s has %d bytes, expected %d", name, len(o.Data), n*o.DType.Size())
	}
	return nil
}
