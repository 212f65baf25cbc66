package gemm

import (
	"fmt"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Packed is a matrix B that was packed once for the kernel that will use it, as weights are.
type Packed struct {
	n, k   int
	a, b   tensor.DType
	level  isa.Level
	kernel *kernel
	data   []uint32 // panels, each [words of K][cols]
	offset []int32  // int8: what is too much in the sums of each column, where the kernel adds something to A
}

// PackB packs b, N×K or with rowB K×N, for products at level with rows of type a. b may be forgotten afterwards.
func PackB(pool *par.Pool, level isa.Level, b Operand, n, k int, rowB bool, a tensor.DType) (*Packed, error) {
	return PackBInto(nil, pool, level, b, n, k, rowB, a)
}

// PackBInto is PackB into mem, PackedBytes of memory aligned to 64 bytes, which must stay as long as the result is used; nil
// to have it made.
func PackBInto(mem []byte, pool *par.Pool, level isa.Level, b Operand, n, k int, rowB bool, a tensor.DType) (*Packed, error) {
	return pack(pool, level, &Problem{N: n, K: k, B: b, RowB: rowB}, a, mem)
}

// PackInt8 quantises w, N×K of type F32, BF16 or F16, by columns of B (rows of w, see QuantizeRows), packs it for rows of
// type a, and returns it with the Scale for its problems.
func PackInt8(pool *par.Pool, level isa.Level, w Operand, n, k int, a tensor.DType) (*Packed, []float32, error) {
	q, scale := make([]byte, n*k), make([]float32, n)
	if err := QuantizeRows(pool, level, q, scale, w, n, k); err != nil {
		return nil, nil, err
	}
	p, err := PackB(pool, level, Operand{DType: tensor.I8, Data: q}, n, k, false, a)
	return p, scale, err
}

// PackedBytes returns the memory for B of type b with n columns and K of k, packed for rows of type a at level.
func PackedBytes(level isa.Level, b tensor.DType, n, k int, a tensor.DType) (int, error) {
	kern, err := choose(level, a, b)
	if err != nil {
		return 0, err
	}
	return 4 * kern.panels(n) * kern.words(k) * kern.cols, nil
}

// panels returns the panels for n columns.
func (k *kernel) panels(n int) int { return (n + k.cols - 1) / k.cols }

func pack(pool *par.Pool, level isa.Level, p *Problem, a tensor.DType, mem []byte) (*Packed, error) {
	if p.N < 0 || p.K < 0 {
		return nil, fmt.Errorf("gemm: negative size of B %d×%d", p.K, p.N)
	}
	if err := p.checkB(); err != nil {
		return nil, err
	}
	kern, err := choose(level, a, p.B.DType)
	if err != nil {
		return nil, err
	}
	size := kern.words(p.K) * kern.cols
	panels := kern.panels(p.N)
	q := &Packed{n: p.N, k: p.K, a: a, b: p.B.DType, level: level, kernel: kern}
	switch want := 4 * panels * size; {
	case mem == nil:
		q.data = aligned(panels * size)
	case len(mem) < want || want > 0 && uintptr(unsafe.Pointer(&mem[0]))%64 != 0:
		return nil, fmt.Errorf("gemm: %d bytes for packed B, expected %d, aligned to 64", len(mem), want)
	case want > 0:
		q.data = unsafe.Slice((*uint32)(unsafe.Pointer(&mem[0])), panels*size)
	}
	if kern.kind == wordI8 {
		q.offset = make([]int32, panels*kern.cols)
	}
	if p.K == 0 {
		return q, nil
	}
	pool.For(panels, 1, func(_, lo, hi int) {
		for j := lo; j < hi; j++ {
			panel := q.data[j*size:][:size]
			p.packPanel(kern, panel, j*kern.cols, 0, p.K)
			if q.offset != nil {
				kern.offsets(q.offset[j*kern.cols:][:kern.cols], panel)
			}
		}
	})
	return q, nil
}

// Bytes returns the memory that q holds.
func (q *Packed) Bytes() int { return 4 * (len(q.data) + len(q.offset)) }

// DType returns the type of the B that was packed.
func (q *Packed) DType() tensor.DType { return q.b }

// Unpacks reports whether Unpack can give B back: not where packing widened it.
func (q *Packed) Unpacks() bool { return q.b.Size() == 4/q.kernel.perWord() }

// Unpack writes B as it was, N×K of its own type without gaps, to dst.
func (q *Packed) Unpack(dst []byte) error {
	size := q.b.Size()
	if !q.Unpacks() {
		return fmt.Errorf("gemm: B was packed from %v as %d to a word, and can't be unpacked", q.b, q.kernel.perWord())
	}
	if len(dst) < q.n*q.k*size {
		return fmt.Errorf("gemm: %d bytes for unpacked B, expected %d", len(dst), q.n*q.k*size)
	}
	words, cols, row := q.kernel.words(q.k), q.kernel.cols, q.k*size
	if row == 0 {
		return nil
	}
	src := wordBytes(q.data)
	for j := range q.n {
		at := 4 * (j/cols*words*cols + j%cols)
		for i := 0; i < row; i += 4 {
			copy(dst[j*row+i:(j+1)*row], src[at:at+4])
			at += 4 * cols
		}
	}
	return nil
}
