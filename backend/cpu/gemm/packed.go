package gemm

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Packed is a matrix B that was packed once for the kernel that will use it, as weights are.
type Packed struct {
	n, k   int
	a      tensor.DType
	level  isa.Level
	kernel *kernel
	data   []uint32 // panels, each [words of K][cols]
}

// PackB packs b, N×K or with rowB K×N, for products at level with rows of type a. b may be forgotten afterwards.
func PackB(pool *par.Pool, level isa.Level, b Operand, n, k int, rowB bool, a tensor.DType) (*Packed, error) {
	if n < 0 || k < 0 {
		return nil, fmt.Errorf("gemm: negative size of B %d×%d", k, n)
	}
	p := &Problem{N: n, K: k, B: b, RowB: rowB}
	if err := p.B.checkAs("B", n, k, rowB); err != nil {
		return nil, err
	}
	kern, err := choose(level, a, b.DType)
	if err != nil {
		return nil, err
	}
	panels, words := (n+kern.cols-1)/kern.cols, kern.words(k)
	q := &Packed{n: n, k: k, a: a, level: level, kernel: kern, data: aligned(panels * words * kern.cols)}
	if k == 0 {
		return q, nil
	}
	pool.For(panels, 1, func(_, lo, hi int) {
		for j := lo; j < hi; j++ {
			p.packPanel(kern, q.data[j*words*kern.cols:][:words*kern.cols], j*kern.cols, 0, k)
		}
	})
	return q, nil
}

// Bytes returns the memory that q holds.
func (q *Packed) Bytes() int { return 4 * len(q.data) }
