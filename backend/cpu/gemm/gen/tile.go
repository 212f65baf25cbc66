package main

// The tiles: C[rows×cols] (+)= A·B over kw words of K. A's rows are lda bytes apart; B is a packed panel, cols words for
// each word of K. The accumulators stay in registers; A's words are broadcast one by one.
//
// A word is 4 bytes along K: one float32, a pair of bfloat16, or four int8.
//
// Tiles of more than half the height fetch ahead. The lower ones take B as fast as memory gives it, and the processor follows
// such a stream best when nothing comes in between.

// rowBase are the registers that hold the address of rows 0, 3, 6 and 9 of A; the two rows after each are reached by
// index (R11 = lda).
var rowBase = []string{"SI", "R8", "R9", "R10"}

func aAddr(row, offset int) string {
	base := rowBase[row/3]
	s := ""
	if offset != 0 {
		s = itoa(offset)
	}
	s += "(" + base + ")"
	if row%3 != 0 {
		s += "(R11*" + itoa(row%3) + ")"
	}
	return s
}

func tiles512(a *asm) {
	f32 := func(rm, s1, dst int) string { return sprintf("VFMADD231PS Z%d, Z%d, Z%d", rm, s1, dst) }
	u8 := func(rm, s1, dst int) string { return sprintf("VPDPBUSD Z%d, Z%d, Z%d", rm, s1, dst) }
	for _, t := range []tileSpec{
		{table: "tilesF32_512", name: "tileF32x%d_512", fma: f32},
		{table: "tilesBF16_512", name: "tileBF16x%d_512", fma: vdpbf16ps},
		{table: "tilesWide_512", name: "tileWide%d_512", fma: f32, wide: true},
		{table: "tilesI8_512", name: "tileI8x%d_512", fma: u8, add: "VPADDD"},
	} {
		t.tallest, t.reg, t.width, t.regs = 12, "Z", 64, 32
		for t.rows = t.tallest; t.rows > 0; t.rows-- {
			tile(a, t)
		}
	}
	for _, t := range []tileSpec{
		{name: "tileF32x%dPieces_512", fma: f32},
		{name: "tileBF16x%dPieces_512", fma: vdpbf16ps},
	} {
		t.rows, t.tallest, t.reg, t.width, t.regs, t.pieces = 12, 12, "Z", 64, 32, true
		tile(a, t)
	}
}

func tiles256(a *asm) {
	f32 := func(rm, s1, dst int) string { return sprintf("VFMADD231PS Y%d, Y%d, Y%d", rm, s1, dst) }
	// Without a dot product of bytes: |b|·(a with b's sign) in pairs of 16 bits, which cannot overflow since |a| ≤ 127.
	s8 := func(rm, s1, dst int) string {
		return sprintf("VPSIGNB Y%d, Y%d, Y14; VPMADDUBSW Y14, Y%d, Y14; VPMADDWD Y15, Y14, Y14; VPADDD Y14, Y%d, Y%d", rm, s1, rm+2, dst, dst)
	}
	for _, t := range []tileSpec{
		{table: "tilesF32_256", name: "tileF32x%d_256", tallest: 6, fma: f32},
		{table: "tilesWide_256", name: "tileWide%d_256", tallest: 6, fma: f32, wide: true},
		{table: "tilesI8_256", name: "tileI8x%d_256", tallest: 4, fma: s8, add: "VPADDD", temp: 13, begin: []string{"VPCMPEQW Y15, Y15, Y15", "VPABSW Y15, Y15"}},
	} {
		t.reg, t.width, t.regs = "Y", 32, 16
		for t.rows = t.tallest; t.rows > 0; t.rows-- {
			if t.temp != 0 {
				t.step = []string{sprintf("VPABSB Y%d, Y%d", 2*t.rows, 2*t.rows+2), sprintf("VPABSB Y%d, Y%d", 2*t.rows+1, 2*t.rows+3)}
			}
			tile(a, t)
		}
	}
	tile(a, tileSpec{name: "tileF32x%dPieces_256", rows: 6, tallest: 6, reg: "Y", width: 32, regs: 16, fma: f32, pieces: true})
}

type tileSpec struct {
	table   string // of Go, which the tile belongs to, unless it takes pieces
	name    string // with %d for the rows
	rows    int
	tallest int    // of the table
	reg     string // "Z" or "Y"
	width   int    // bytes of a register
	regs    int    // how many the processor has
	fma     func(rm, s1, dst int) string
	add     string   // adds sums; "" means VADDPS
	temp    int      // the register for words of A; 0 means all that are left
	begin   []string // before the loop
	step    []string // once B's two vectors are loaded
	// pieces tells that A's rows come in pieces, each with its own address and number of words: a Piece of package gemm.
	pieces bool
	wide   bool // words of B are bfloat16 pairs, each for two float32 of A
}

// unroll is how many words of K one pass of the main loop takes.
const unroll = 4

func tile(a *asm, t tileSpec) {
	w := t.width
	b0, b1 := 2*t.rows, 2*t.rows+1 // after the accumulators
	temp, temps := b1+1, min(t.regs-b1-1, 6)
	halves, mask := 1, t.regs-1
	if t.wide {
		halves, temps = 2, min(t.regs-b1-2, 6)
		t.begin = []string{"VPCMPEQD X15, X15, X15", sprintf("VPSLLD $16, X15, X%d", 15), "VPBROADCASTD X15, Y15"}
		if t.reg == "Z" {
			t.begin = []string{"MOVL $0xffff0000, AX", sprintf("VPBROADCASTD AX, Z%d", mask)}
		}
	}
	if t.temp != 0 {
		temp, temps = t.temp, 1
	}
	if t.add == "" {
		t.add = "VADDPS"
	}
	bases := rowBase[:(t.rows+2)/3]
	fetch := t.rows > t.tallest/2
	a.tile(goTile{t.table, sprintf(t.name, t.rows), t.rows, !fetch, t.pieces})
	if !t.pieces {
		a.op("MOVQ kw+0(FP), CX")
		a.op("MOVQ a+8(FP), SI")
	}
	a.op("MOVQ lda+16(FP), R11")
	a.op("MOVQ b+24(FP), BX")
	a.op("MOVQ c+32(FP), DI")
	a.op("MOVQ ldc+40(FP), DX")
	if fetch {
		a.op("MOVQ next+56(FP), R15")
		if !t.pieces {
			a.op("TESTQ R15, R15")
			a.op("CMOVQEQ BX, R15")
		}
	}
	a.op("LEAQ (R11)(R11*2), R12")
	rows := func() {
		for i := 1; i < len(bases); i++ {
			a.op("LEAQ (%s)(R12*1), %s", bases[i-1], bases[i])
		}
	}
	if !t.pieces {
		rows()
	}
	a.op("MOVQ DI, R13")
	for r := range t.rows {
		a.op("PREFETCHT0 (R13)")
		a.op("PREFETCHT0 %d(R13)", w)
		if r < t.rows-1 {
			a.op("ADDQ DX, R13")
		}
	}
	for i := range 2 * t.rows {
		if t.reg == "Z" {
			a.op("VPXORQ Z%d, Z%d, Z%d", i, i, i)
		} else {
			a.op("VXORPS Y%d, Y%d, Y%d", i, i, i)
		}
	}

	for _, op := range t.begin {
		a.op("%s", op)
	}
	// loadB loads B's vectors of a word: whole, or widened from its lower and then from its upper half.
	loadB := func(u, half int) {
		for i := range 2 {
			at := sprintf("%d(BX)", u*2*w+i*w)
			b := sprintf("%s%d", t.reg, b0+i)
			switch {
			case !t.wide:
				a.op("VMOVUPS %s, %s", at, b)
			case half == 1 && t.reg == "Z":
				a.op("VPANDD %s, Z%d, %s", at, mask, b)
			case half == 1:
				a.op("VPAND %s, Y%d, %s", at, mask, b)
			case t.reg == "Z":
				a.op("VPSLLD $16, %s, %s", at, b)
			default:
				a.op("VMOVDQU %s, %s", at, b)
				a.op("VPSLLD $16, %s, %s", b, b)
			}
		}
	}
	step := func(u int, prefetch bool) {
		for half := range halves {
			loadB(u, half)
			for _, op := range t.step {
				a.op("%s", op)
			}
			if prefetch && fetch && half == 0 {
				for i := 0; i < 2*w; i += 64 {
					a.op("PREFETCHT0 %d(BX)", u*2*w+1024+i)
				}
				if u*w%64 == 0 {
					a.op("PREFETCHT1 %d(R15)", u*w)
				}
			}
			for r := range t.rows {
				s := temp + r%temps
				a.op("VBROADCASTSS %s, %s%d", aAddr(r, 4*(u*halves+half)), t.reg, s)
				a.op("%s", t.fma(b0, s, 2*r))
				a.op("%s", t.fma(b1, s, 2*r+1))
			}
		}
	}
	advance := func(n int) {
		a.op("ADDQ $%d, BX", 2*w*n)
		if fetch {
			a.op("ADDQ $%d, R15", w*n)
		}
		for _, r := range bases {
			a.op("ADDQ $%d, %s", 4*n*halves, r)
		}
	}
	if t.pieces {
		a.op("MOVQ p+0(FP), R14")
		a.op("MOVQ n+8(FP), R13")
		a.label("piece")
		a.op("MOVQ (R14), SI")
		a.op("MOVQ 8(R14), CX")
		a.op("ADDQ $16, R14")
		a.op("CMPQ next+56(FP), $0")
		a.op("JNE fetching")
		a.op("LEAQ (SI)(R12*%d), R15", t.rows/3) // the rows after these
		a.label("fetching")
		rows()
	}
	a.op("MOVQ CX, AX")
	a.op("SHRQ $2, AX")
	a.op("JZ rest")
	a.label("loop")
	for u := range unroll {
		step(u, true)
	}
	advance(unroll)
	a.op("DECQ AX")
	a.op("JNZ loop")
	a.label("rest")
	a.op("ANDQ $%d, CX", unroll-1)
	a.op("JZ done")
	a.label("single")
	step(0, false)
	advance(1)
	a.op("DECQ CX")
	a.op("JNZ single")
	a.label("done")
	if t.pieces {
		a.op("DECQ R13")
		a.op("JNZ piece")
	}
	a.op("MOVQ acc+48(FP), AX")
	a.op("TESTQ AX, AX")
	a.op("JZ store")
	a.op("MOVQ DI, R13")
	for r := range t.rows {
		a.op("%s (R13), %s%d, %s%d", t.add, t.reg, 2*r, t.reg, 2*r)
		a.op("%s %d(R13), %s%d, %s%d", t.add, w, t.reg, 2*r+1, t.reg, 2*r+1)
		if r < t.rows-1 {
			a.op("ADDQ DX, R13")
		}
	}
	a.label("store")
	for r := range t.rows {
		a.op("VMOVUPS %s%d, (DI)", t.reg, 2*r)
		a.op("VMOVUPS %s%d, %d(DI)", t.reg, 2*r+1, w)
		if r < t.rows-1 {
			a.op("ADDQ DX, DI")
		}
	}
	a.op("VZEROUPPER")
	a.op("RET")
}
