package gemm

import "github.com/gesso-go/gesso/tensor"

// Block is a piece of A that is being packed, rows × elements of K.
type Block struct {
	half   bool // words are bfloat16 pairs, otherwise float32
	vec    *vectorOps
	data   []uint32
	stride int // words
}

// Put writes n elements of type t from the start of src to dst[row, k:k+n]; they are converted to what the kernel needs.
// A bfloat16 kernel takes only BF16.
func (b *Block) Put(row, k int, t tensor.DType, src []byte, n int) {
	if n == 0 {
		return
	}
	src = src[:n*t.Size()]
	if b.half {
		dst := wordBytes(b.data[row*b.stride:])
		copy(dst[2*k:2*(k+n)], src)
		return
	}
	dst := b.data[row*b.stride+k:][:n]
	b.vec.widen(dst, t, src)
}

// Zero clears dst[row, k:k+n].
func (b *Block) Zero(row, k, n int) {
	if b.half {
		dst := wordBytes(b.data[row*b.stride:])
		clear(dst[2*k : 2*(k+n)])
		return
	}
	clear(b.data[row*b.stride+k:][:n])
}

// fillA packs A[row:row+rows, k:k+n] of p, at the start of b, as rows of words words: the rest of a row is zero.
func (p *Problem) fillA(b *Block, row, rows, k, n, words int) {
	full := n // words
	if b.half {
		full = n / 2
	}
	for r := range rows {
		clear(b.data[r*b.stride:][full:words])
	}
	if p.Source != nil {
		p.Source.Fill(b, row, rows, k, n)
		return
	}
	size := p.A.DType.Size()
	for r := range rows {
		b.Put(r, 0, p.A.DType, p.A.Data[((row+r)*p.A.Stride+k)*size:], n)
	}
}
