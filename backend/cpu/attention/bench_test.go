package attention

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// BenchmarkBias is T5-XXL's attention over 512 tokens: 64 heads of 64, no scale, a bias per head.
func BenchmarkBias(b *testing.B) {
	const h, n, size = 64, 512, 64
	p := newProblem(tensor.F32, 1, n, n, h, h, size, 1)
	p.Scale = 1
	for _, bias := range []bool{false, true} {
		b.Run(fmt.Sprint(bias), func(b *testing.B) {
			p.Bias = Bias{}
			if bias {
				p.Bias = Bias{Data: randomBias(h*n*n, 1), Batch: 0, Head: n * n, Query: n}
			}
			for b.Loop() {
				if err := Run(nil, isa.Detect(), &p.Problem); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAttention reports GFLOP/s of the best run, 4·B·H·Nq·Nk·D operations each, for the shapes heads x tokens x head
// size.
func BenchmarkAttention(b *testing.B) {
	for _, s := range [][3]int{{12, 77, 64}, {24, 1357, 64}, {24, 1357, 128}, {24, 4608, 128}} {
		h, n, size := s[0], s[1], s[2]
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, l := range isa.Available() {
				if l == isa.Portable || d == tensor.F32 && l == isa.AVX512BF16 || d == tensor.BF16 && l == isa.AVX2 {
					continue
				}
				for _, threads := range []int{1, 2} {
					b.Run(fmt.Sprintf("%dx%dx%d/%v/%v/T%d", h, n, size, d, l, threads), func(b *testing.B) {
						p := newProblem(d, 1, n, n, h, h, size, 1)
						pool := par.New(threads)
						defer pool.Close()
						best := time.Duration(math.MaxInt64)
						for b.Loop() {
							start := time.Now()
							if err := Run(pool, l, &p.Problem); err != nil {
								b.Fatal(err)
							}
							best = min(best, time.Since(start))
						}
						ops := 4 * float64(h) * float64(n) * float64(n) * float64(size)
						b.ReportMetric(ops/best.Seconds()*1e-9, "GFLOP/s")
					})
				}
			}
		}
	}
}
