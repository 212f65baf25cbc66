package conv

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// Patches that tiles read in the image give the same bits as packed ones, also where blocks of K cut a line of a patch.
func TestPatchesInPlace(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, p := range []Problem{
		{N: 2, H: 9, W: 20, C: 256, O: 40, KH: 3, KW: 3, Pad: Same(1)},
		{N: 1, H: 20, W: 61, C: 6, O: 33, KH: 3, KW: 3, StrideY: 2, StrideX: 2, Pad: Pad{0, 1, 0, 1}},
		{N: 1, H: 12, W: 31, C: 5, O: 17, KH: 2, KW: 2, Pad: Same(1)},
	} {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
			rnd := rand.New(rand.NewPCG(1, 2))
			p.X, _ = random(rnd, d, p.N*p.H*p.W*p.C)
			w, _ := random(rnd, d, p.O*p.C*p.KH*p.KW)
			source := newPatches(&p)
			if pieces, _ := source.Pieces(nil, source.ow+2, 6, 0, p.KH*p.KW*p.C); len(pieces) != p.KH {
				t.Fatalf("%d pieces for rows inside of the image, want %d", len(pieces), p.KH)
			}
			g := gemm.Problem{M: p.N * source.oh * source.ow, N: p.O, K: p.KH * p.KW * p.C, B: w}
			for _, level := range isa.Available() {
				t.Run(fmt.Sprintf("%d→%d/%v/%v", p.C, p.O, d, level), func(t *testing.T) {
					var got [2][]byte
					for i, s := range []gemm.Source{source, struct{ gemm.Source }{source}} {
						g.Source = s
						got[i] = make([]byte, 4*g.M*g.N)
						out := gemm.Output{DType: tensor.F32, Data: got[i], Stride: g.N}
						if err := gemm.Run(pool, level, &g, out.Emit(level)); err != nil {
							t.Fatal(err)
						}
					}
					if !bytes.Equal(got[0], got[1]) {
						t.Error("bits differ")
					}
				})
			}
		}
	}
}

// Rows whose patches leave the image, or that lie on two lines of the result, have no pieces.
func TestPatchesAtTheEdge(t *testing.T) {
	p := Problem{N: 1, H: 6, W: 10, C: 4, O: 1, KH: 3, KW: 3, Pad: Same(1)}
	p.X, _ = random(rand.New(rand.NewPCG(1, 2)), tensor.F32, p.H*p.W*p.C)
	s := newPatches(&p)
	for _, c := range []struct {
		y, x, rows, k, n int
		want             bool
	}{
		{1, 1, 8, 0, 36, true}, {1, 0, 8, 0, 36, false}, {1, 2, 8, 0, 36, false}, {2, 8, 6, 0, 36, false},
		{0, 1, 8, 0, 36, false}, {0, 1, 8, 12, 24, true}, {5, 1, 8, 0, 36, false}, {5, 1, 8, 0, 24, true},
	} {
		if pieces, _ := s.Pieces(nil, c.y*10+c.x, c.rows, c.k, c.n); (pieces != nil) != c.want {
			t.Errorf("%d rows at %d,%d, columns %d to %d: %d pieces, want some: %v", c.rows, c.y, c.x, c.k, c.k+c.n, len(pieces), c.want)
		}
	}
}
