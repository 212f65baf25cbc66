// Command gen writes the assembly kernels of package attention. Run it in the package's folder: go generate.
package main

import (
	"fmt"
	"log"
	"math"
	"os"
	"strings"
)

// level describes one instruction set.
type level struct {
	name  string
	reg   string
	bytes int // of a vector
	rows  int // rows of a tile
	three int // first of the registers for the three vectors of B
	bcast []int
}

var (
	avx512 = level{"AVX512", "Z", 64, 8, 24, []int{27, 28, 29, 30, 31}}
	avx2   = level{"AVX2", "Y", 32, 4, 12, []int{15}}
)

type file struct{ strings.Builder }

func (f *file) ins(format string, args ...any) { fmt.Fprintf(f, "\t"+format+"\n", args...) }

func (l level) r(i int) string { return fmt.Sprintf("%s%d", l.reg, i) }

// evex encodes a three-operand EVEX.512 instruction of map 0F38, W0, that the assembler doesn't know: dst, src1, src2 are Z
// registers; pp is 1 for 66, 2 for F3, 3 for F2.
func evex(pp, op, dst, src1, src2 int) string {
	inv := func(v, bit int) int { return (^v >> bit) & 1 }
	p1 := inv(dst, 3)<<7 | inv(src2, 4)<<6 | inv(src2, 3)<<5 | inv(dst, 4)<<4 | 2
	p2 := (^src1&0xf)<<3 | 4 | pp
	p3 := 2<<5 | inv(src1, 4)<<3
	modrm := 0xc0 | (dst&7)<<3 | src2&7
	var b []string
	for _, x := range []int{0x62, p1, p2, p3, op, modrm} {
		b = append(b, fmt.Sprintf("BYTE $0x%02x", x))
	}
	return strings.Join(b, "; ")
}

// tile writes tile…xV: rows of C, each V vectors wide, from K steps. Row r of A at step k lies at a + r·rowStride + k·step
// (bytes), step k of B at b + k·V vectors; C is contiguous. With alpha, C = C·alpha + A·B, else C = A·B.
func (f *file) tile(l level, v int, bf16 bool) {
	kind := "F32"
	if bf16 {
		kind = "BF16"
	}
	fmt.Fprintf(f, "\n// func tile%sx%d%s(k int, a unsafe.Pointer, rowStride, step uintptr, b unsafe.Pointer, c, alpha *float32)\n", kind, v, l.name)
	fmt.Fprintf(f, "TEXT ·tile%sx%d%s(SB), NOSPLIT, $0-56\n", kind, v, l.name)
	f.ins("MOVQ k+0(FP), CX")
	f.ins("MOVQ a+8(FP), SI")
	f.ins("MOVQ rowStride+16(FP), R11")
	f.ins("MOVQ step+24(FP), R10")
	f.ins("MOVQ b+32(FP), BX")
	f.ins("MOVQ c+40(FP), DI")
	f.ins("MOVQ alpha+48(FP), DX")
	f.ins("LEAQ (R11)(R11*2), R12")
	if l.rows > 4 {
		f.ins("LEAQ (SI)(R11*4), R8")
	}
	acc := func(r, i int) string { return l.r(r*v + i) }
	for r := range l.rows {
		for i := range v {
			f.ins("VXORPS Y%d, Y%d, Y%d", r*v+i, r*v+i, r*v+i)
		}
	}
	f.ins("TESTQ CX, CX")
	f.ins("JLE finish")
	f.WriteString("\nloop:\n")
	for i := range v {
		f.ins("VMOVUPS %d(BX), %s", i*l.bytes, l.r(l.three+i))
	}
	for i := 0; i < v*l.bytes; i += 64 {
		f.ins("PREFETCHT0 %d(BX)", i+768)
	}
	for r := range l.rows {
		base := "SI"
		if r >= 4 {
			base = "R8"
		}
		addr := []string{"(%s)", "(%s)(R11*1)", "(%s)(R11*2)", "(%s)(R12*1)"}[r%4]
		t := l.bcast[r%len(l.bcast)]
		f.ins("VBROADCASTSS "+addr+", %s", base, l.r(t))
		for i := range v {
			if bf16 {
				f.ins("%s // VDPBF16PS Z%d, Z%d, Z%d", evex(2, 0x52, r*v+i, t, l.three+i), l.three+i, t, r*v+i)
			} else {
				f.ins("VFMADD231PS %s, %s, %s", l.r(l.three+i), l.r(t), acc(r, i))
			}
		}
	}
	f.ins("PREFETCHT0 (SI)(R10*8)")
	f.ins("ADDQ R10, SI")
	if l.rows > 4 {
		f.ins("ADDQ R10, R8")
	}
	f.ins("ADDQ $%d, BX", v*l.bytes)
	f.ins("DECQ CX")
	f.ins("JNZ loop")
	f.WriteString("\nfinish:\n")
	f.ins("TESTQ DX, DX")
	f.ins("JZ store")
	for i := range v {
		f.ins("VMOVUPS %d(DX), %s", i*l.bytes, l.r(l.three+i))
	}
	for r := range l.rows {
		for i := range v {
			f.ins("VFMADD231PS %d(DI), %s, %s", (r*v+i)*l.bytes, l.r(l.three+i), acc(r, i))
		}
	}
	f.WriteString("\nstore:\n")
	for r := range l.rows {
		for i := range v {
			f.ins("VMOVUPS %s, %d(DI)", acc(r, i), (r*v+i)*l.bytes)
		}
	}
	f.ins("VZEROUPPER")
	f.ins("RET")
}

// exp2Poly has the coefficients of 2^r for |r| ≤ 1/2, highest first: a minimax fit of the relative error with the leading
// coefficients rounded to float32, good to 6.3e-8, rounding included. Fast has those of exp2Fast: the cubic, then what
// turns a logarithm into the bits of a float32.
var (
	exp2Poly = []float32{0.00015576450095977634, 0.0013394566485658288, 0.009617839008569717, 0.05550353229045868, 0.24022650718688965, 0.6931471824645996, 1}
	fast     = []float32{-0.079204240219773236, -0.22433836478672356, 0.30354260500649682, 0.00010703434948458272, 1 << 23, 127 << 23}
)

func polyName(poly []float32) string { return fmt.Sprintf("poly%d", len(poly)-1) }

// constants loads poly into registers from 16 on (AVX-512).
func (f *file) constants(l level, poly []float32) {
	if l.name == "AVX512" {
		for i := range poly {
			f.ins("VBROADCASTSS %s_%d<>(SB), Z%d", polyName(poly), i, 16+i)
		}
	}
}

// exp2Fast replaces register x by the function of that name in kernels.go, rounded to bfloat16 in place if round is
// set, and adds it to register sum, unrounded; r and n are scratch, zero holds 0. A NaN makes sum NaN.
func (f *file) exp2Fast(l level, round bool, x, r, n, sum, zero int) {
	c := func(i int) string { return fmt.Sprintf("%s_%d<>(SB)", polyName(fast), i) }
	if l.name == "AVX512" {
		c = func(i int) string { return fmt.Sprintf("Z%d", 16+i) }
		f.ins("VREDUCEPS $9, Z%d, Z%d", x, r) // x - floor(x), 0 for an infinity
		f.ins("VMOVAPS Z16, Z%d", n)
	} else {
		f.ins("VMOVUPS lowest<>(SB), Y%d", r)
		f.ins("VMAXPS Y%d, Y%d, Y%d", x, r, x)
		f.ins("VROUNDPS $9, Y%d, Y%d", x, n)
		f.ins("VSUBPS Y%d, Y%d, Y%d", n, x, r)
		f.ins("VMOVUPS %s, Y%d", c(0), n)
	}
	for i := 1; i < 4; i++ {
		f.ins("VFMADD213PS %s, %s, %s", c(i), l.r(r), l.r(n))
	}
	f.ins("VSUBPS %s, %s, %s", l.r(n), l.r(x), l.r(x))
	if l.name == "AVX512" {
		f.ins("VFMADD213PS Z21, Z20, Z%d", x)
	} else {
		f.ins("VMOVUPS %s, Y%d", c(4), n)
		f.ins("VFMADD213PS %s, Y%d, Y%d", c(5), n, x)
	}
	f.ins("VMAXPS %s, %s, %s", l.r(x), l.r(zero), l.r(x)) // a NaN, the second operand, passes
	f.ins("VFMADD231PS %s, %s, %s", l.r(x), l.r(zero), l.r(sum))
	f.ins("VCVTTPS2DQ %s, %s", l.r(x), l.r(x))
	f.ins("VADDPS %s, %s, %s", l.r(x), l.r(sum), l.r(sum))
	if !round {
		return
	}
	f.ins("VPSRLD $16, %s, %s", l.r(x), l.r(r))
	if l.name == "AVX512" {
		f.ins("VPANDD Z24, Z%d, Z%d", r, r)
		f.ins("VPADDD Z25, Z%d, Z%d", x, x)
		f.ins("VPADDD Z%d, Z%d, Z%d", r, x, x)
		f.ins("VPANDD Z26, Z%d, Z%d", x, x)
	} else {
		f.ins("VPAND one<>(SB), Y%d, Y%d", r, r)
		f.ins("VPADDD half<>(SB), Y%d, Y%d", x, x)
		f.ins("VPADDD Y%d, Y%d, Y%d", r, x, x)
		f.ins("VPAND upper<>(SB), Y%d, Y%d", x, x)
	}
}

// exp2 replaces register x by 2^x; r and n are scratch. Registers from 16 on (AVX-512) hold the polynomial.
func (f *file) exp2(l level, poly []float32, x, r, n int) {
	if l.name == "AVX512" {
		// VREDUCEPS gives x - round(x), and 0 for an infinity: 2^-Inf is 0, 2^NaN is NaN.
		f.ins("VREDUCEPS $8, Z%d, Z%d", x, r)
		f.ins("VRNDSCALEPS $8, Z%d, Z%d", x, n)
		f.ins("VMOVAPS Z16, Z%d", x)
		for i := 1; i < len(poly); i++ {
			f.ins("VFMADD213PS Z%d, Z%d, Z%d", 16+i, r, x)
		}
		f.ins("VSCALEFPS Z%d, Z%d, Z%d", n, x, x)
		return
	}
	// x is never above 0. At -127 and below p is 1 and the exponent's bits are subtracted to 0 exactly; a NaN passes the
	// maximum, whose second operand it is, and the addition of 0.
	f.ins("VMOVUPS lowest<>(SB), Y%d", r)
	f.ins("VMAXPS Y%d, Y%d, Y%d", x, r, x)
	f.ins("VROUNDPS $8, Y%d, Y%d", x, n)
	f.ins("VSUBPS Y%d, Y%d, Y%d", n, x, r)
	f.ins("VMOVUPS %s_0<>(SB), Y%d", polyName(poly), x)
	for i := 1; i < len(poly); i++ {
		f.ins("VFMADD213PS %s_%d<>(SB), Y%d, Y%d", polyName(poly), i, r, x)
	}
	f.ins("VCVTPS2DQ Y%d, Y%d", n, n)
	f.ins("VPSLLD $23, Y%d, Y%d", n, n)
	f.ins("VPADDD Y%d, Y%d, Y%d", n, x, x)
}

// softmax writes softmax…, one step of the online softmax on one vector of queries. Column s holds rows scores, stride
// bytes apart; they become p = 2^(score·c - top) in place (F32), rounded to bfloat16 (Round), or as pairs of bfloat16 rows
// in p (BF16). Top, the
// largest score·c so far, and sum are updated, alpha = 2^(old top - new top).
func (f *file) softmax(l level, kind string) {
	const top, negTop, scale, sum = 0, 1, 2, 3 // registers
	size := 56
	sig := "(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32)"
	bf16 := kind == "BF16"
	if bf16 {
		size = 64
		sig = "(s *float32, stride uintptr, rows int, c float32, top, sum, alpha *float32, p *uint32)"
	}
	fmt.Fprintf(f, "\n// func softmax%s%s%s\n", kind, l.name, sig)
	fmt.Fprintf(f, "TEXT ·softmax%s%s(SB), NOSPLIT, $0-%d\n", kind, l.name, size)
	f.ins("MOVQ s+0(FP), SI")
	f.ins("MOVQ stride+8(FP), R11")
	f.ins("MOVQ rows+16(FP), CX")
	f.ins("MOVQ top+32(FP), R8")
	f.ins("MOVQ sum+40(FP), R9")
	f.ins("MOVQ alpha+48(FP), R10")
	f.ins("VBROADCASTSS c+24(FP), %s", l.r(scale))
	f.constants(l, exp2Poly)
	// The largest score: four chains. A NaN as first operand of the maximum is passed over.
	f.ins("VBROADCASTSS minusInf<>(SB), %s", l.r(4))
	for i := 5; i < 8; i++ {
		f.ins("VMOVAPS %s, %s", l.r(4), l.r(i))
	}
	f.ins("LEAQ (R11)(R11*2), R12")
	f.ins("MOVQ SI, DI")
	f.ins("MOVQ CX, AX")
	f.ins("SUBQ $4, AX")
	f.ins("JLT maxtail")
	f.WriteString("\nmaxloop:\n")
	for i, a := range []string{"(DI)", "(DI)(R11*1)", "(DI)(R11*2)", "(DI)(R12*1)"} {
		f.ins("VMOVUPS %s, %s", a, l.r(8+i))
		f.ins("VMAXPS %s, %s, %s", l.r(4+i), l.r(8+i), l.r(4+i))
	}
	f.ins("LEAQ (DI)(R11*4), DI")
	f.ins("SUBQ $4, AX")
	f.ins("JGE maxloop")
	f.WriteString("\nmaxtail:\n")
	f.ins("ADDQ $4, AX")
	f.ins("JLE maxdone")
	f.WriteString("\nmaxrow:\n")
	f.ins("VMOVUPS (DI), %s", l.r(8))
	f.ins("VMAXPS %s, %s, %s", l.r(4), l.r(8), l.r(4))
	f.ins("ADDQ R11, DI")
	f.ins("DECQ AX")
	f.ins("JNZ maxrow")
	f.WriteString("\nmaxdone:\n")
	f.ins("VMAXPS %s, %s, %s", l.r(5), l.r(4), l.r(4))
	f.ins("VMAXPS %s, %s, %s", l.r(7), l.r(6), l.r(6))
	f.ins("VMAXPS %s, %s, %s", l.r(6), l.r(4), l.r(4))
	f.ins("VMULPS %s, %s, %s", l.r(scale), l.r(4), l.r(4))
	f.ins("VMOVUPS (R8), %s", l.r(top)) // the old top
	f.ins("VMAXPS %s, %s, %s", l.r(top), l.r(4), l.r(4))
	f.ins("VMOVUPS %s, (R8)", l.r(4))
	// While a query has seen no key its top is -Inf; subtract 0 then.
	f.ins("VBROADCASTSS minusInf<>(SB), %s", l.r(5))
	if l.name == "AVX512" {
		f.ins("VCMPPS $4, Z5, Z4, K1") // not equal
		f.ins("VMOVAPS.Z Z4, K1, Z4")
	} else {
		f.ins("VCMPPS $4, Y5, Y4, Y6")
		f.ins("VANDPS Y6, Y4, Y4")
	}
	f.ins("VSUBPS %s, %s, %s", l.r(4), l.r(top), l.r(5))
	f.ins("VXORPS Y%d, Y%d, Y%d", negTop, negTop, negTop)
	f.ins("VSUBPS %s, %s, %s", l.r(4), l.r(negTop), l.r(negTop))
	f.exp2(l, exp2Poly, 5, 6, 7)
	f.ins("VMOVUPS %s, (R10)", l.r(5))
	f.ins("VMULPS (R9), %s, %s", l.r(5), l.r(sum))
	f.ins("VXORPS Y12, Y12, Y12") // second chain of the sum
	if kind != "F32" {
		f.constants(l, fast)
		f.ins("VXORPS Y13, Y13, Y13")
	}
	if kind == "Round" && l.name == "AVX512" {
		for i, c := range []string{"one", "half", "upper"} {
			f.ins("VBROADCASTSS %s<>(SB), Z%d", c, 24+i)
		}
	}
	if bf16 {
		f.ins("MOVQ p+56(FP), DI")
		f.ins("VMOVDQU32 interleave<>(SB), Z23")
		f.ins("SUBQ $2, CX")
		f.ins("JLT onerow")
		f.WriteString("\ntworows:\n")
		for i, a := range []string{"(SI)", "(SI)(R11*1)"} {
			x := 4 + 4*i
			f.ins("VMOVUPS %s, Z%d", a, x)
			f.ins("VFMADD213PS Z%d, Z%d, Z%d", negTop, scale, x)
			f.exp2Fast(l, false, x, x+1, x+2, []int{sum, 12}[i], 13)
		}
		f.ins("%s // VCVTNE2PS2BF16 Z4, Z8, Z9", evex(3, 0x72, 9, 8, 4))
		f.ins("VPERMW Z9, Z23, Z9")
		f.ins("VMOVDQU32 Z9, (DI)")
		f.ins("LEAQ (SI)(R11*2), SI")
		f.ins("ADDQ R11, DI")
		f.ins("SUBQ $2, CX")
		f.ins("JGE tworows")
		f.WriteString("\nonerow:\n")
		f.ins("ADDQ $2, CX")
		f.ins("JLE done")
		f.ins("VMOVUPS (SI), Z4")
		f.ins("VFMADD213PS Z%d, Z%d, Z4", negTop, scale)
		f.exp2Fast(l, false, 4, 5, 6, sum, 13)
		f.ins("VXORPS Y8, Y8, Y8")
		f.ins("%s // VCVTNE2PS2BF16 Z4, Z8, Z9", evex(3, 0x72, 9, 8, 4))
		f.ins("VPERMW Z9, Z23, Z9")
		f.ins("VMOVDQU32 Z9, (DI)")
	} else {
		f.ins("TESTQ CX, CX")
		f.ins("JLE done")
		f.WriteString("\nrow:\n")
		f.ins("VMOVUPS (SI), %s", l.r(4))
		f.ins("VFMADD213PS %s, %s, %s", l.r(negTop), l.r(scale), l.r(4))
		if kind == "Round" {
			f.exp2Fast(l, true, 4, 5, 6, sum, 13)
		} else {
			f.exp2(l, exp2Poly, 4, 5, 6)
			f.ins("VADDPS %s, %s, %s", l.r(4), l.r(sum), l.r(sum))
		}
		f.ins("VMOVUPS %s, (SI)", l.r(4))
		f.ins("ADDQ R11, SI")
		f.ins("DECQ CX")
		f.ins("JNZ row")
	}
	f.WriteString("\ndone:\n")
	f.ins("VADDPS %s, %s, %s", l.r(12), l.r(sum), l.r(sum))
	f.ins("VMOVUPS %s, (R9)", l.r(sum))
	f.ins("VZEROUPPER")
	f.ins("RET")
}

// transpose8 transposes the 8×8 words in Y0–Y7 into Y8–Y15, except that it leaves the last step, a permutation of two
// registers, to the caller: column i of the result is made by perm(i).
func (f *file) transpose8() {
	for i := 0; i < 8; i += 2 { // pairs of rows: Y8 … Y15
		f.ins("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, 8+i)
		f.ins("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 9+i)
	}
	for i := 0; i < 8; i += 4 { // quadruples: Y0 … Y7, columns i mod 4 of rows 0–3 and 4–7
		f.ins("VUNPCKLPD Y%d, Y%d, Y%d", 10+i, 8+i, i)
		f.ins("VUNPCKHPD Y%d, Y%d, Y%d", 10+i, 8+i, i+1)
		f.ins("VUNPCKLPD Y%d, Y%d, Y%d", 11+i, 9+i, i+2)
		f.ins("VUNPCKHPD Y%d, Y%d, Y%d", 11+i, 9+i, i+3)
	}
}

func (f *file) column(i, dst int) {
	imm := 0x20
	if i >= 4 {
		imm = 0x31
	}
	f.ins("VPERM2F128 $0x%02x, Y%d, Y%d, Y%d", imm, 4+i%4, i%4, dst)
}

var eightRows = []string{"(SI)", "(SI)(R11*1)", "(SI)(R11*2)", "(SI)(R12*1)", "(R8)", "(R8)(R11*1)", "(R8)(R11*2)", "(R8)(R12*1)"}

// eight writes the loop over blocks of 8 columns of 8 rows of src, which do consumes from Y0–Y7 and may use DI, the
// destination, with stride DX; n is the number of columns, a multiple of 8.
func (f *file) eight(name, sig, doc string, scale bool, do func()) {
	size := 40
	if scale {
		size = 44
	}
	fmt.Fprintf(f, "\n// func %s%s\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, sig, doc, name, size)
	f.ins("MOVQ dst+0(FP), DI")
	f.ins("MOVQ dstStride+8(FP), DX")
	f.ins("MOVQ src+16(FP), SI")
	f.ins("MOVQ srcStride+24(FP), R11")
	f.ins("MOVQ n+32(FP), CX")
	f.ins("LEAQ (R11)(R11*2), R12")
	f.ins("LEAQ (SI)(R11*4), R8")
	f.ins("SHRQ $3, CX")
	f.ins("JZ done")
	f.WriteString("\nloop:\n")
	for i, a := range eightRows {
		f.ins("VMOVUPS %s, Y%d", a, i)
	}
	f.transpose8()
	do()
	f.ins("ADDQ $32, SI")
	f.ins("ADDQ $32, R8")
	f.ins("DECQ CX")
	f.ins("JNZ loop")
	f.WriteString("\ndone:\n")
	f.ins("VZEROUPPER")
	f.ins("RET")
}

func (f *file) transposes() {
	f.eight("transposeAVX2", "(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int)",
		"Transposes 8 rows of n words into n rows of 8.", false, func() {
			for i := range 8 {
				f.column(i, 8)
				f.ins("VMOVUPS Y8, (DI)")
				f.ins("ADDQ DX, DI")
			}
		})
	f.eight("biasAVX2", "(dst *float32, dstStride uintptr, src *float32, srcStride uintptr, n int, scale float32)",
		"Adds 8 rows of n biases, transposed, to n rows of 8 scores: see biasGo.", true, func() {
			f.ins("VBROADCASTSS scale+40(FP), Y12")
			f.ins("VMOVUPS minusInf<>(SB), Y13")
			f.ins("VMOVUPS lowScore<>(SB), Y14")
			f.ins("VMOVUPS log2e<>(SB), Y15")
			for i := range 8 {
				f.column(i, 8)
				f.ins("VFMADD231PS (DI), Y12, Y8")
				f.ins("VCMPPS $0, Y13, Y8, Y9")
				f.ins("VMAXPS Y8, Y14, Y8")
				f.ins("VBLENDVPS Y9, Y13, Y8, Y8")
				f.ins("VMULPS Y15, Y8, Y8")
				f.ins("VMOVUPS Y8, (DI)")
				f.ins("ADDQ DX, DI")
			}
		})
}

// pairs writes pairsAVX512: n words, a multiple of 16, each of an element of even and one of odd, both bfloat16.
func (f *file) pairs() {
	f.WriteString("\n// func pairsAVX512(dst *uint32, even, odd *uint16, n int)\nTEXT ·pairsAVX512(SB), NOSPLIT, $0-32\n")
	f.ins("MOVQ dst+0(FP), DI")
	f.ins("MOVQ even+8(FP), SI")
	f.ins("MOVQ odd+16(FP), BX")
	f.ins("MOVQ n+24(FP), CX")
	f.ins("SHRQ $4, CX")
	f.ins("JZ done")
	f.WriteString("\nloop:\n")
	f.ins("VPMOVZXWD (SI), Z0")
	f.ins("VPMOVZXWD (BX), Z1")
	f.ins("VPSLLD $16, Z1, Z1")
	f.ins("VPORD Z0, Z1, Z0")
	f.ins("VMOVDQU32 Z0, (DI)")
	f.ins("ADDQ $32, SI")
	f.ins("ADDQ $32, BX")
	f.ins("ADDQ $64, DI")
	f.ins("DECQ CX")
	f.ins("JNZ loop")
	f.WriteString("\ndone:\n")
	f.ins("VZEROUPPER")
	f.ins("RET")
}

// fetches writes fetchAMD64 and fetchToWriteAMD64, which bring the lines of rows to the first cache.
func (f *file) fetches() {
	for _, way := range [][2]string{{"fetch", "PREFETCHT0 (SI)(AX*1)"}, {"fetchToWrite", "BYTE $0x0f; BYTE $0x0d; BYTE $0x0c; BYTE $0x06 // PREFETCHW (SI)(AX*1)"}} {
		fmt.Fprintf(f, "\n// func %sAMD64(p unsafe.Pointer, stride uintptr, rows, bytes int)\nTEXT ·%sAMD64(SB), NOSPLIT, $0-32\n", way[0], way[0])
		f.ins("MOVQ p+0(FP), SI")
		f.ins("MOVQ stride+8(FP), R11")
		f.ins("MOVQ rows+16(FP), CX")
		f.ins("MOVQ bytes+24(FP), DX")
		f.WriteString("\nrow:\n")
		f.ins("XORQ AX, AX")
		f.WriteString("\nline:\n")
		f.ins("%s", way[1])
		f.ins("ADDQ $64, AX")
		f.ins("CMPQ AX, DX")
		f.ins("JLT line")
		f.ins("ADDQ R11, SI")
		f.ins("DECQ CX")
		f.ins("JNZ row")
		f.ins("RET")
	}
}

// header starts a file with its constants, each repeated over words lanes.
func (f *file) header(words int, bf16 bool) {
	f.WriteString("// Code generated by go run ./gen; DO NOT EDIT.\n\n#include \"textflag.h\"\n\n")
	c := func(name string, bits uint32) {
		for i := range words {
			fmt.Fprintf(f, "DATA %s<>+%d(SB)/4, $0x%08x\n", name, 4*i, bits)
		}
		fmt.Fprintf(f, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, 4*words)
	}
	for _, poly := range [][]float32{exp2Poly, fast} {
		for i, p := range poly {
			c(fmt.Sprintf("%s_%d", polyName(poly), i), math.Float32bits(p))
		}
	}
	c("minusInf", 0xff800000)
	c("one", 1)
	c("half", 0x7fff)
	c("upper", 0xffff0000)
	if words > 1 {
		c("lowest", math.Float32bits(-127))
		c("lowScore", math.Float32bits(-2e38))
		c("log2e", math.Float32bits(math.Log2E))
	}
	if bf16 {
		for i := range 16 {
			fmt.Fprintf(f, "DATA interleave<>+%d(SB)/4, $0x%08x\n", 4*i, i|(16+i)<<16)
		}
		f.WriteString("GLOBL interleave<>(SB), RODATA|NOPTR, $64\n")
	}
}

func main() {
	for name, text := range files() {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// files returns the generated files by name.
func files() map[string]string {
	var f file
	f.header(1, true)
	for _, bf16 := range []bool{false, true} {
		for v := 1; v <= 3; v++ {
			f.tile(avx512, v, bf16)
		}
	}
	for _, kind := range []string{"F32", "Round", "BF16"} {
		f.softmax(avx512, kind)
	}
	f.pairs()

	var g file
	g.header(8, false)
	for v := 1; v <= 3; v++ {
		g.tile(avx2, v, false)
	}
	for _, kind := range []string{"F32", "Round"} {
		g.softmax(avx2, kind)
	}
	g.transposes()
	g.fetches()
	var h file
	h.WriteString("// Code generated by go run ./gen; DO NOT EDIT.\n\n#include \"textflag.h\"\n")
	h.neonTile()
	for _, kind := range []string{"F32", "Round"} {
		h.neonSoftmax(kind)
	}
	return map[string]string{"kernels_arm64.s": h.String(), "kernels_avx512_amd64.s": f.String(), "kernels_avx2_amd64.s": g.String()}
}
