package gemm

import (
	"sync"
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/par"
)

// run is one product in progress, with its scratch memory; runs are reused.
//
// C is cut into blocks of rows × columns. A worker takes one block at a time and keeps its sums in scratch memory while
// it goes through K: it packs a piece of A, and multiplies it with the panels of B. Panels come packed (Packed), are packed
// by the worker (one block of rows only), or else are packed once, by all workers, for a strip of columns.
type run struct {
	p    Problem
	k    *kernel
	emit Emit

	rowBlock, colBlock, wordBlock int
	rowBlocks                     int
	strip                         int      // first column of the packed strip
	stripCols                     int      // its columns
	panels                        []uint32 // packed panels from column strip on, each [words of K][cols]; nil: pack while computing
	shared                        []uint32 // scratch memory for panels
	workers                       []scratch

	packFn, blockFn func(worker, lo, hi int) // bound once, so that a call allocates nothing
}

// scratch is the memory of one worker.
type scratch struct {
	a     Block
	panel []uint32
	c     []float32
	words []uint32 // backs c
}

// stripWords bounds the strip of B that is packed at once (16 MiB).
const stripWords = 4 << 20

// rowPad keeps the rows of a block from falling into the same cache sets.
const rowPad = 16

var runs = sync.Pool{New: func() any {
	r := &run{}
	r.packFn, r.blockFn = r.packStrip, r.blocks
	return r
}}

func newRun(k *kernel, p *Problem, workers int) *run {
	r := runs.Get().(*run)
	r.k, r.p = k, *p
	for len(r.workers) < workers {
		r.workers = append(r.workers, scratch{})
	}
	return r
}

func (r *run) free() {
	r.p, r.emit, r.panels = Problem{}, nil, nil
	runs.Put(r)
}

// split cuts n into the fewest pieces of at most limit and returns their size, rounded up to a multiple of unit.
func split(n, limit, unit int) int {
	if n <= 0 {
		return unit
	}
	pieces := (n + limit - 1) / limit
	size := (n + pieces - 1) / pieces
	return (size + unit - 1) / unit * unit
}

func (r *run) do(pool *par.Pool) {
	p, k := &r.p, r.k
	if p.M == 0 || p.N == 0 {
		return
	}
	words := k.words(p.K)
	workers := pool.Workers()
	r.wordBlock = split(words, k.block.words, 16) // whole vectors, so that only the last block packs a rest
	// Blocks of rows are multiples of the tallest tile, so that a row meets the same tile whatever the block.
	r.rowBlock = split(p.M, k.block.rows, k.tiles[0].rows)
	r.colBlock = split(p.N, k.block.cols, k.cols)
	r.rowBlocks = (p.M + r.rowBlock - 1) / r.rowBlock
	if r.rowBlocks == 1 {
		// Few rows: the work is divided by columns.
		r.colBlock = split(p.N, max(k.cols, min(k.block.cols, (p.N+4*workers-1)/(4*workers))), k.cols)
	}
	if p.Packed != nil || r.rowBlocks == 1 {
		if p.Packed != nil {
			r.panels = p.Packed.data
		}
		r.strip, r.stripCols = 0, p.N
		r.each(pool)
		return
	}
	cols := split(p.N, max(r.colBlock, stripWords/max(words, 1)), r.colBlock)
	r.shared = grow(r.shared, cols*words)
	r.panels = r.shared
	for r.strip = 0; r.strip < p.N; r.strip += cols {
		r.stripCols = min(cols, p.N-r.strip)
		if words > 0 {
			pool.For((r.stripCols+k.cols-1)/k.cols, 1, r.packFn)
		}
		r.each(pool)
	}
}

// each computes the blocks of the strip.
func (r *run) each(pool *par.Pool) {
	colBlocks := (r.stripCols + r.colBlock - 1) / r.colBlock
	pool.For(r.rowBlocks*colBlocks, 1, r.blockFn)
}

func (r *run) packStrip(_, lo, hi int) {
	size := r.k.words(r.p.K) * r.k.cols
	for j := lo; j < hi; j++ {
		r.p.packPanel(r.k, r.panels[j*size:][:size], r.strip+j*r.k.cols, 0, r.p.K)
	}
}

func (r *run) blocks(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		m0 := i % r.rowBlocks * r.rowBlock
		n0 := r.strip + i/r.rowBlocks*r.colBlock
		r.block(worker, m0, min(r.rowBlock, r.p.M-m0), n0, min(r.colBlock, r.strip+r.stripCols-n0))
	}
}

// block computes C[m0:m0+m, n0:n0+n] and emits it.
func (r *run) block(worker, m0, m, n0, n int) {
	p, k, s := &r.p, r.k, &r.workers[worker]
	words := k.words(p.K)
	padded := k.paddedRows(m)
	nPad := (n + k.cols - 1) / k.cols * k.cols
	ldc := nPad + rowPad
	s.words = grow(s.words, padded*ldc)
	s.c = unsafe.Slice((*float32)(unsafe.Pointer(&s.words[0])), len(s.words))
	if words == 0 {
		clear(s.c[:m*ldc])
	}
	s.a.k, s.a.stride = k, r.wordBlock+rowPad
	s.a.data = grow(s.a.data, padded*s.a.stride)
	lda := uintptr(s.a.stride) * 4
	for w0 := 0; w0 < words; w0 += r.wordBlock {
		kw := min(r.wordBlock, words-w0)
		k0 := w0 * k.perWord()
		kn := min(kw*k.perWord(), p.K-k0)
		p.fillA(&s.a, m0, m, padded, k0, kn)
		acc := min(w0, 1)
		for j := 0; j < n; j += k.cols {
			var b []uint32
			if r.panels != nil {
				b = r.panels[(n0+j-r.strip)*words+w0*k.cols:]
			} else {
				s.panel = grow(s.panel, r.wordBlock*k.cols)
				b = s.panel
				p.packPanel(k, b, n0+j, k0, kn)
			}
			i := 0
			for _, t := range k.tiles {
				for ; padded-i >= t.rows; i += t.rows {
					t.run(kw, &s.a.data[i*s.a.stride], lda, &b[0], &s.c[i*ldc+j], uintptr(ldc)*4, acc)
				}
			}
		}
	}
	for i := range m {
		r.emit(worker, m0+i, n0, s.c[i*ldc:][:n])
	}
}

// paddedRows returns the rows that the tiles for m rows compute.
func (k *kernel) paddedRows(m int) int {
	last := k.tiles[len(k.tiles)-1].rows
	return (m + last - 1) / last * last
}

// grow returns a slice of n words, s itself when it is large enough. The memory is aligned to 64 bytes and holds
// anything.
func grow(s []uint32, n int) []uint32 {
	if cap(s) >= n {
		return s[:n]
	}
	return aligned(n)
}

// aligned returns n zero words aligned to 64 bytes.
func aligned(n int) []uint32 {
	if n == 0 {
		return nil
	}
	s := make([]uint32, n+15)
	skip := int(-uintptr(unsafe.Pointer(&s[0])) % 64 / 4)
	return s[skip : skip+n : skip+n]
}
