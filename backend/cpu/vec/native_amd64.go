package vec

import "github.com/gesso-go/gesso/backend/cpu/isa"

var (
	avx2Funcs   = Funcs{level: isa.AVX2, k: kernelsAVX2}
	avx512Funcs = Funcs{level: isa.AVX512, k: kernelsAVX512}
)

func native(l isa.Level) *Funcs {
	switch {
	case l >= isa.AVX512:
		return &avx512Funcs
	case l == isa.AVX2:
		return &avx2Funcs
	}
	return nil
}
