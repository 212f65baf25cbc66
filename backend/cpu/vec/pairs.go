package vec

import (
	"unsafe"

	"github.com/gesso-go/gesso/tensor"
)

// The most common operations on bfloat16 words, without a detour over []float32: the same bits as widening, computing and
// rounding.

// AddBF16 sets dst to x+y, rounded.
func (f *Funcs) AddBF16(dst, x, y []uint16) {
	f.pairs(f.k.addPairs, dst, x, y, func(x, y float32) float32 { return x + y })
}

// SubBF16 sets dst to x-y, rounded.
func (f *Funcs) SubBF16(dst, x, y []uint16) {
	f.pairs(f.k.subPairs, dst, x, y, func(x, y float32) float32 { return x - y })
}

// MulBF16 sets dst to x·y, rounded.
func (f *Funcs) MulBF16(dst, x, y []uint16) {
	f.pairs(f.k.mulPairs, dst, x, y, func(x, y float32) float32 { return x * y })
}

func (f *Funcs) pairs(k func(dst, x, y *float32, n int), dst, x, y []uint16, one func(x, y float32) float32) {
	n := len(dst)
	x, y = x[:n], y[:n]
	if n > 1 {
		k(words(dst), words(x), words(y), n/2)
	}
	if n%2 != 0 {
		dst[n-1] = tensor.Float32ToBF16(one(tensor.BF16ToFloat32(x[n-1]), tensor.BF16ToFloat32(y[n-1])))
	}
}

// ModulateBF16 sets dst to x·(1+scale)+shift, rounded after each step.
func (f *Funcs) ModulateBF16(dst, x, scale, shift []uint16) {
	n := len(dst)
	x, scale, shift = x[:n], scale[:n], shift[:n]
	if n > 1 {
		f.k.modulatePairs(words(dst), words(x), words(scale), words(shift), n/2)
	}
	if n%2 != 0 {
		var v [4]float32
		for i, w := range []uint16{x[n-1], scale[n-1], shift[n-1]} {
			v[i] = tensor.BF16ToFloat32(w)
		}
		f.Modulate(v[3:], v[:1], v[1:2], v[2:3], tensor.BF16)
		dst[n-1] = tensor.Float32ToBF16(v[3])
	}
}

// AddToBF16 sets dst to x+y, rounded.
func (f *Funcs) AddToBF16(dst []uint16, x []float32, y []uint16) {
	if n := len(dst); n > 0 {
		f.k.addToBF16(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// AddAddToBF16 sets dst to x+y+z, rounded after each step.
func (f *Funcs) AddAddToBF16(dst []uint16, x []float32, y, z []uint16) {
	if n := len(dst); n > 0 {
		f.k.addAddToBF16(&dst[0], &x[:n][0], &y[:n][0], &z[:n][0], n)
	}
}

// AddMulAddToBF16 sets dst to (x+y)·gate+z, rounded after each step.
func (f *Funcs) AddMulAddToBF16(dst []uint16, x []float32, y, gate, z []uint16) {
	if n := len(dst); n > 0 {
		f.k.addMulAddToBF16(&dst[0], &x[:n][0], &y[:n][0], &gate[:n][0], &z[:n][0], n)
	}
}

// AddGeluTanhToBF16 sets dst to the tanh form of gelu of x+y, rounded before and after.
func (f *Funcs) AddGeluTanhToBF16(dst []uint16, x []float32, y []uint16) {
	if n := len(dst); n > 0 {
		f.k.addGeluTanhToBF16(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// AddQuickGeluToBF16 sets dst to v·sigmoid(1.702v) of v = x+y, rounded after each step.
func (f *Funcs) AddQuickGeluToBF16(dst []uint16, x []float32, y []uint16) {
	if n := len(dst); n > 0 {
		f.k.addQuickGeluToBF16(&dst[0], &x[:n][0], &y[:n][0], n)
	}
}

// words views neighbouring pairs as words.
func words(x []uint16) *float32 { return (*float32)(unsafe.Pointer(&x[0])) }
