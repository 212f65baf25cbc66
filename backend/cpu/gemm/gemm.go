// Package gemm multiplies matrices on the CPU: C = A·B with float32 sums, for float32, bfloat16 and float16 operands, and
// for B quantised to int8.
//
// C is not written by the package: each finished row segment of float32 sums goes to the caller's [Emit], which adds the
// bias, applies the activation and converts, while the sums are still in the cache. [Output] is the Emit that only
// adds a bias and stores.
//
//	out := gemm.Output{DType: tensor.F32, Data: c, Stride: n, Bias: bias}
//	err := gemm.Run(pool, level, &gemm.Problem{
//		M: m, N: n, K: k,
//		A: gemm.Operand{DType: tensor.BF16, Data: x},
//		B: gemm.Operand{DType: tensor.BF16, Data: weight}, // N×K, as linear layers store it
//	}, out.Emit(level))
//
// A sum runs over K in an order that depends only on K and the level, so a row of C has the same bits with any number of
// workers, with any number of other rows, and whether or not B was packed before.
package gemm

//go:generate go run ./gen

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Operand is a matrix in memory. Rows are contiguous and start Stride elements apart; 0 means that they follow each
// other without a gap. DType is F32, BF16 or F16.
type Operand struct {
	DType  tensor.DType
	Data   []byte
	Stride int
}

// Problem is one product: C (M×N) = A (M×K) · B (K×N).
//
// A and B have the same type, or A is F32 and B a half type. Half operands are widened exactly; sums are float32. The
// bfloat16 instructions that some levels use take subnormal inputs and sums as zero.
//
// With B of type I8, C is the product of int8 numbers, each row of A being quantised as QuantizeRows does, times the scale
// of A's row and then the scale of B's column. Its bits are the same at every level.
type Problem struct {
	M, N, K int

	A      Operand // M×K, unless Source is set
	Source Source  // makes A's rows on the fly

	B      Operand   // N×K (K contiguous: a linear layer's weight), unless RowB or Packed is set
	RowB   bool      // B is stored K×N
	Scale  []float32 // of each column, where B is I8
	Packed *Packed   // B packed before, in place of B and RowB
}

// Source makes rows of A when they are needed, so that a convolution never stores its patches. It is called from several
// workers at once, and must give the same values each time.
type Source interface {
	// DType is the type of A's elements.
	DType() tensor.DType
	// Fill writes A[row:row+rows, k:k+n] to dst with Put and Zero, at rows 0..rows and columns 0..n of dst.
	Fill(dst *Block, row, rows, k, n int)
}

// Emit receives the finished sums C[row, col:col+len(acc)]. Each element of C comes exactly once, from any worker
// (numbered below the pool's Workers, for scratch memory). acc may be changed, and is reused after the call.
type Emit func(worker, row, col int, acc []float32)

// Run computes p on the workers of pool (nil: on the caller) with the kernels of level and hands the sums to emit.
func Run(pool *par.Pool, level isa.Level, p *Problem, emit Emit) error {
	k, err := p.check(level)
	if err != nil {
		return err
	}
	r := newRun(k, p, pool.Workers())
	r.emit = emit
	defer r.free()
	return r.do(pool)
}

// RunBatch computes n problems, several at once, each on one worker; it suits many small ones. problem is called once
// for each index, and emit receives the index with what Emit receives.
func RunBatch(pool *par.Pool, level isa.Level, n int, problem func(i int) Problem, emit func(worker, i, row, col int, acc []float32)) error {
	errs := make([]error, pool.Workers())
	pool.For(n, 1, func(worker, lo, hi int) {
		for i := lo; i < hi && errs[worker] == nil; i++ {
			p := problem(i)
			k, err := p.check(level)
			if err != nil {
				errs[worker] = fmt.Errorf("batch index %d: %w", i, err)
				return
			}
			r := newRun(k, &p, 1)
			r.emit = func(_, row, col int, acc []float32) { emit(worker, i, row, col, acc) }
			errs[worker] = r.do(nil)
			r.free()
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check validates p and chooses its kernel.
func (p *Problem) check(level isa.Level) (*kernel, error) {
	if p.M < 0 || p.N < 0 || p.K < 0 {
		return nil, fmt.Errorf("gemm: negative size %d×%d×%d", p.M, p.N, p.K)
	}
	at := p.A.DType
	if p.Source != nil {
		at = p.Source.DType()
	} else if err := p.A.check("A", p.M, p.K); err != nil {
		return nil, err
	}
	if q := p.Packed; q != nil {
		switch {
		case q.n != p.N || q.k != p.K:
			return nil, fmt.Errorf("gemm: packed B is %d×%d, expected %d×%d", q.k, q.n, p.K, p.N)
		case q.a != at:
			return nil, fmt.Errorf("gemm: B was packed for %v rows, A is %v", q.a, at)
		case q.level != level:
			return nil, fmt.Errorf("gemm: B was packed for %v, level is %v", q.level, level)
		}
		return q.kernel, p.checkScale(q.b)
	}
	if err := p.checkB(); err != nil {
		return nil, err
	}
	if err := p.checkScale(p.B.DType); err != nil {
		return nil, err
	}
	return choose(level, at, p.B.DType)
}

func (p *Problem) checkScale(b tensor.DType) error {
	switch {
	case b == tensor.I8 && len(p.Scale) != p.N:
		return fmt.Errorf("gemm: %d scales for B, expected one for each of %d columns", len(p.Scale), p.N)
	case b != tensor.I8 && p.Scale != nil:
		return fmt.Errorf("gemm: scales for B, which is %v, expected i8", b)
	}
	return nil
}

// maxInt8K bounds K so that a sum of products of bytes fits an int32.
const maxInt8K = 1 << 17

// checkB validates B where it is not packed.
func (p *Problem) checkB() error {
	switch i8 := p.B.DType == tensor.I8; {
	case i8 && p.RowB:
		return fmt.Errorf("gemm: B is i8 and stored K×N, expected N×K")
	case i8 && p.K > maxInt8K:
		return fmt.Errorf("gemm: B is i8 and K is %d, expected at most %d", p.K, maxInt8K)
	case p.RowB:
		return p.B.check("B", p.K, p.N)
	}
	return p.B.check("B", p.N, p.K)
}

// check validates the type, stride and memory of a rows×cols operand, and makes the dense stride explicit.
func (o *Operand) check(name string, rows, cols int) error {
	if o.DType != tensor.F32 && !o.DType.IsHalf() && (o.DType != tensor.I8 || name != "B") {
		return fmt.Errorf("gemm: %s is %v, expected f32, bf16 or f16", name, o.DType)
	}
	if o.Stride == 0 {
		o.Stride = cols
	}
	if o.Stride < cols {
		return fmt.Errorf("gemm: %s has stride %d, expected at least %d", name, o.Stride, cols)
	}
	if rows == 0 || cols == 0 {
		return nil
	}
	if want := ((rows-1)*o.Stride + cols) * o.DType.Size(); len(o.Data) < want {
		return fmt.Errorf("gemm: %s has %d bytes, expected %d for %d×%d %v with stride %d", name, len(o.Data), want, rows, cols, o.DType, o.Stride)
	}
	return nil
}
