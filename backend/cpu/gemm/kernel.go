package gemm

import (
	"fmt"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// kernel is one way to multiply packed operands. A new instruction set adds an entry to the table of its architecture.
//
// Packed operands are made of words, 4 bytes along K: one float32, or two bfloat16 of which the first is the lower half.
// A is packed by rows, so that a kernel broadcasts its words; B by panels of cols columns, [K words][cols].
type kernel struct {
	name  string
	level isa.Level
	half  bool   // a word is a bfloat16 pair, and both operands are bfloat16; otherwise a word is a float32
	cols  int    // width of a panel and of a tile; two vectors where there is a vec
	tiles []tile // tallest first
	block blocking
	vec   *vectorOps
}

// tile computes rows×cols sums: C = A·B, or C += A·B with acc 1. lda and ldc are in bytes. It reads rows rows of kw words
// of A, kw·cols words of B, and writes (with acc also reads) rows·cols sums.
type tile struct {
	rows int
	run  func(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)
}

// blocking are the sizes of the loops around the tiles: rows and columns of the block of C that a worker keeps as
// float32, and words of K that A and B advance at once.
type blocking struct{ rows, cols, words int }

// perWord returns the elements of a word.
func (k *kernel) perWord() int {
	if k.half {
		return 2
	}
	return 1
}

// words returns the words that hold n elements.
func (k *kernel) words(n int) int { return (n + k.perWord() - 1) / k.perWord() }

// choose returns the first kernel of the table that level offers for operands of types a and b.
func choose(level isa.Level, a, b tensor.DType) (*kernel, error) {
	if a != b && (a != tensor.F32 || !b.IsHalf()) {
		return nil, fmt.Errorf("gemm: A is %v and B is %v, expected the same type, or f32 with a half type", a, b)
	}
	for i := range kernels {
		k := &kernels[i]
		if k.level <= level && (!k.half || a == tensor.BF16 && b == tensor.BF16) {
			return k, nil
		}
	}
	return nil, fmt.Errorf("gemm: no kernel for %v at level %v", a, level)
}

// portable is the last entry of every table.
var portable = kernel{
	name: "portable", level: isa.Portable, cols: 4,
	tiles: []tile{{4, tilePortable4}, {1, tilePortable1}},
	block: blocking{rows: 64, cols: 256, words: 256},
}
