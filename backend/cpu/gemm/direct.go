package gemm

import "github.com/gesso-go/gesso/tensor"

// Direct is a Source of which rows may lie in memory as they are, so that a tile reads them there and nobody packs them.
type Direct interface {
	Source
	// Pieces appends to dst the pieces that A[row:row+rows, k:k+n] consists of, in the order of the columns, and returns
	// them with the bytes from row to row, the same for all pieces. It returns nil where the rows don't lie so. Pieces
	// have an even number of elements where k and n are even and elements are a half type.
	Pieces(dst []Piece, row, rows, k, n int) (pieces []Piece, stride int)
}

// Piece is a run of columns of rows of A in memory: N elements from First on, in the first row.
type Piece struct {
	First *byte
	N     int
}

// direct returns the source of p if k's tiles can read it where it lies.
func (k *kernel) direct(p *Problem) Direct {
	d, ok := p.Source.(Direct)
	if !ok || k.pieces == nil || k.kind == wordF32 && d.DType() != tensor.F32 {
		return nil
	}
	return d
}

// directBlock is the rows of a block of C on the way through K: from each tile to the words of A it reads.
type directBlock struct {
	tiles  []directTile
	pieces []Piece // of the tiles
	words  []uint32
}

// directTile is rows of a block. They lie in memory as the given pieces, or are packed at a where there are none.
type directTile struct {
	rows   int
	pieces []Piece
	stride int // bytes
	a      []uint32
}

// place finds the words of A from w on for m rows from m0 on: it asks for the tallest tiles' rows where they lie and packs what
// the source hasn't.
func (r *run) place(worker, m0, m, w int) []directTile {
	s := &r.workers[worker]
	d := &s.direct
	d.tiles, d.pieces = d.tiles[:0], d.pieces[:0]
	d.words = grow(d.words, r.rowBlock*r.strideA)
	k0 := w * r.k.perWord()
	n := min(r.wordBlock*r.k.perWord(), r.p.K-k0)
	for i := 0; i < m; {
		t := directTile{rows: r.k.tile(m - i).rows, stride: r.strideA * 4}
		if t.rows == r.k.rowUnit() {
			begin := len(d.pieces)
			if pieces, stride := r.direct.Pieces(d.pieces, r.row+m0+i, t.rows, k0, n); pieces != nil {
				d.pieces, t.pieces, t.stride = pieces, pieces[begin:], stride
				for j := range t.pieces {
					t.pieces[j].N /= r.k.perWord()
				}
			}
		}
		if t.pieces == nil {
			t.a = d.words[i*r.strideA:]
			r.fill(worker, t.a, r.row+m0+i, t.rows, w)
		}
		d.tiles = append(d.tiles, t)
		i += t.rows
	}
	return d.tiles
}

// directPanel is panel for rows that place has found. In the first panel, tiles of pieces fetch the rows after their own, and
// the last two the next panel.
func (r *run) directPanel(c []float32, ldc int, tiles []directTile, b, next []uint32, w int, first bool) {
	kw, acc := min(r.wordBlock, r.words-w), min(w, 1)
	half := kw * r.k.cols / 2
	for i := range tiles {
		t := &tiles[i]
		var fetch *uint32
		if len(next) > 0 && (!first || i >= len(tiles)-2) {
			fetch = &next[0]
			next = next[min(half, len(next)):]
		}
		if t.pieces != nil {
			r.k.pieces(&t.pieces[0], len(t.pieces), uintptr(t.stride), &b[0], &c[0], uintptr(ldc)*4, acc, fetch)
		} else {
			r.k.tile(t.rows).run(kw, &t.a[0], uintptr(t.stride), &b[0], &c[0], uintptr(ldc)*4, acc, fetch)
		}
		c = c[min(t.rows*ldc, len(c)):]
	}
}
