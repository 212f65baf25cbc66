package main

import "strings"

// The tile kernels of AMX. The Go assembler has none of these instructions, so they are written as bytes: VEX.128.0F38.W0,
// C4 E2 (inverted vvvv, pp) op modrm (Intel SDM, volume 2).

// general registers by number, as far as addresses need them
var regNumber = map[string]int{"AX": 0, "CX": 1, "DX": 2, "BX": 3, "SI": 6, "DI": 7, "R8": 8, "R9": 9, "R10": 10, "R11": 11, "R12": 12, "R13": 13, "R14": 14}

func byteList(text string, b ...int) string {
	var list []string
	for _, x := range b {
		list = append(list, sprintf("BYTE $0x%02x", x))
	}
	return strings.Join(list, "; ") + " // " + text
}

// tileMemory is an instruction on tile t and the rows at base, which are stride apart.
func tileMemory(name string, pp, t int, base, stride string, disp int) string {
	b, x := regNumber[base], regNumber[stride]
	r := 0xe2 &^ (b>>3<<5 | x>>3<<6) // R is inverted and set: tiles are below 8
	return byteList(sprintf("%s %d(%s)(%s*1), TMM%d", name, disp, base, stride, t),
		0xc4, r, 0x78|pp, 0x4b, 0x44|t<<3, x&7<<3|b&7, disp)
}

func tileLoad(t int, base, stride string, disp int) string {
	return tileMemory("TILELOADD", 3, t, base, stride, disp)
}

// tileLoadT1 says that the rows are not needed again soon.
func tileLoadT1(t int, base, stride string, disp int) string {
	return tileMemory("TILELOADDT1", 1, t, base, stride, disp)
}

func tileStore(t int, base, stride string, disp int) string {
	return tileMemory("TILESTORED", 2, t, base, stride, disp)
}

func tileZero(t int) string {
	return byteList(sprintf("TILEZERO TMM%d", t), 0xc4, 0xe2, 0x7b, 0x49, 0xc0|t<<3)
}

// tileDot is dst += a·b, a being rows of A and b words of B.
func tileDot(name string, pp, op int) func(dst, a, b int) string {
	return func(dst, a, b int) string {
		return byteList(sprintf("%s TMM%d, TMM%d, TMM%d", name, b, a, dst), 0xc4, 0xe2, 0x78|pp-b<<3, op, 0xc0|dst<<3|a)
	}
}

func panelsAMX(a *asm) {
	panelAMX(a, "panelBF16_amx", tileDot("TDPBF16PS", 2, 0x5c))
	panelAMX(a, "panelI8_amx", tileDot("TDPBSSD", 3, 0x5e))
}

// panelAMX multiplies rows of A with a panel of 32 columns, 32 rows at a time, then the rest. Tiles 0 to 3 hold C, 4 and 5
// A, 6 and 7 B; the tiles of C and A have as many rows as there are. Tile state lives from LDTILECFG to TILERELEASE within
// one call that cannot be preempted: nothing else of the process ever sees it.
func panelAMX(a *asm, name string, dot func(dst, a, b int) string) {
	a.printf("\n// func %s(rows, kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int)\n", name)
	a.printf("TEXT ·%s(SB), NOSPLIT, $64-64\n", name)
	a.op("MOVQ rows+0(FP), R9")
	a.op("MOVQ kw+8(FP), R10")
	a.op("SHRQ $4, R10") // steps of 16 words
	a.op("MOVQ a+16(FP), SI")
	a.op("MOVQ lda+24(FP), R11")
	a.op("MOVQ c+40(FP), DI")
	a.op("MOVQ ldc+48(FP), R8")
	a.op("MOVQ $128, DX") // a row of B's panel
	// The configuration: palette 1, all tiles 64 bytes wide.
	a.op("VPXORQ Z0, Z0, Z0")
	a.op("VMOVDQU64 Z0, 0(SP)")
	a.op("MOVB $1, 0(SP)")
	a.op("MOVQ $0x0040004000400040, AX")
	a.op("MOVQ AX, 16(SP)")
	a.op("MOVQ AX, 24(SP)")
	a.op("VZEROUPPER")
	a.op("XORQ R14, R14") // whether the configuration for 32 rows is loaded
	config := func(a *asm) {
		a.op("LEAQ 0(SP), AX")
		a.op("%s", byteList("LDTILECFG (AX)", 0xc4, 0xe2, 0x78, 0x49, 0x00))
	}
	a.label("block")
	a.op("CMPQ R9, $32")
	a.op("JLT tail")
	a.op("TESTQ R14, R14")
	a.op("JNZ two")
	a.op("MOVQ $0x1010101010101010, AX")
	a.op("MOVQ AX, 48(SP)")
	config(a)
	a.op("MOVQ $1, R14")

	rowTiles := func(n int) {
		a.op("LEAQ (R8)(R8*1), AX") // R13 = C + 16·ldc
		a.op("LEAQ (DI)(AX*8), R13")
		a.op("LEAQ (R11)(R11*1), AX") // R12 = A + 16·lda
		a.op("LEAQ (SI)(AX*8), R12")
		a.op("MOVQ SI, R14") // moves along A
		a.op("MOVQ b+32(FP), BX")
		a.op("MOVQ R10, CX")
		a.op("MOVQ acc+56(FP), AX")
		a.op("TESTQ AX, AX")
		l := sprintf("%d", n)
		a.op("JNZ load%s", l)
		for i := range 2 * n {
			a.op("%s", tileZero(i))
		}
		a.op("JMP step%s", l)
		a.label("load" + l)
		for i := range n {
			base := []string{"DI", "R13"}[i]
			a.op("%s", tileLoad(2*i, base, "R8", 0))
			a.op("%s", tileLoad(2*i+1, base, "R8", 64))
		}
		a.label("step" + l)
		a.op("%s", tileLoad(6, "BX", "DX", 0))
		a.op("%s", tileLoad(7, "BX", "DX", 64))
		for i := range n {
			base := []string{"R14", "R12"}[i]
			a.op("%s", tileLoadT1(4+i, base, "R11", 0))
			a.op("%s", dot(2*i, 4+i, 6))
			a.op("%s", dot(2*i+1, 4+i, 7))
		}
		a.op("ADDQ $2048, BX")
		a.op("ADDQ $64, R14")
		if n == 2 {
			a.op("ADDQ $64, R12")
		}
		a.op("DECQ CX")
		a.op("JNZ step%s", l)
		for i := range n {
			base := []string{"DI", "R13"}[i]
			a.op("%s", tileStore(2*i, base, "R8", 0))
			a.op("%s", tileStore(2*i+1, base, "R8", 64))
		}
	}
	a.label("two")
	rowTiles(2)
	a.op("SUBQ $32, R9")
	a.op("JLE done")
	a.op("MOVQ R8, AX")
	a.op("SHLQ $5, AX")
	a.op("ADDQ AX, DI")
	a.op("MOVQ R11, AX")
	a.op("SHLQ $5, AX")
	a.op("ADDQ AX, SI")
	a.op("MOVQ $1, R14")
	a.op("JMP block")

	a.label("tail")
	a.op("TESTQ R9, R9")
	a.op("JLE done")
	a.op("MOVQ $0x1010101010101010, AX")
	a.op("MOVQ AX, 48(SP)")
	a.op("CMPQ R9, $16")
	a.op("JLE few")
	a.op("LEAQ -16(R9), AX")
	for _, t := range []int{2, 3, 5} {
		a.op("MOVB AX, %d(SP)", 48+t)
	}
	config(a)
	a.op("MOVQ $1, R14")
	a.op("JMP two")
	a.label("few")
	for _, t := range []int{0, 1, 4} {
		a.op("MOVB R9, %d(SP)", 48+t)
	}
	config(a)
	rowTiles(1)
	a.label("done")
	a.op("%s", byteList("TILERELEASE", 0xc4, 0xe2, 0x78, 0x49, 0xc0))
	a.op("RET")
}
