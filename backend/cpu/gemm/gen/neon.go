package main

const tallestNEON = 4

// tilesNEON writes tiles of 16 columns for arm64. The assembler lacks most vector instructions on floats: they are words.
func tilesNEON(a *asm) {
	for rows := tallestNEON; rows > 0; rows-- {
		tileNEON(a, rows)
	}
}

// Registers: sums 0 to 15, B 16 to 19, A from 20 on, one for each row.
func tileNEON(a *asm, rows int) {
	a.tile(goTile{table: "tilesF32_neon", name: sprintf("tileF32x%d_neon", rows), rows: rows, streams: rows <= tallestNEON/2})
	for i, p := range []string{"kw", "a", "lda", "b", "c", "ldc", "acc"} {
		a.op("MOVD %s+%d(FP), R%d", p, 8*i, i)
	}
	row := func(r int) int { return []int{1, 7, 8, 9}[r] } // address of a row of A
	for r := 1; r < rows; r++ {
		a.op("ADD R2, R%d, R%d", row(r-1), row(r))
	}
	memory := func(op uint32, what string, reg, base, offset, size int) {
		a.op("WORD $0x%08x // %s V%d, [R%d, #%d]", op|uint32(offset/size)<<10|uint32(base)<<5|uint32(reg), what, reg, base, offset)
	}
	const ldrQ, strQ, ldrS = 0x3dc00000, 0x3d800000, 0xbd400000
	for i := range 4 * rows {
		a.op("VEOR V%d.B16, V%d.B16, V%d.B16", i, i, i)
	}
	step := func(k int) { // word k of A's registers
		for j := range 4 {
			memory(ldrQ, "LDR Q", 16+j, 3, 64*k+16*j, 16)
		}
		for r := range rows {
			for j := range 4 {
				op := 0x4f801000 | uint32(k&1)<<21 | uint32(k>>1)<<11 | uint32(20+r)<<16 | uint32(16+j)<<5 | uint32(4*r+j)
				a.op("WORD $0x%08x // FMLA V%d.4S, V%d.4S, V%d.S[%d]", op, 4*r+j, 16+j, 20+r, k)
			}
		}
	}
	a.op("SUBS $4, R0")
	a.op("BLT rest")
	a.printf("\nloop:\n")
	for r := range rows {
		memory(ldrQ, "LDR Q", 20+r, row(r), 0, 16)
		a.op("ADD $16, R%d", row(r))
	}
	for k := range 4 {
		step(k)
	}
	a.op("ADD $256, R3")
	a.op("SUBS $4, R0")
	a.op("BGE loop")
	a.printf("\nrest:\n")
	a.op("ADDS $4, R0")
	a.op("BEQ done")
	a.printf("\nword:\n")
	for r := range rows {
		memory(ldrS, "LDR S", 20+r, row(r), 0, 4)
		a.op("ADD $4, R%d", row(r))
	}
	step(0)
	a.op("ADD $64, R3")
	a.op("SUBS $1, R0")
	a.op("BNE word")
	a.printf("\ndone:\n")
	a.op("CBZ R6, first")
	a.op("MOVD R4, R10")
	for r := range rows {
		for j := range 4 {
			memory(ldrQ, "LDR Q", 16+j, 10, 16*j, 16)
		}
		for j := range 4 {
			d := 4*r + j
			a.op("WORD $0x%08x // FADD V%d.4S, V%d.4S, V%d.4S", 0x4e20d400|uint32(16+j)<<16|uint32(d)<<5|uint32(d), d, d, 16+j)
		}
		a.op("ADD R5, R10")
	}
	a.printf("\nfirst:\n")
	for r := range rows {
		for j := range 4 {
			memory(strQ, "STR Q", 4*r+j, 4, 16*j, 16)
		}
		a.op("ADD R5, R4")
	}
	a.op("RET")
}
