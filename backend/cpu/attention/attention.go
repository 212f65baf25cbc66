// Package attention computes softmax(scale·q·kᵀ + bias)·v on the CPU without ever holding the matrix of scores.
//
// The main type is [Problem]; [Run] computes it:
//
//	err := attention.Run(pool, level, &attention.Problem{
//		B: 1, Nq: 4608, Nk: 4608, H: 24, Hkv: 24, D: 128, DType: tensor.BF16,
//		Q: attention.Dense(q, 4608, 24, 128), K: …, V: …, Out: …,
//	})
//
// Values are token-major, (B, N, H, D), as the projections leave them; strides allow slices of a fused projection.
//
// # Method
//
// Scores are made transposed: lanes are queries. A panel of up to 48 queries is transposed once; then each block of keys
// gives S = K·Qᵀ (keys, queries), the online softmax runs down the columns of S without a horizontal step (Milakov and
// Gimelshein 2018; Dao et al. 2022), and O = Vᵀ·P (D, queries) accumulates. K and V need no transposition for that: a
// tile reads their elements one by one and broadcasts them.
//
// # Precision
//
// Scores, softmax and sums are in f32; the result is rounded once, and doesn't depend on the number of threads. With
// bfloat16 operands the probabilities are made and rounded as in PyTorch's CPU kernel, on every level: 512 keys at a time,
// relative to the largest score so far, by an exponential good to 1.2e-4, while their sum is that of the unrounded ones. So
// nearly all elements are PyTorch's to the bit. Both products then use tiles on level AMX, and VDPBF16PS on AVX512BF16 where that
// is the faster instruction; elsewhere operands are widened to f32. With f16 and f32 operands probabilities stay in f32.
//
// A query that may see no key gives zeros. A score that is NaN or +Inf makes its query's result NaN.
package attention

//go:generate go run ./gen

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// View is a (B, N, H, D) value in memory. Strides are in elements; the D elements of a head are contiguous.
type View struct {
	Data               []byte // aligned for the element type
	Batch, Token, Head int
}

// Dense returns the view of a contiguous (B, n, h, d) value.
func Dense(data []byte, n, h, d int) View {
	return View{Data: data, Batch: n * h * d, Token: h * d, Head: d}
}

// Bias is added to the scaled scores: element (b, h, i, j) is Data[b·Batch + h·Head + i·Query + j]. A stride of 0
// broadcasts. Nil Data means none, unless Half has the elements, of type HalfType (BF16 or F16).
type Bias struct {
	Data               []float32
	Batch, Head, Query int
	Half               []uint16
	HalfType           tensor.DType
}

// given reports whether there is a bias.
func (b *Bias) given() bool { return b.Data != nil || b.Half != nil }

// Mask says which keys a query sees: (b, h, i, j) as in Bias, a byte that isn't 0 shows the key. A mask over keys alone
// has Batch: Nk and no other stride. Nil Data means that all are seen.
type Mask struct {
	Data               []byte
	Batch, Head, Query int
}

// Problem is one attention operation.
type Problem struct {
	B, Nq, Nk int // batch, queries, keys
	H, Hkv    int // query heads, a multiple of the key and value heads; query head h uses key head h/(H/Hkv)
	D         int // head size
	DType     tensor.DType
	Q, K, V   View
	Out       View    // must not overlap the others
	Scale     float32 // 0 means 1/√D
	Causal    bool    // query i sees keys 0 … i
	Bias      Bias
	Mask      Mask
}

// check returns an error for sizes that don't fit the data.
func (p *Problem) check() error {
	switch p.DType {
	case tensor.F32, tensor.BF16, tensor.F16:
	default:
		return fmt.Errorf("attention: dtype %v, want f32, bf16 or f16", p.DType)
	}
	if p.B < 0 || p.Nq < 0 || p.Nk < 0 || p.H < 1 || p.Hkv < 1 || p.D < 1 || p.H%p.Hkv != 0 {
		return fmt.Errorf("attention: bad sizes B %d Nq %d Nk %d H %d Hkv %d D %d", p.B, p.Nq, p.Nk, p.H, p.Hkv, p.D)
	}
	if p.Scale != p.Scale || math.IsInf(float64(p.Scale), 0) {
		return fmt.Errorf("attention: scale %g isn't finite", p.Scale)
	}
	if p.B == 0 || p.Nq == 0 {
		return nil
	}
	size := p.DType.Size()
	for _, v := range []struct {
		name string
		v    *View
		n, h int
	}{{"q", &p.Q, p.Nq, p.H}, {"k", &p.K, p.Nk, p.Hkv}, {"v", &p.V, p.Nk, p.Hkv}, {"out", &p.Out, p.Nq, p.H}} {
		if v.n == 0 {
			continue
		}
		if v.v.Batch < 0 || v.v.Token < 0 || v.v.Head < 0 {
			return fmt.Errorf("attention: %s has a negative stride", v.name)
		}
		need := ((p.B-1)*v.v.Batch + (v.n-1)*v.v.Token + (v.h-1)*v.v.Head + p.D) * size
		if len(v.v.Data) < need {
			return fmt.Errorf("attention: %s has %d bytes, needs %d", v.name, len(v.v.Data), need)
		}
	}
	last := func(batch, head, query int) int {
		return (p.B-1)*batch + (p.H-1)*head + (p.Nq-1)*query + p.Nk
	}
	if b := &p.Bias; b.given() {
		n := len(b.Data)
		if b.Data == nil {
			n = len(b.Half)
			if !b.HalfType.IsHalf() {
				return fmt.Errorf("attention: bias of %v, want f32, bf16 or f16", b.HalfType)
			}
		}
		if need := last(b.Batch, b.Head, b.Query); min(b.Batch, b.Head, b.Query) < 0 || n < need {
			return fmt.Errorf("attention: bias has %d elements, needs %d", n, need)
		}
	}
	if m := &p.Mask; m.Data != nil {
		if need := last(m.Batch, m.Head, m.Query); min(m.Batch, m.Head, m.Query) < 0 || len(m.Data) < need {
			return fmt.Errorf("attention: mask has %d elements, needs %d", len(m.Data), need)
		}
	}
	return nil
}

// Run computes p with the kernels of the given level, which this machine must have, on the workers of pool (nil: on the
// caller alone).
func Run(pool *par.Pool, level isa.Level, p *Problem) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.B == 0 || p.Nq == 0 {
		return nil
	}
	run(pool, levelKernels(level, p.DType), level, p)
	return nil
}
