package main

import (
	"fmt"
	"math"
)

// The kernels for arm64, for 16 queries. The assembler lacks most vector instructions on floats: they are words.

// Instructions on four float32 or 32-bit integers: destination, then two sources.
var neonOps = map[string]uint32{
	"FADD": 0x4e20d400, "FSUB": 0x4ea0d400, "FMUL": 0x6e20dc00, "FMLA": 0x4e20cc00, "FMAX": 0x4e20f400, "FMAXNM": 0x4e20c400,
	"FCMEQ": 0x4e20e400, "BIC": 0x4e601c00, "AND": 0x4e201c00, "ADD": 0x4ea08400, "MOV": 0x4ea01c00,
	"FRINTN": 0x4e218800, "FRINTM": 0x4e219800, "FCVTNS": 0x4e21a800, "FCVTZS": 0x4ea1b800, "FNEG": 0x6ea0f800,
	"SHL23": 0x4f005400 | 55<<16, "USHR16": 0x6f000400 | 48<<16, "DUP": 0x4e040400,
}

func (f *file) neon(op string, d, n, m int) {
	code, ok := neonOps[op]
	if !ok {
		panic(op)
	}
	if op == "MOV" {
		m = n
	}
	f.ins("WORD $0x%08x // %s V%d, V%d, V%d", code|uint32(m)<<16|uint32(n)<<5|uint32(d), op, d, n, m)
}

func (f *file) neonMemory(op uint32, what string, reg, base, offset, size int) {
	f.ins("WORD $0x%08x // %s V%d, [R%d, #%d]", op|uint32(offset/size)<<10|uint32(base)<<5|uint32(reg), what, reg, base, offset)
}

const ldrQ, strQ, ldrS = 0x3dc00000, 0x3d800000, 0xbd400000

// neonTile writes the tile of 4 rows: sums in 0 to 15, B in 16 to 19, words of A in 20 to 23.
func (f *file) neonTile() {
	f.WriteString("\n// func tileNEON(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)\n")
	f.WriteString("TEXT ·tileNEON(SB), NOSPLIT, $0-56\n")
	for i, p := range []string{"k", "a", "rowStride", "step", "b", "c", "alpha"} {
		f.ins("MOVD %s+%d(FP), R%d", p, 8*i, i)
	}
	rows := []int{1, 7, 8, 9}
	for r := 1; r < 4; r++ {
		f.ins("ADD R2, R%d, R%d", rows[r-1], rows[r])
	}
	for i := range 16 {
		f.ins("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	f.ins("CBZ R0, finish")
	f.WriteString("\nloop:\n")
	for r, p := range rows {
		f.neonMemory(ldrS, "LDR S", 20+r, p, 0, 4)
		f.ins("ADD R3, R%d", p)
	}
	for j := range 4 {
		f.neonMemory(ldrQ, "LDR Q", 16+j, 4, 16*j, 16)
	}
	for r := range rows {
		for j := range 4 {
			f.ins("WORD $0x%08x // FMLA V%d.4S, V%d.4S, V%d.S[0]", 0x4f801000|uint32(20+r)<<16|uint32(16+j)<<5|uint32(4*r+j), 4*r+j, 16+j, 20+r)
		}
	}
	f.ins("ADD $64, R4")
	f.ins("SUBS $1, R0")
	f.ins("BNE loop")
	f.WriteString("\nfinish:\n")
	f.ins("CBZ R6, store")
	for j := range 4 {
		f.neonMemory(ldrQ, "LDR Q", 16+j, 6, 16*j, 16)
	}
	for i := range 16 {
		f.neonMemory(ldrQ, "LDR Q", 20, 5, 16*i, 16)
		f.neon("FMLA", i, 20, 16+i%4)
	}
	f.WriteString("\nstore:\n")
	for i := range 16 {
		f.neonMemory(strQ, "STR Q", i, 5, 16*i, 16)
	}
	f.ins("RET")
}

// neonSoftmax writes softmaxF32NEON and softmaxRoundNEON: see softmaxGo. It takes the queries four at a time.
func (f *file) neonSoftmax(kind string) {
	const poly, quick, zero, scale, lowest, round = 16, 23, 29, 30, 31, 13 // constants; round: 13, 14, 15
	const top, negTop, sum = 8, 9, 10
	name := "softmax" + kind + "NEON"
	fmt.Fprintf(f, "\n// func %s(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)\n", name)
	fmt.Fprintf(f, "TEXT ·%s(SB), NOSPLIT, $0-56\n", name)
	f.ins("MOVD s+0(FP), R0")
	f.ins("MOVD stride+8(FP), R1")
	f.ins("FMOVS c+24(FP), F%d", scale)
	f.neon("DUP", scale, scale, 0)
	f.ins("MOVD top+32(FP), R4")
	f.ins("MOVD sum+40(FP), R5")
	f.ins("MOVD alpha+48(FP), R6")
	load := func(bits uint32, r int) {
		f.ins("MOVW $0x%08x, R9", bits)
		f.ins("VDUP R9, V%d.S4", r)
	}
	for i, c := range exp2Poly {
		load(math.Float32bits(c), poly+i)
	}
	for i, c := range fast {
		load(math.Float32bits(c), quick+i)
	}
	load(0, zero)
	load(math.Float32bits(-127), lowest)
	for i, c := range []uint32{1, 0x7fff, 0xffff0000} {
		load(c, round+i)
	}
	f.ins("MOVD $4, R7") // vectors
	f.WriteString("\nvector:\n")
	f.ins("MOVD rows+16(FP), R2")
	f.ins("MOVD R0, R3")
	load(0xff800000, 0)
	f.neon("MOV", 7, 0, 0)
	f.ins("CBZ R2, maxdone")
	f.WriteString("\nmax:\n")
	f.neonMemory(ldrQ, "LDR Q", 1, 3, 0, 16)
	f.neon("FMAXNM", 0, 0, 1) // passes over a NaN
	f.ins("ADD R1, R3")
	f.ins("SUBS $1, R2")
	f.ins("BNE max")
	f.WriteString("\nmaxdone:\n")
	f.neon("FMUL", 0, 0, scale)
	f.neonMemory(ldrQ, "LDR Q", top, 4, 0, 16)
	f.neon("FMAX", 0, 0, top)
	f.neonMemory(strQ, "STR Q", 0, 4, 0, 16)
	f.neon("FCMEQ", 1, 0, 7)
	f.neon("BIC", 0, 0, 1) // no key seen: subtract 0
	f.neon("FNEG", negTop, 0, 0)
	f.neon("FADD", 1, top, negTop)
	// exp2 takes register x to 2^x; y and z are scratch.
	exp2 := func(x, y, z int) {
		f.neon("FMAX", x, x, lowest)
		f.neon("FRINTN", y, x, 0)
		f.neon("FSUB", x, x, y) // r
		f.neon("FCVTNS", y, y, 0)
		f.neon("SHL23", y, y, 0)
		p, q := z, 7
		f.neon("MOV", p, poly, 0)
		for i := 1; i < len(exp2Poly); i++ {
			f.neon("MOV", q, poly+i, 0)
			f.neon("FMLA", q, p, x)
			p, q = q, p
		}
		f.neon("ADD", x, p, y)
	}
	exp2(1, 2, 3)
	f.neonMemory(strQ, "STR Q", 1, 6, 0, 16)
	f.neonMemory(ldrQ, "LDR Q", sum, 5, 0, 16)
	f.neon("FMUL", sum, sum, 1)
	f.ins("MOVD rows+16(FP), R2")
	f.ins("MOVD R0, R3")
	f.ins("CBZ R2, done")
	f.WriteString("\nrow:\n")
	f.neonMemory(ldrQ, "LDR Q", 2, 3, 0, 16)
	f.neon("MOV", 1, negTop, 0)
	f.neon("FMLA", 1, 2, scale)
	if kind == "F32" {
		exp2(1, 2, 3)
		f.neon("FADD", sum, sum, 1)
	} else {
		f.neon("FMAX", 1, 1, lowest)
		f.neon("FRINTM", 2, 1, 0)
		f.neon("FSUB", 2, 1, 2) // x - floor(x)
		p, q := 3, 4
		f.neon("MOV", p, quick, 0)
		for i := 1; i < 4; i++ {
			f.neon("MOV", q, quick+i, 0)
			f.neon("FMLA", q, p, 2)
			p, q = q, p
		}
		f.neon("FSUB", 1, 1, p)
		f.neon("MOV", 2, quick+5, 0)
		f.neon("FMLA", 2, 1, quick+4)
		f.neon("FMAX", 2, 2, zero)
		f.neon("FMLA", sum, 2, zero) // a NaN makes the sum one
		f.neon("FCVTZS", 1, 2, 0)
		f.neon("FADD", sum, sum, 1)
		f.neon("USHR16", 2, 1, 0)
		f.neon("AND", 2, 2, round)
		f.neon("ADD", 1, 1, round+1)
		f.neon("ADD", 1, 1, 2)
		f.neon("AND", 1, 1, round+2)
	}
	f.neonMemory(strQ, "STR Q", 1, 3, 0, 16)
	f.ins("ADD R1, R3")
	f.ins("SUBS $1, R2")
	f.ins("BNE row")
	f.WriteString("\ndone:\n")
	f.neonMemory(strQ, "STR Q", sum, 5, 0, 16)
	for _, r := range []int{0, 4, 5, 6} {
		f.ins("ADD $16, R%d", r)
	}
	f.ins("SUBS $1, R7")
	f.ins("BNE vector")
	f.ins("RET")
}
