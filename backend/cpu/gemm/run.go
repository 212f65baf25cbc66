package gemm

import (
	"unsafe"

	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// run is one product in progress, with its scratch memory; runs are reused.
//
// C is cut into blocks of rows × columns. A worker takes one block at a time and keeps its sums in scratch memory while
// it goes through K, multiplying a piece of A with the panels of B.
//
// Panels come packed (Packed), are packed by the worker (one block of rows only), or else are packed once, by all workers,
// for a strip of columns. Where there are several blocks of columns, A is packed once as well, by all workers, for a strip
// of rows; else each worker packs the piece that it needs. Rows of a Direct source are read where they lie, and a worker packs
// the rest of them.
type run struct {
	p    Problem
	k    *kernel
	emit Emit

	words                         int // of K
	rowBlock, colBlock, wordBlock int
	oneRow                        bool // one block of rows

	ahead int // columns from a worker's block to its next one, with one block of rows

	direct Direct // the source, where tiles read its rows in place

	strip, stripCols int      // the strip of columns
	panels           []uint32 // packed panels of the strip, each [words of K][cols]; nil: pack while computing
	shared           []uint32 // scratch memory for panels

	row, rows int       // the strip of rows
	strideA   int       // words of a packed row
	a         []uint32  // the strip of A, [block of K][rows][strideA]; nil: pack while computing
	packedA   []uint32  // scratch memory for a
	scales    []float32 // int8: of the strip's rows
	workers   []scratch

	packFn, fillFn, blockFn func(worker, lo, hi int) // bound once, so that a call allocates nothing
}

// scratch is the memory of one worker.
type scratch struct {
	a      Block
	words  []uint32 // backs a
	filled bool     // words hold all of A, which a product of one block of rows packs once
	panel  []uint32
	c      []uint32
	row    []uint32 // int8: a row as float32
	direct directBlock
}

const (
	rowPad   = 16 // keeps the rows of a block from falling into the same cache sets
	fillRows = 8  // of A, packed at once by a worker

	fineBlock = 4 << 20 // words multiplied for a block of few rows: some 40 µs
)

// Tests make them small.
var (
	stripWords = 4 << 20 // bounds the strip of B that is packed at once (16 MiB)
	stripA     = 6 << 20 // bounds the strip of A (24 MiB)
)

var runs = par.Kept[run]{New: func() *run {
	r := &run{}
	r.packFn, r.fillFn, r.blockFn = r.packStrip, r.fillStrip, r.blocks
	return r
}}

func newRun(k *kernel, p *Problem, workers int) *run {
	r := runs.Get()
	r.k, r.p = k, *p
	for len(r.workers) < workers {
		r.workers = append(r.workers, scratch{})
	}
	for i := range r.workers {
		r.workers[i].filled = false
	}
	return r
}

func (r *run) free() {
	r.p, r.emit, r.panels, r.a, r.direct = Problem{}, nil, nil, nil, nil
	for i := range r.workers {
		r.workers[i].a = Block{}
		clear(r.workers[i].direct.tiles)
		clear(r.workers[i].direct.pieces)
	}
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

func (r *run) do(pool *par.Pool) error {
	p, k := &r.p, r.k
	if p.M == 0 || p.N == 0 {
		return nil
	}
	if k.kind == wordI8 && p.Packed == nil {
		q, err := pack(pool, k.level, p, tensor.F32, nil) // any type of rows: the kernel is the same
		if err != nil {
			return err
		}
		p.Packed = q
	}
	workers := pool.Workers()
	r.words = k.words(p.K)
	r.wordBlock = split(r.words, k.block.words, 16) // whole vectors, so that only the last block packs a rest
	r.strideA = k.wordsA(r.wordBlock) + rowPad
	// Blocks of rows are multiples of the tallest tile, so that a row meets the same tile whatever the block.
	r.rowBlock = split(p.M, k.block.rows, k.rowUnit())
	r.colBlock = split(p.N, k.block.cols, k.cols)
	r.oneRow = p.M <= r.rowBlock
	if !r.oneRow && r.words > 0 {
		r.direct = k.direct(p)
	}
	if r.oneRow {
		// Few rows: the work is divided by columns, so finely that no worker waits long for another's last block.
		fine := fineBlock / max(p.M*r.words, 1)
		r.colBlock = split(p.N, max(k.cols, min(k.block.cols, (p.N+4*workers-1)/(4*workers), fine)), k.cols)
	} else if workers > 1 {
		// At least some blocks for each worker, or one of them has to wait for another's last.
		some := (16*workers + p.M/r.rowBlock) / (p.M/r.rowBlock + 1)
		r.colBlock = split(p.N, max(4*k.cols, min(k.block.cols, (p.N+some-1)/some)), k.cols)
	}
	r.ahead = workers * r.colBlock
	r.strip, r.stripCols = 0, p.N
	switch {
	case p.Packed != nil:
		r.panels = p.Packed.data
	case !r.oneRow:
		r.stripCols = split(p.N, max(r.colBlock, stripWords/max(r.words, 1)), r.colBlock)
		r.shared = grow(r.shared, r.stripCols*r.words)
		r.panels = r.shared
	}
	for cols := r.stripCols; r.strip < p.N; r.strip += cols {
		r.stripCols = min(cols, p.N-r.strip)
		if p.Packed == nil && r.panels != nil && r.words > 0 {
			pool.For(k.panels(r.stripCols), 1, r.packFn)
		}
		r.rowStrips(pool)
	}
	return nil
}

// rowStrips computes the strip of columns.
func (r *run) rowStrips(pool *par.Pool) {
	p, k := &r.p, r.k
	r.row, r.rows, r.a = 0, p.M, nil
	share := k.kind == wordI8 || r.stripCols > r.colBlock && r.words > 0 && r.direct == nil
	if share {
		r.rows = split(p.M, max(r.rowBlock, stripA/max(k.wordsA(r.words), 1)), r.rowBlock)
	}
	for rows := r.rows; r.row < p.M; r.row += rows {
		r.rows = min(rows, p.M-r.row)
		if share {
			r.packedA = grow(r.packedA, r.wordBlocks()*r.rows*r.strideA)
			r.a = r.packedA
			if len(r.scales) < r.rows {
				r.scales = make([]float32, r.rows)
			}
			pool.For(r.rows, fillRows, r.fillFn)
		}
		pool.For(r.rowBlocks()*((r.stripCols+r.colBlock-1)/r.colBlock), 1, r.blockFn)
	}
}

func (r *run) rowBlocks() int { return (r.rows + r.rowBlock - 1) / r.rowBlock }

func (r *run) wordBlocks() int { return (r.words + r.wordBlock - 1) / r.wordBlock }

// packStrip packs panels of the strip of columns.
func (r *run) packStrip(_, lo, hi int) {
	size := r.words * r.k.cols
	for j := lo; j < hi; j++ {
		r.p.packPanel(r.k, r.panels[j*size:][:size], r.strip+j*r.k.cols, 0, r.p.K)
	}
}

// fillStrip packs rows of the strip of A.
func (r *run) fillStrip(worker, lo, hi int) {
	if r.k.kind == wordI8 {
		r.quantizeA(worker, lo, hi)
		return
	}
	for w, block := 0, 0; w < r.words; w, block = w+r.wordBlock, block+1 {
		r.fill(worker, r.a[(block*r.rows+lo)*r.strideA:], r.row+lo, hi-lo, w)
	}
}

// fill packs rows of A to dst: the block of K that starts at word w.
func (r *run) fill(worker int, dst []uint32, row, rows, w int) {
	b := &r.workers[worker].a
	*b = Block{half: r.k.kind == wordBF16 && !r.k.wide, vec: r.k.vec, data: dst, stride: r.strideA}
	k0 := w * r.k.perWord()
	words := min(r.wordBlock, r.words-w)
	r.p.fillA(b, row, rows, k0, min(words*r.k.perWord(), r.p.K-k0), r.k.wordsA(words))
}

func (r *run) blocks(worker, lo, hi int) {
	n := r.rowBlocks()
	for i := lo; i < hi; i++ {
		m0 := i % n * r.rowBlock
		n0 := r.strip + i/n*r.colBlock
		r.block(worker, m0, min(r.rowBlock, r.rows-m0), n0, min(r.colBlock, r.strip+r.stripCols-n0))
	}
}

// block computes m rows from m0 of the strip on, in columns n0 to n0+n, and emits them.
func (r *run) block(worker, m0, m, n0, n int) {
	p, k, s := &r.p, r.k, &r.workers[worker]
	ldc := k.panels(n)*k.cols + rowPad
	s.c = grow(s.c, m*ldc)
	c := unsafe.Slice((*float32)(unsafe.Pointer(&s.c[0])), len(s.c))
	if r.words == 0 {
		clear(c)
	}
	if r.oneRow && r.panels != nil && k.streams(m) {
		for j := 0; j < n; j += k.cols { // in the order in which the panels lie in memory
			for w := 0; w < r.words; w += r.wordBlock {
				r.panel(c[j:], ldc, r.blockA(worker, m0, m, w, j == 0), r.panelB(s, n0+j, w), nil, m, w, false)
			}
		}
	} else {
		for w := 0; w < r.words; w += r.wordBlock {
			var a []uint32
			var tiles []directTile
			if r.direct != nil {
				tiles = r.place(worker, m0, m, w)
			} else {
				a = r.blockA(worker, m0, m, w, true)
			}
			for j := 0; j < n; j += k.cols {
				b, next := r.panelB(s, n0+j, w), r.nextB(s, n0, n, j, w)
				if r.direct != nil {
					r.directPanel(c[j:], ldc, tiles, b, next, w, j == 0)
				} else {
					r.panel(c[j:], ldc, a, b, next, m, w, r.a != nil && j == 0)
				}
			}
		}
	}
	s.filled = r.oneRow
	for i := range m {
		sums := c[i*ldc:]
		if k.kind == wordI8 {
			p.Packed.dequantize(sums[:n], n0, r.scales[m0+i], p.Scale, &c[min(i+1, m-1)*ldc])
		}
		r.emit(worker, r.row+m0+i, n0, sums[:n])
	}
}

// blockA returns m rows from m0 of the strip of A on, packed, from word w on. Where the strip isn't packed, first tells that
// the worker has to pack them for this block of C.
func (r *run) blockA(worker, m0, m, w int, first bool) []uint32 {
	if r.a != nil {
		return r.a[(w/r.wordBlock*r.rows+m0)*r.strideA:]
	}
	s, at, size := &r.workers[worker], 0, m*r.strideA
	if r.oneRow { // kept for the other blocks
		at, size = w/r.wordBlock*size, r.wordBlocks()*size
	}
	s.words = grow(s.words, size)
	a := s.words[at:]
	if first && !s.filled {
		r.fill(worker, a, r.row+m0, m, w)
	}
	return a
}

// panelB returns the panel of column col from word w on.
func (r *run) panelB(s *scratch, col, w int) []uint32 {
	if r.panels != nil {
		return r.panels[(col-r.strip)*r.words+w*r.k.cols:]
	}
	s.panel = grow(s.panel, r.wordBlock*r.k.cols)
	k0 := w * r.k.perWord()
	r.p.packPanel(r.k, s.panel, col, k0, min(r.wordBlock*r.k.perWord(), r.p.K-k0))
	return s.panel
}

// nextB returns the panel that most likely follows that of column n0+j and word w in a block of n columns, or nil: the
// next one of the block, or in few rows the first one of the block that this worker takes then if the workers keep step.
func (r *run) nextB(s *scratch, n0, n, j, w int) []uint32 {
	j += r.k.cols
	if j >= n {
		j, w = 0, w+r.wordBlock
	}
	if w >= r.words {
		n0, w = n0+r.ahead, 0
	}
	if r.panels == nil || w == 0 && j == 0 && !r.oneRow || n0+j >= r.strip+r.stripCols {
		return nil
	}
	return r.panelB(s, n0+j, w)[:min(r.wordBlock, r.words-w)*r.k.cols]
}

// panel multiplies the rows of a with a panel, or adds to c after the first block of K. Meanwhile, far tells that a is not
// in this worker's cache and each tile fetches the rows of the one after it; the first two tiles without such rows fetch the
// next panel, if there is one.
func (r *run) panel(c []float32, ldc int, a, b, next []uint32, rows, w int, far bool) {
	kw, acc := min(r.wordBlock, r.words-w), min(w, 1)
	lda := uintptr(r.strideA) * 4
	if r.k.panel != nil {
		r.k.panel(rows, kw, &a[0], lda, &b[0], &c[0], uintptr(ldc)*4, acc)
		return
	}
	half := kw * r.k.cols / 2
	for i := 0; i < rows; {
		t := r.k.tile(rows - i)
		var fetch *uint32
		if far && i+t.rows < rows {
			fetch = &a[(i+t.rows)*r.strideA]
		} else if len(next) > 0 {
			fetch = &next[0]
			next = next[min(half, len(next)):]
		}
		t.run(kw, &a[i*r.strideA], lda, &b[0], &c[i*ldc], uintptr(ldc)*4, acc, fetch)
		i += t.rows
	}
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
	adviseHuge(s)
	skip := int(-uintptr(unsafe.Pointer(&s[0])) % 64 / 4)
	return s[skip : skip+n : skip+n]
}
