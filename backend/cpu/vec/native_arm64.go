package vec

import "github.com/gesso-go/gesso/backend/cpu/isa"

var neonFuncs = Funcs{level: isa.NEON, k: kernelsNEON}

func native(l isa.Level) *Funcs {
	if l == isa.NEON {
		return &neonFuncs
	}
	return nil
}
