package vec

import (
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// BenchmarkVec measures one level after the other on a chunk that stays in the first cache; bytes are those read and
// written.
func BenchmarkVec(b *testing.B) {
	const n = 2048
	x, y, w := normals(n, 1), make([]float32, n), normals(n, 2)
	h := make([]uint16, n)
	for _, c := range []struct {
		name  string
		bytes int64
		do    func(f *Funcs)
	}{
		{"add", 12, func(f *Funcs) { f.Add(y, x, w) }},
		{"exp", 8, func(f *Funcs) { f.Exp(y, x) }},
		{"tanh", 8, func(f *Funcs) { f.Tanh(y, x) }},
		{"erf", 8, func(f *Funcs) { f.Erf(y, x) }},
		{"silu", 8, func(f *Funcs) { f.Silu(y, x) }},
		{"gelu", 8, func(f *Funcs) { f.Gelu(y, x) }},
		{"gelutanh", 8, func(f *Funcs) { f.GeluTanh(y, x) }},
		{"frombf16", 6, func(f *Funcs) { f.FromBF16(y, h) }},
		{"tobf16", 6, func(f *Funcs) { f.ToBF16(h, x) }},
		{"roundbf16", 8, func(f *Funcs) { f.RoundBF16(y, x) }},
		{"layernorm", 16, func(f *Funcs) { f.LayerNorm(y, x, w, x, 1e-6) }},
		{"rmsnorm", 12, func(f *Funcs) { f.RMSNorm(y, x, w, 1e-6, tensor.BF16) }},
		{"softmax", 8, func(f *Funcs) { f.Softmax(y, x) }},
		{"modulate", 16, func(f *Funcs) { f.Modulate(y, x, w, x, tensor.BF16) }},
	} {
		for _, l := range isa.Available() {
			f := For(l)
			if f.Level() != l {
				continue
			}
			b.Run(c.name+"/"+l.String(), func(b *testing.B) {
				b.SetBytes(c.bytes * n)
				for b.Loop() {
					c.do(f)
				}
			})
		}
	}
}
