package main

// Packing: panels of B from either layout, rows of A, and rows of C back to half types.
//
// All of these work on whole vectors; the Go callers finish the rest.

// source is how a vector of words is loaded from an operand's memory.
type source struct {
	name string
	size int                                        // bytes of an element in memory (a word of bfloat16 pairs counts as 4)
	load func(a *asm, v vector, addr string, i int) // register i = the words at addr
}

// vector is a register file.
type vector struct {
	reg   string // "Z" or "Y"
	width int    // bytes
	count int
	tag   string // suffix of function names
}

var (
	v512 = vector{"Z", 64, 32, "512"}
	v256 = vector{"Y", 32, 16, "256"}
)

func (v vector) lanes() int { return v.width / 4 }

var (
	words = source{"Words", 4, func(a *asm, v vector, addr string, i int) {
		a.op("VMOVUPS %s, %s%d", addr, v.reg, i)
	}}
	bf16 = source{"BF16", 2, func(a *asm, v vector, addr string, i int) {
		a.op("VPMOVZXWD %s, %s%d", addr, v.reg, i)
		a.op("VPSLLD $16, %s%d, %s%d", v.reg, i, v.reg, i)
	}}
	f16 = source{"F16", 2, func(a *asm, v vector, addr string, i int) {
		a.op("VCVTPH2PS %s, %s%d", addr, v.reg, i)
	}}
	sources = []source{words, bf16, f16}
)

func packs(v vector) func(*asm) {
	return func(a *asm) {
		for _, s := range sources {
			transpose(a, v, s)
		}
		for _, s := range sources {
			copyRows(a, v, s)
		}
		interleaveRows(a, v)
		widen(a, v, bf16)
		widen(a, v, f16)
		narrowBF16(a, v)
		narrowF16(a, v)
		quants(a, v)
	}
}

// transpose packs lanes columns of a panel from B stored N×K, of which there are cols; the last one is repeated.
func transpose(a *asm, v vector, s source) {
	n := v.lanes()
	name := sprintf("transpose%s_%s", s.name, v.tag)
	a.printf("\n// func %s(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)\n", name)
	a.printf("TEXT ·%s(SB), NOSPLIT, $%d-48\n", name, 8*n)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ width+8(FP), DX")
	a.op("MOVQ src+16(FP), SI")
	a.op("MOVQ stride+24(FP), R9")
	a.op("MOVQ cols+32(FP), R10")
	a.op("MOVQ blocks+40(FP), CX")
	a.op("XORQ R8, R8")
	for i := range n { // the offset of each column, on the stack
		a.op("MOVQ R8, %d(SP)", 8*i)
		if i+1 < n {
			a.op("LEAQ (R8)(R9*1), R11")
			a.op("CMPQ R10, $%d", i+1)
			a.op("CMOVQGT R11, R8")
		}
	}
	a.label("loop")
	for i := range n {
		a.op("MOVQ %d(SP), R8", 8*i)
		s.load(a, v, "(SI)(R8*1)", i)
	}
	// Registers 0..n-1 hold the rows. Each stage exchanges halves of ever larger units between pairs of registers.
	x, y := 0, n // current and other half of the register file
	stage := func(lo, hi string, dist int) {
		for i := range n {
			if i&dist != 0 {
				continue
			}
			a.op(lo, v.reg, x+i+dist, v.reg, x+i, v.reg, y+i)
			a.op(hi, v.reg, x+i+dist, v.reg, x+i, v.reg, y+i+dist)
		}
		x, y = y, x
	}
	stage("VUNPCKLPS %s%d, %s%d, %s%d", "VUNPCKHPS %s%d, %s%d, %s%d", 1)
	stage("VUNPCKLPD %s%d, %s%d, %s%d", "VUNPCKHPD %s%d, %s%d, %s%d", 2)
	// Now lane l (128 bits) of register 4g+q holds rows 4g..4g+3 of word 4l+sigma(q), where the two unpacks left
	// sigma = 0, 2, 1, 3.
	if v.reg == "Z" {
		stage("VSHUFF32X4 $0x44, %s%d, %s%d, %s%d", "VSHUFF32X4 $0xee, %s%d, %s%d, %s%d", 4)
		stage("VSHUFF32X4 $0x88, %s%d, %s%d, %s%d", "VSHUFF32X4 $0xdd, %s%d, %s%d, %s%d", 8)
	} else {
		stage("VPERM2F128 $0x20, %s%d, %s%d, %s%d", "VPERM2F128 $0x31, %s%d, %s%d, %s%d", 4)
	}
	at := make([]int, n) // register of word w
	sigma := []int{0, 2, 1, 3}
	for q := range 4 {
		if v.reg == "Y" {
			at[sigma[q]] = x + q
			at[4+sigma[q]] = x + q + 4
			continue
		}
		// $0x44/$0xee split lanes {0,1} from {2,3}, $0x88/$0xdd then even from odd.
		for lane, r := range []int{0, 8, 4, 12} {
			at[4*lane+sigma[q]] = x + q + r
		}
	}
	for w := range n {
		a.op("VMOVUPS %s%d, (DI)", v.reg, at[w])
		a.op("ADDQ DX, DI")
	}
	a.op("ADDQ $%d, SI", n*s.size)
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// copyRows packs n words of K of a whole panel (two vectors wide) from B stored K×N.
func copyRows(a *asm, v vector, s source) {
	name := sprintf("rows%s_%s", s.name, v.tag)
	a.printf("\n// func %s(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)\n", name)
	a.printf("TEXT ·%s(SB), NOSPLIT, $0-40\n", name)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ dstStride+8(FP), R9")
	a.op("MOVQ src+16(FP), SI")
	a.op("MOVQ stride+24(FP), DX")
	a.op("MOVQ n+32(FP), CX")
	a.label("loop")
	s.load(a, v, "(SI)", 0)
	s.load(a, v, sprintf("%d(SI)", v.lanes()*s.size), 1)
	a.op("VMOVUPS %s0, (DI)", v.reg)
	a.op("VMOVUPS %s1, %d(DI)", v.reg, v.width)
	a.op("ADDQ DX, SI")
	a.op("ADDQ R9, DI")
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// interleaveRows packs n words, two bfloat16 rows each, of a whole panel from B stored K×N.
func interleaveRows(a *asm, v vector) {
	name := "rowsPairs_" + v.tag
	a.printf("\n// func %s(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)\n", name)
	a.printf("TEXT ·%s(SB), NOSPLIT, $0-40\n", name)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ dstStride+8(FP), R9")
	a.op("MOVQ src+16(FP), SI")
	a.op("MOVQ stride+24(FP), DX")
	a.op("MOVQ n+32(FP), CX")
	a.label("loop")
	for i := range 2 {
		off := ""
		if i == 1 {
			off = itoa(v.width / 2)
		}
		a.op("VPMOVZXWD %s(SI), %s%d", off, v.reg, i)
		a.op("VPMOVZXWD %s(SI)(DX*1), %s%d", off, v.reg, 2+i)
		a.op("VPSLLD $16, %s%d, %s%d", v.reg, 2+i, v.reg, 2+i)
		or := "VPORD"
		if v.reg == "Y" {
			or = "VPOR"
		}
		a.op("%s %s%d, %s%d, %s%d", or, v.reg, 2+i, v.reg, i, v.reg, i)
	}
	a.op("VMOVUPS %s0, (DI)", v.reg)
	a.op("VMOVUPS %s1, %d(DI)", v.reg, v.width)
	a.op("LEAQ (SI)(DX*2), SI")
	a.op("ADDQ R9, DI")
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// widen converts half values to float32, blocks vectors of them.
func widen(a *asm, v vector, s source) {
	name := sprintf("widen%s_%s", s.name, v.tag)
	a.printf("\n// func %s(dst *float32, src *uint16, blocks int)\n", name)
	a.printf("TEXT ·%s(SB), NOSPLIT, $0-24\n", name)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
	a.label("loop")
	s.load(a, v, "(SI)", 0)
	a.op("VMOVUPS %s0, (DI)", v.reg)
	a.op("ADDQ $%d, SI", v.lanes()*2)
	a.op("ADDQ $%d, DI", v.width)
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

func narrowHead(a *asm, v vector, name string) {
	a.printf("\n// func %s(dst *uint16, src *float32, blocks int)\n", name)
	a.printf("TEXT ·%s(SB), NOSPLIT, $0-24\n", name)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
}

func narrowTail(a *asm, v vector) {
	a.op("ADDQ $%d, SI", v.width)
	a.op("ADDQ $%d, DI", v.lanes()*2)
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// narrowBF16 rounds float32 to bfloat16, ties to even, NaN quiet. It is done on integers, because the processor's own
// conversion flushes subnormals.
func narrowBF16(a *asm, v vector) {
	narrowHead(a, v, "narrowBF16_"+v.tag)
	for i, c := range []string{"0x7fff", "1", "0x400000"} {
		a.op("MOVL $%s, AX", c)
		if v.reg == "Z" {
			a.op("VPBROADCASTD AX, Z%d", 8+i)
		} else {
			a.op("VMOVD AX, X%d", 8+i)
			a.op("VPBROADCASTD X%d, Y%d", 8+i, 8+i)
		}
	}
	a.label("loop")
	r := v.reg
	a.op("VMOVUPS (SI), %s0", r)
	a.op("VPSRLD $16, %s0, %s1", r, r)
	if r == "Z" {
		a.op("VPANDD Z9, Z1, Z1")
		a.op("VPADDD Z8, Z1, Z1")
		a.op("VPADDD Z0, Z1, Z1")
		a.op("VCMPPS $3, Z0, Z0, K1") // unordered: NaN
		a.op("VPORD Z10, Z0, K1, Z1")
		a.op("VPSRLD $16, Z1, Z1")
		a.op("VPMOVDW Z1, (DI)")
	} else {
		a.op("VPAND Y9, Y1, Y1")
		a.op("VPADDD Y8, Y1, Y1")
		a.op("VPADDD Y0, Y1, Y1")
		a.op("VCMPPS $3, Y0, Y0, Y2")
		a.op("VPOR Y10, Y0, Y3")
		a.op("VBLENDVPS Y2, Y3, Y1, Y1")
		a.op("VPSRLD $16, Y1, Y1")
		a.op("VEXTRACTI128 $1, Y1, X2")
		a.op("VPACKUSDW X2, X1, X1")
		a.op("VMOVDQU X1, (DI)")
	}
	narrowTail(a, v)
}

// narrowF16 rounds float32 to binary16, ties to even.
func narrowF16(a *asm, v vector) {
	narrowHead(a, v, "narrowF16_"+v.tag)
	a.label("loop")
	a.op("VMOVUPS (SI), %s0", v.reg)
	a.op("VCVTPS2PH $0, %s0, (DI)", v.reg)
	narrowTail(a, v)
}
