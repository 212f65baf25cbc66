package gemm

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// kernel is one way to multiply packed operands. A new instruction set adds an entry to the table of its architecture.
//
// Packed operands are made of words, 4 bytes along K: see wordKind. A is packed by rows, so that a kernel broadcasts its
// words; B by panels of cols columns, [K words][cols].
type kernel struct {
	name  string
	level isa.Level
	kind  wordKind
	flip  bool   // int8: the bytes of A have 128 added
	wide  bool   // a word of A is a float32; B's are bfloat16 pairs, each for two words of A
	cols  int    // width of a panel and of a tile; two vectors where there is a vec
	tiles []tile // tallest first, the last of one row; or
	panel panel
	// pieces is the tallest tile for rows of A that consist of n pieces, each of so many words; nil where there is none. Where
	// next is nil it fetches the rows after its own.
	pieces func(p *Piece, n int, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)
	block  blocking
	vec    *vectorOps
	pays   func() bool // whether it is worth while on this processor; nil means yes
}

// panel computes any number of rows, 32 columns wide; kw is a multiple of 16. Its arguments are as those of a tile.
type panel func(rows, kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)

// wordKind is what the 4 bytes of a word are, the first element being the lowest.
type wordKind uint8

const (
	wordF32  wordKind = iota // one float32
	wordBF16                 // two bfloat16; sums are float32
	wordI8                   // four int8; sums are int32
)

// tile computes rows×cols sums: C = A·B, or C += A·B with acc 1. lda and ldc are in bytes. It reads kw·cols words of B, rows
// rows of as many words of A as meet kw words of B, and writes (with acc also reads) rows·cols sums: float32, or int32 where
// words are int8. Meanwhile kw·cols/2 words at next, unless it is nil, may be fetched to the second cache.
type tile struct {
	rows    int
	streams bool // takes B as fast as memory gives it, and fetches nothing ahead
	run     func(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, next *uint32)
}

// blocking are the sizes of the loops around the tiles: rows and columns of the block of C that a worker keeps as
// float32, and words of K that A and B advance at once.
type blocking struct{ rows, cols, words int }

// perWord returns the elements of a word of B.
func (k *kernel) perWord() int {
	switch k.kind {
	case wordBF16:
		return 2
	case wordI8:
		return 4
	}
	return 1
}

// wordsA returns the words of A that meet n words of B.
func (k *kernel) wordsA(n int) int {
	if k.wide {
		return 2 * n
	}
	return n
}

// words returns the words of B that n elements are packed to; those that hold no element are zero.
func (k *kernel) words(n int) int {
	w := (n + k.perWord() - 1) / k.perWord()
	if k.panel != nil {
		w = (w + 15) &^ 15
	}
	return w
}

// rowUnit returns the rows of the tallest tile.
func (k *kernel) rowUnit() int {
	if k.panel != nil {
		return 32
	}
	return k.tiles[0].rows
}

// tile returns the tile for the first of rows rows: the tallest, but the last two share what is left for them, for low tiles
// make less of each word of B.
func (k *kernel) tile(rows int) *tile {
	if most := k.tiles[0].rows; rows > most && rows < 2*most {
		rows = (rows + 1) / 2
	}
	i := 0
	for k.tiles[i].rows > rows {
		i++
	}
	return &k.tiles[i]
}

// streams reports whether a product of m rows, which are one tile, takes no longer than reading B from memory.
func (k *kernel) streams(m int) bool {
	return k.panel == nil && m <= k.tiles[0].rows && k.tile(m).streams
}

// choose returns the first kernel of the table that level offers for operands of types a and b.
func choose(level isa.Level, a, b tensor.DType) (*kernel, error) {
	if a != b && b != tensor.I8 && (a != tensor.F32 || !b.IsHalf()) {
		return nil, fmt.Errorf("gemm: A is %v and B is %v, expected the same type, or f32 with a half type, or i8 for B", a, b)
	}
	for i := range kernels {
		if k := &kernels[i]; k.level <= level && k.fits(a, b) && (k.pays == nil || k.pays()) {
			return k, nil
		}
	}
	return nil, fmt.Errorf("gemm: no kernel for %v at level %v", a, level)
}

func (k *kernel) fits(a, b tensor.DType) bool {
	switch k.kind {
	case wordBF16:
		return b == tensor.BF16 && (a == tensor.BF16 || a == tensor.F32 && k.wide)
	case wordI8:
		return b == tensor.I8
	}
	return b != tensor.I8
}

// portable and portableInt8 are the last entries of every table.
var (
	portable = kernel{
		name: "portable", level: isa.Portable, cols: 4,
		tiles: []tile{{4, false, tilePortable4}, {1, true, tilePortable1}},
		block: blocking{rows: 64, cols: 256, words: 256},
	}
	portableInt8 = kernel{
		name: "portable int8", level: isa.Portable, kind: wordI8, cols: 4,
		tiles: []tile{{1, false, tilePortableInt8}},
		block: blocking{rows: 64, cols: 256, words: 256},
	}
)
