package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// BenchmarkRun measures the products of diffusion transformers, C stored in the operands' type. GFLOP/s is of the best
// repetition, so that a busy machine disturbs it less.
//
//	go test -run - -bench Run -benchtime 5x ./backend/cpu/gemm
func BenchmarkRun(b *testing.B) {
	level := isa.Detect()
	for _, t := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		for _, s := range [][3]int{{1357, 1536, 6144}, {1024, 3072, 3072}, {333, 1536, 1536}, {1, 3072, 3072}, {4, 3072, 3072}, {16, 3072, 3072}, {77, 3072, 3072}} {
			m, k, n := s[0], s[1], s[2]
			rnd := rand.New(rand.NewPCG(1, 2))
			x, _ := randomOperand(rnd, t, m, k, k)
			w, _ := randomOperand(rnd, t, n, k, k)
			out := Output{DType: t, Data: make([]byte, m*n*t.Size()), Stride: n}
			q, err := PackB(nil, level, w, n, k, false, t)
			if err != nil {
				b.Fatal(err)
			}
			for _, threads := range []int{1, 2} {
				pool := par.New(threads)
				for _, packed := range []bool{false, true} {
					p := &Problem{M: m, N: n, K: k, A: x, B: w}
					how := "plain"
					if packed {
						p.Packed, how = q, "packed"
					}
					b.Run(fmt.Sprintf("%v/%dx%dx%d/T%d/%s", t, m, k, n, threads, how), func(b *testing.B) {
						report(b, m, n, k, func() error { return Run(pool, level, p, out.Emit(level)) })
					})
				}
				pool.Close()
			}
		}
	}
}

// report runs fn and tells the rate of the best repetition.
func report(b *testing.B, m, n, k int, fn func() error) {
	best := time.Hour
	for b.Loop() {
		start := time.Now()
		if err := fn(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)/best.Seconds()*1e-9, "GFLOP/s")
	b.ReportMetric(best.Seconds()*1e3, "best-ms")
}

// BenchmarkPackB measures packing alone, in bytes of B read.
func BenchmarkPackB(b *testing.B) {
	const n, k = 3072, 3072
	for _, level := range isa.Available() {
		for _, t := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
			for _, rowB := range []bool{false, true} {
				w, _ := randomOperand(rand.New(rand.NewPCG(1, 2)), t, n, k, k)
				kern, err := choose(level, t, t)
				if err != nil {
					b.Fatal(err)
				}
				p := &Problem{N: n, K: k, B: w, RowB: rowB}
				dst := make([]uint32, kern.words(k)*kern.cols)
				b.Run(fmt.Sprintf("%v/%v/rowB=%v", level, t, rowB), func(b *testing.B) {
					b.SetBytes(int64(n * k * t.Size()))
					for b.Loop() {
						for j := 0; j < n; j += kern.cols {
							p.packPanel(kern, dst, j, 0, k)
						}
					}
				})
			}
		}
	}
}
