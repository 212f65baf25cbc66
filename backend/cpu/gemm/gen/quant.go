package main

// Int8: the largest magnitude of a row, its rounding to bytes, and sums back to float32. Whole vectors only.

func quants(a *asm, v vector) {
	maxAbs(a, v)
	maxAbsBF16(a, v)
	quantize(a, v, "quantize", "float32", words)
	quantize(a, v, "quantizeBF16", "uint16", bf16)
	dequantize(a, v)
}

// bcast fills register i with the 32 bits in AX.
func bcast(a *asm, v vector, i int) {
	if v.reg == "Z" {
		a.op("VPBROADCASTD AX, Z%d", i)
		return
	}
	a.op("VMOVD AX, X%d", i)
	a.op("VPBROADCASTD X%d, Y%d", i, i)
}

// half returns the name of the lower half of register i.
func (v vector) half(i int) string {
	if v.reg == "Z" {
		return sprintf("Y%d", i)
	}
	return sprintf("X%d", i)
}

// maxAbs returns the largest magnitude as bits, in which NaN and infinities are larger than all numbers.
func maxAbs(a *asm, v vector) {
	r, and := v.reg, "VPANDD"
	if r == "Y" {
		and = "VPAND"
	}
	a.printf("\n// func maxAbs_%s(src *float32, blocks int) uint32\n", v.tag)
	a.printf("TEXT ·maxAbs_%s(SB), NOSPLIT, $0-20\n", v.tag)
	a.op("MOVQ src+0(FP), SI")
	a.op("MOVQ blocks+8(FP), CX")
	a.op("MOVL $0x7fffffff, AX")
	bcast(a, v, 2)
	a.op("VPXOR X0, X0, X0")
	a.label("loop")
	a.op("%s (SI), %s2, %s1", and, r, r)
	a.op("VPMAXUD %s1, %s0, %s0", r, r, r)
	a.op("ADDQ $%d, SI", v.width)
	a.op("DECQ CX")
	a.op("JNZ loop")
	if r == "Z" {
		a.op("VEXTRACTI64X4 $1, Z0, Y1")
		a.op("VPMAXUD Y1, Y0, Y0")
	}
	a.op("VEXTRACTI128 $1, Y0, X1")
	a.op("VPMAXUD X1, X0, X0")
	a.op("VPSHUFD $0x4e, X0, X1")
	a.op("VPMAXUD X1, X0, X0")
	a.op("VPSHUFD $0xb1, X0, X1")
	a.op("VPMAXUD X1, X0, X0")
	a.op("VMOVD X0, AX")
	a.op("MOVL AX, ret+16(FP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

// maxAbsBF16 is maxAbs of bfloat16, as bits of a float32.
func maxAbsBF16(a *asm, v vector) {
	a.printf("\n// func maxAbsBF16_%s(src *uint16, blocks int) uint32\n", v.tag)
	a.printf("TEXT ·maxAbsBF16_%s(SB), NOSPLIT, $0-20\n", v.tag)
	a.op("MOVQ src+0(FP), SI")
	a.op("MOVQ blocks+8(FP), CX")
	a.op("VPCMPEQW Y2, Y2, Y2")
	a.op("VPSRLW $1, Y2, Y2")
	a.op("VPXOR X0, X0, X0")
	a.label("loop")
	a.op("VPAND (SI), %s, %s", v.half(2), v.half(1))
	a.op("VPMAXUW %s, %s, %s", v.half(1), v.half(0), v.half(0))
	a.op("ADDQ $%d, SI", v.width/2)
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VEXTRACTI128 $1, Y0, X1")
	a.op("VPMAXUW X1, X0, X0")
	a.op("VPSHUFD $0x4e, X0, X1")
	a.op("VPMAXUW X1, X0, X0")
	a.op("VPSHUFD $0xb1, X0, X1")
	a.op("VPMAXUW X1, X0, X0")
	a.op("VPSLLD $16, X0, X1")
	a.op("VPMAXUW X1, X0, X0")
	a.op("VMOVD X0, AX")
	a.op("ANDL $0x7fff0000, AX")
	a.op("MOVL AX, ret+16(FP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

// quantize rounds src·scale to bytes, ties to even, and exchanges the bits of flip.
func quantize(a *asm, v vector, name, t string, s source) {
	r := v.reg
	a.printf("\n// func %s_%s(dst *byte, src *%s, blocks int, scale float32, flip uint32)\n", name, v.tag, t)
	a.printf("TEXT ·%s_%s(SB), NOSPLIT, $0-32\n", name, v.tag)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
	a.op("VBROADCASTSS scale+24(FP), %s2", r)
	a.op("MOVL flip+28(FP), AX")
	a.op("VMOVD AX, X3")
	a.op("VPBROADCASTD X3, X3")
	a.label("loop")
	s.load(a, v, "(SI)", 0)
	a.op("VMULPS %s0, %s2, %s0", r, r, r)
	a.op("VCVTPS2DQ %s0, %s0", r, r)
	if r == "Z" {
		a.op("VPMOVSDB Z0, X0")
		a.op("VPXOR X3, X0, X0")
		a.op("VMOVDQU X0, (DI)")
	} else {
		a.op("VEXTRACTI128 $1, Y0, X1")
		a.op("VPACKSSDW X1, X0, X0")
		a.op("VPACKSSWB X0, X0, X0")
		a.op("VPXOR X3, X0, X0")
		a.op("VMOVQ X0, (DI)")
	}
	a.op("ADDQ $%d, SI", v.lanes()*s.size)
	a.op("ADDQ $%d, DI", v.lanes())
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// dequantize makes c, int32 sums, float32: (c - offset)·row·scale. Meanwhile as many sums at next may be fetched to the first
// cache.
func dequantize(a *asm, v vector) {
	r := v.reg
	a.printf("\n// func dequantize_%s(c *float32, offset *int32, scale *float32, blocks int, row float32, next *float32)\n", v.tag)
	a.printf("TEXT ·dequantize_%s(SB), NOSPLIT, $0-48\n", v.tag)
	a.op("MOVQ c+0(FP), DI")
	a.op("MOVQ offset+8(FP), SI")
	a.op("MOVQ scale+16(FP), DX")
	a.op("MOVQ blocks+24(FP), CX")
	a.op("VBROADCASTSS row+32(FP), %s2", r)
	a.op("MOVQ next+40(FP), R8")
	a.label("loop")
	a.op("PREFETCHT0 (R8)")
	if r == "Z" {
		a.op("VMOVDQU32 (DI), Z0")
	} else {
		a.op("VMOVDQU (DI), Y0")
	}
	a.op("VPSUBD (SI), %s0, %s0", r, r)
	a.op("VCVTDQ2PS %s0, %s0", r, r)
	a.op("VMULPS %s2, %s0, %s0", r, r, r)
	a.op("VMULPS (DX), %s0, %s0", r, r)
	a.op("VMOVUPS %s0, (DI)", r)
	a.op("ADDQ $%d, SI", v.width)
	a.op("ADDQ $%d, DX", v.width)
	a.op("ADDQ $%d, DI", v.width)
	a.op("ADDQ $%d, R8", v.width)
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}
