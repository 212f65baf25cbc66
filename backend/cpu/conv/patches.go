package conv

import (
	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/tensor"
)

// patches is the matrix [N·OH·OW, KH·KW·C] of the image patches, one row for each output pixel.
type patches struct {
	p      *Problem
	oh, ow int
}

func newPatches(p *Problem) *patches {
	s := &patches{p: p}
	s.oh, s.ow = p.OutSize()
	return s
}

func (s *patches) DType() tensor.DType { return s.p.X.DType }

// Fill packs columns k to k+n of the given rows. The columns of one kernel row ky, (kx, c), lie next to each other in the
// image, so each is one copy, clipped at the image's left and right.
func (s *patches) Fill(dst *gemm.Block, row, rows, k, n int) {
	p := s.p
	size := p.X.DType.Size()
	sy, sx := max(p.StrideY, 1), max(p.StrideX, 1)
	taps, line := p.KW*p.C, p.W*p.C
	ox := row % s.ow
	oy := row / s.ow % s.oh
	image := row / s.ow / s.oh
	ky0, e0 := k/taps, k%taps
	for r := range rows {
		x0 := (ox*sx - p.Pad.Left) * p.C // element of the line where the patch starts
		ky, e, at := ky0, e0, 0
		for at < n {
			m := min(n-at, taps-e)
			y := oy*sy - p.Pad.Top + ky
			lo := min(max(e, -x0), e+m)
			hi := max(min(e+m, line-x0), lo)
			if y < 0 || y >= p.H {
				hi = lo
			}
			if lo > e {
				dst.Zero(r, at, lo-e)
			}
			if hi > lo {
				dst.Put(r, at+lo-e, p.X.DType, p.X.Data[((image*p.H+y)*line+x0+lo)*size:], hi-lo)
			}
			if e+m > hi {
				dst.Zero(r, at+hi-e, e+m-hi)
			}
			at += m
			ky, e = ky+1, 0
		}
		if ox++; ox == s.ow {
			ox = 0
			if oy++; oy == s.oh {
				oy = 0
				image++
			}
		}
	}
}

// Pieces finds the columns k to k+n of the given rows in the image: of pixels that are neighbours on a line of the result and
// whose patches lie inside of the image.
func (s *patches) Pieces(dst []gemm.Piece, row, rows, k, n int) (pieces []gemm.Piece, stride int) {
	p := s.p
	size := p.X.DType.Size()
	sy, sx := max(p.StrideY, 1), max(p.StrideX, 1)
	taps, line := p.KW*p.C, p.W*p.C
	ox := row % s.ow
	oy := row / s.ow % s.oh
	x0, x1 := ox*sx-p.Pad.Left, (ox+rows-1)*sx-p.Pad.Left+p.KW // of the first and past the last patch
	y0 := oy*sy - p.Pad.Top + k/taps
	y1 := oy*sy - p.Pad.Top + (k+n-1)/taps
	if ox+rows > s.ow || x0 < 0 || x1 > p.W || y0 < 0 || y1 >= p.H || taps*size%4 != 0 {
		return nil, 0
	}
	at := (row/s.ow/s.oh*p.H+y0)*line + x0*p.C
	for e := k % taps; n > 0; e = 0 {
		m := min(n, taps-e)
		dst = append(dst, gemm.Piece{First: &p.X.Data[(at+e)*size], N: m})
		n -= m
		at += line
	}
	return dst, sx * p.C * size
}
