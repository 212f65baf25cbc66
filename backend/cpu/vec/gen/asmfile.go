package main

import (
	"fmt"
	"sort"
	"strings"
)

// combine writes a = a op b for registers of the given class (X, Y, Z); t is a scratch register.
func (e *emitter) combine(class string, a, b, t int) {
	if e.k.reduce == "sum" {
		e.ins("VADDPS %s%d, %s%d, %s%d", class, b, class, a, class, a)
		return
	}
	e.ins("VMAXPS %s%d, %s%d, %s%d", class, b, class, a, class, t)
	if class == "Z" {
		e.ins("VCMPPS $%d, Z%d, Z%d, K2", cmpUnord, a, a)
		e.ins("VMOVAPS Z%d, K2, Z%d", a, t)
	} else {
		e.ins("VCMPPS $%d, %s%d, %s%d, %s%d", cmpUnord, class, a, class, a, class, b)
		e.ins("VBLENDVPS %s%d, %s%d, %s%d, %s%d", class, b, class, a, class, t, class, t)
	}
	e.ins("VMOVAPS %s%d, %s%d", class, t, class, a)
}

// tree folds the 64 partial results in a fixed order: 64 → 16 by quarters, then halves.
func (e *emitter) tree() {
	const t = 14
	if e.t == avx512 {
		e.combine("Z", 0, 1, t)
		e.combine("Z", 2, 3, t)
		e.combine("Z", 0, 2, t)
		e.ins("VEXTRACTF64X4 $1, Z0, Y1")
	} else {
		for _, p := range [][2]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}} {
			e.combine("Y", p[0], p[1], t)
		}
	}
	e.combine("Y", 0, 1, t)
	e.ins("VEXTRACTF128 $1, Y0, X1")
	e.combine("X", 0, 1, t)
	e.ins("VPERMILPS $0x4e, X0, X1")
	e.combine("X", 0, 1, t)
	e.ins("VPERMILPS $0xb1, X0, X1")
	e.combine("X", 0, 1, t)
}

// setMask writes the tail's mask for the count in CX, which may be above the vector's length.
func (e *emitter) setMask() {
	l := e.t.lanes()
	e.ins("MOVL $%d, R12", l)
	e.ins("CMPQ CX, R12")
	e.ins("CMOVQLT CX, R12")
	if e.t == avx512 {
		e.ins("MOVL $0xffff, R13")
		e.ins("BZHIL R12, R13, R13")
		e.ins("KMOVW R13, K1")
		return
	}
	e.ins("SHLQ $2, R12")
	e.ins("LEAQ tailMasks<>+32(SB), R13")
	e.ins("SUBQ R12, R13")
	e.ins("VMOVDQU (R13), Y%d", tailMask)
}

// halfOnly reports whether the kernel has 16-bit streams; at AVX2 those take multiples of eight elements only.
func (k kernel) halfOnly() bool {
	for _, s := range k.streams {
		if s.elem != "f32" {
			return true
		}
	}
	return false
}

// add writes kernel k, with as many of its constants in registers as fit.
func (f *asmFile) add(k kernel) {
	b := &builder{t: f.t}
	k.body(b)
	last, must, may := b.lives()
	for n := len(may); n >= 0; n-- {
		var out strings.Builder
		saved := map[uint32]bool{}
		for c := range f.consts {
			saved[c] = true
		}
		if f.try(k, b, last, append(append([]val{}, must...), may[:n]...), &out) {
			f.text.WriteString(out.String())
			return
		}
		f.consts = saved
	}
	fail("%s: too few registers", k.name)
}

func (f *asmFile) try(k kernel, b *builder, last []int, keep []val, out *strings.Builder) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, is := v.(noRegister); !is {
				panic(v)
			}
			ok = false
		}
	}()
	e := &emitter{f: f, k: k, b: b, t: f.t, last: last, hoisted: map[val]int{}, out: out}
	lanes := f.t.lanes()
	unroll := 1
	if k.reduce != "" {
		unroll = lanesReduced / lanes
		for i := range unroll {
			e.acc = append(e.acc, i)
		}
	}
	top := 31
	if f.t == avx2 {
		top = tailMask - 1
	}
	for _, v := range keep {
		if top < unroll {
			return false
		}
		e.hoisted[v] = top
		top--
	}

	name := k.name + f.suffix()
	ptr := len(k.streams) * 8
	scal := (len(k.scalars)*4 + 7) &^ 7
	ret := 0
	if k.reduce != "" {
		ret = 4
	}
	sig, _ := k.signature()
	fmt.Fprintf(out, "\n// func %s%s\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, sig, k.doc, name, ptr+scal+8+ret)
	for i, s := range k.streams {
		e.ins("MOVQ %s+%d(FP), %s", s.name, i*8, pointerRegs[i])
	}
	e.ins("MOVQ n+%d(FP), CX", ptr+scal)
	for _, v := range keep {
		n := b.nodes[v]
		switch n.kind {
		case kScalar:
			for i, s := range k.scalars {
				if s == n.name {
					e.ins("VBROADCASTSS %s+%d(FP), %s", s, ptr+4*i, e.reg(e.hoisted[v]))
				}
			}
		case kAlt:
			e.ins("VBROADCASTSD evenSigns<>(SB), %s", e.reg(e.hoisted[v]))
		case kConst:
			f.consts[n.bits] = true
			e.ins("VBROADCASTSS %s, %s", constName(n.bits), e.reg(e.hoisted[v]))
		}
	}
	for i := range e.acc {
		switch {
		case k.reduce == "max" && i == 0:
			f.consts[0xff800000] = true
			e.ins("VBROADCASTSS %s, %s", constName(0xff800000), e.reg(0))
		case k.reduce == "max":
			e.ins("VMOVAPS %s, %s", e.reg(0), e.reg(i))
		default:
			e.ins("VXORPS Y%d, Y%d, Y%d", i, i, i)
		}
	}
	e.ins("XORL AX, AX")
	e.ins("SUBQ $%d, CX", lanes*unroll)
	e.ins("JLT tail")
	out.WriteString("\nloop:\n")
	for u := range unroll {
		e.body(u, false, u*lanes)
	}
	e.ins("ADDQ $%d, AX", lanes*unroll)
	e.ins("SUBQ $%d, CX", lanes*unroll)
	e.ins("JGE loop")
	out.WriteString("\ntail:\n")
	if !(f.t == avx2 && k.halfOnly()) {
		e.ins("ADDQ $%d, CX", lanes*unroll)
		for u := range unroll {
			e.ins("JLE done")
			e.setMask()
			e.body(u, true, 0)
			if u < unroll-1 {
				e.ins("ADDQ $%d, AX", lanes)
				e.ins("SUBQ $%d, CX", lanes)
			}
		}
		out.WriteString("\ndone:\n")
	}
	if k.reduce != "" {
		e.tree()
		e.ins("VMOVSS X0, ret+%d(FP)", ptr+scal+8)
	}
	e.ins("VZEROUPPER")
	e.ins("RET")
	return true
}

// signature gives the Go parameter list, and the names of the parameters for a call.
func (k kernel) signature() (decl, call string) {
	var ps, names []string
	group := ""
	for i, s := range k.streams {
		typ := "*float32"
		if s.elem != "f32" {
			typ = "*uint16"
		}
		if i > 0 && typ == group {
			ps[len(ps)-1] = strings.TrimSuffix(ps[len(ps)-1], " "+typ) + ", " + s.name + " " + typ
		} else {
			ps = append(ps, s.name+" "+typ)
		}
		group = typ
		names = append(names, s.name)
	}
	if len(k.scalars) > 0 {
		ps = append(ps, strings.Join(k.scalars, ", ")+" float32")
		names = append(names, k.scalars...)
	}
	ps = append(ps, "n int")
	names = append(names, "n")
	decl = "(" + strings.Join(ps, ", ") + ")"
	if k.reduce != "" {
		decl += " float32"
	}
	return decl, strings.Join(names, ", ")
}

// rest gives the arguments of a call for the elements from m on.
func (k kernel) rest() string {
	var args []string
	for _, s := range k.streams {
		args = append(args, fmt.Sprintf("at(%s, m)", s.name))
	}
	return strings.Join(append(append(args, k.scalars...), "n-m"), ", ")
}

// source returns the whole assembly file.
func (f *asmFile) source() string {
	var s strings.Builder
	s.WriteString("// Code generated by go run ./gen; DO NOT EDIT.\n\n#include \"textflag.h\"\n\n")
	var cs []uint32
	for c := range f.consts {
		cs = append(cs, c)
	}
	sort.Slice(cs, func(i, j int) bool { return cs[i] < cs[j] })
	words := 1
	if f.t == avx2 {
		words = 8
	}
	for _, c := range cs {
		for w := range words {
			fmt.Fprintf(&s, "DATA c%08x<>+%d(SB)/4, $0x%08x\n", c, 4*w, c)
		}
		fmt.Fprintf(&s, "GLOBL c%08x<>(SB), RODATA|NOPTR, $%d\n", c, 4*words)
	}
	s.WriteString("DATA evenSigns<>(SB)/8, $0x80000000\nGLOBL evenSigns<>(SB), RODATA|NOPTR, $8\n")
	if f.t == avx2 {
		for w := range 16 {
			v := 0
			if w < 8 {
				v = 0xffffffff
			}
			fmt.Fprintf(&s, "DATA tailMasks<>+%d(SB)/4, $0x%08x\n", 4*w, v)
		}
		s.WriteString("GLOBL tailMasks<>(SB), RODATA|NOPTR, $64\n")
	}
	s.WriteString(f.text.String())
	return s.String()
}
