package main

// Int8: the largest magnitude of a row, its rounding to bytes, and sums back to float32. Whole vectors only.

func quants(a *asm, v vector) {
	maxAbs(a, v)
	quantize(a, v)
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

// quantize rounds src·scale to bytes, ties to even, and exchanges the bits of flip.
func quantize(a *asm, v vector) {
	r := v.reg
	a.printf("\n// func quantize_%s(dst *byte, src *float32, blocks int, scale float32, flip uint32)\n", v.tag)
	a.printf("TEXT ·quantize_%s(SB), NOSPLIT, $0-32\n", v.tag)
	a.op("MOVQ dst+0(FP), DI")
	a.op("MOVQ src+8(FP), SI")
	a.op("MOVQ blocks+16(FP), CX")
	a.op("VBROADCASTSS scale+24(FP), %s2", r)
	a.op("MOVL flip+28(FP), AX")
	a.op("VMOVD AX, X3")
	a.op("VPBROADCASTD X3, X3")
	a.label("loop")
	a.op("VMULPS (SI), %s2, %s0", r, r)
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
	a.op("ADDQ $%d, SI", v.width)
	a.op("ADDQ $%d, DI", v.lanes())
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}

// dequantize makes c, int32 sums, float32: (c - offset)·row·scale.
func dequantize(a *asm, v vector) {
	r := v.reg
	a.printf("\n// func dequantize_%s(c *float32, offset *int32, scale *float32, blocks int, row float32)\n", v.tag)
	a.printf("TEXT ·dequantize_%s(SB), NOSPLIT, $0-36\n", v.tag)
	a.op("MOVQ c+0(FP), DI")
	a.op("MOVQ offset+8(FP), SI")
	a.op("MOVQ scale+16(FP), DX")
	a.op("MOVQ blocks+24(FP), CX")
	a.op("VBROADCASTSS row+32(FP), %s2", r)
	a.label("loop")
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
	a.op("DECQ CX")
	a.op("JNZ loop")
	a.op("VZEROUPPER")
	a.op("RET")
}
