package main

import (
	"fmt"
	"strings"
)

// neonFile collects the functions for arm64. The assembler knows few vector instructions on floats, so all are written as
// words. A function handles whole vectors, a reduction whole rounds of 64 elements; the portable twin does the rest.
type neonFile struct{ text strings.Builder }

// neonEmitter writes one kernel.
type neonEmitter struct {
	k       kernel
	b       *builder
	out     *strings.Builder
	hoisted map[val]int
	last    []int
	regs    map[val]int
	free    [32]bool
	acc     int // register of the accumulator of this body
	unroll  int // bodies of a round
	disp    int // which body
}

func (e *neonEmitter) ins(format string, args ...any) { fmt.Fprintf(e.out, "\t"+format+"\n", args...) }

// word writes an instruction; its fields are ored in.
func (e *neonEmitter) word(comment string, op uint32, d, n, m int) {
	e.ins("WORD $0x%08x // %s V%d, V%d, V%d", op|uint32(m)<<16|uint32(n)<<5|uint32(d), comment, d, n, m)
}

func (e *neonEmitter) alloc() int {
	for i, ok := range e.free {
		if ok {
			e.free[i] = false
			return i
		}
	}
	panic(noRegister{})
}

// loadConst brings the bits to all lanes of r.
func (e *neonEmitter) loadConst(bits uint32, r int) {
	e.ins("MOVW $0x%08x, R9", bits)
	e.ins("VDUP R9, V%d.S4", r)
}

// in returns the register of v; a constant that is not in one is loaded to a register that the caller gives back.
func (e *neonEmitter) in(v val) (r int, temp bool) {
	if r, ok := e.hoisted[v]; ok {
		return r, false
	}
	if n := e.b.nodes[v]; n.kind == kConst {
		r := e.alloc()
		e.loadConst(n.bits, r)
		return r, true
	}
	r, ok := e.regs[v]
	if !ok {
		fail("%s: value %d has no register", e.k.name, v)
	}
	return r, false
}

// dies reports whether node i is the last use of v and its register may be overwritten.
func (e *neonEmitter) dies(v val, i int) bool {
	n := e.b.nodes[v]
	return n.kind != kConst && n.kind != kScalar && n.kind != kAlt && n.op != "acc" && e.last[v] == i
}

var neonTwo = map[string]uint32{
	"add": 0x4e20d400, "sub": 0x4ea0d400, "mul": 0x6e20dc00, "div": 0x6e20fc00,
	"and": 0x4e201c00, "or": 0x4ea01c00, "xor": 0x6e201c00, "iadd": 0x4ea08400, "isub": 0x6ea08400,
}

const (
	neonOrr   = 0x4ea01c00
	neonBsl   = 0x6e601c00
	neonNot   = 0x6e205800
	neonFcmeq = 0x4e20e400
	neonFcmgt = 0x6ea0e400
	neonFcmge = 0x6e20e400
)

func (e *neonEmitter) node(i int) {
	n := e.b.nodes[i]
	if n.kind == kConst || n.kind == kScalar || n.kind == kAlt {
		return
	}
	if n.op == "acc" {
		e.regs[val(i)] = e.acc
		return
	}
	args, temps := make([]int, len(n.args)), []int(nil)
	for j, a := range n.args {
		r, temp := e.in(a)
		args[j] = r
		if temp {
			temps = append(temps, r)
		}
	}
	// release gives back what this node uses last, but for keep.
	release := func(keep int) {
		for _, r := range temps {
			if r != keep {
				e.free[r] = true
			}
		}
		for _, a := range n.args {
			if e.dies(a, i) && e.regs[a] != keep {
				e.free[e.regs[a]] = true
			}
		}
	}
	// fresh returns the result's register, which may be an operand's.
	fresh := func() int {
		release(-1)
		r := e.alloc()
		e.regs[val(i)] = r
		return r
	}
	// over returns a register with the value of operand j, to be changed.
	over := func(j int) int {
		r := args[j]
		own := e.dies(n.args[j], i)
		for _, t := range temps {
			own = own || t == r
		}
		for k, a := range args {
			own = own && (k == j || a != r)
		}
		if !own {
			r = e.alloc()
			e.word("MOV", neonOrr, r, args[j], args[j])
		}
		release(r)
		e.regs[val(i)] = r
		return r
	}
	switch n.op {
	case "load":
		s, p := e.stream(n.name)
		r := fresh()
		switch s.elem {
		case "f32":
			e.ins("WORD $0x%08x // LDR Q%d, [R%d, #%d]", 0x3dc00000|uint32(e.disp)<<10|uint32(p)<<5|uint32(r), r, p, 16*e.disp)
		default:
			e.ins("WORD $0x%08x // LDR D%d, [R%d, #%d]", 0xfd400000|uint32(e.disp)<<10|uint32(p)<<5|uint32(r), r, p, 8*e.disp)
			if s.elem == "bf16" {
				e.word("SHLL #16", 0x2e613800, r, r, 0)
			} else {
				e.word("FCVTL", 0x0e217800, r, r, 0)
			}
		}
	case "store":
		s, p := e.stream(n.name)
		r := args[0]
		if s.elem == "f32" {
			e.ins("WORD $0x%08x // STR Q%d, [R%d, #%d]", 0x3d800000|uint32(e.disp)<<10|uint32(p)<<5|uint32(r), r, p, 16*e.disp)
		} else {
			t := e.alloc()
			if s.elem == "bf16" {
				e.word("SHRN #16", 0x0f108400, t, r, 0)
			} else {
				e.word("FCVTN", 0x0e216800, t, r, 0)
			}
			e.ins("WORD $0x%08x // STR D%d, [R%d, #%d]", 0xfd000000|uint32(e.disp)<<10|uint32(p)<<5|uint32(t), t, p, 8*e.disp)
			e.free[t] = true
		}
		release(-1)
	case "fma", "fnma":
		op := uint32(0x4e20cc00)
		if n.op == "fnma" {
			op = 0x4ea0cc00
		}
		x, y := args[0], args[1]
		r := over(2)
		e.word(strings.ToUpper(n.op), op, r, x, y)
	case "gt", "lt":
		x, y := args[0], args[1]
		m := e.alloc()
		if n.op == "gt" {
			e.word("FCMGT", neonFcmgt, m, x, y)
		} else {
			e.word("FCMGT", neonFcmgt, m, y, x)
		}
		e.word("BSL", neonBsl, m, x, y)
		release(-1)
		e.regs[val(i)] = m
	case "cmp":
		x, y := args[0], args[1]
		m := e.alloc()
		switch n.imm {
		case cmpEQ:
			e.word("FCMEQ", neonFcmeq, m, x, y)
		case cmpLT:
			e.word("FCMGT", neonFcmgt, m, y, x)
		case cmpLE:
			e.word("FCMGE", neonFcmge, m, y, x)
		default: // of a value with itself
			e.word("FCMEQ", neonFcmeq, m, x, x)
			e.word("NOT", neonNot, m, m, 0)
		}
		release(-1)
		e.regs[val(i)] = m
	case "sel":
		x, y := args[1], args[2]
		m := over(0)
		e.word("BSL", neonBsl, m, x, y)
	case "sqrt":
		x := args[0]
		e.word("FSQRT", 0x6ea1f800, fresh(), x, 0)
	case "toint":
		x := args[0]
		e.word("FCVTNS", 0x4e21a800, fresh(), x, 0)
	case "round":
		x := args[0]
		e.word([]string{"FRINTN", "FRINTM", "FRINTP"}[n.imm], []uint32{0x4e218800, 0x4e219800, 0x4ea18800}[n.imm], fresh(), x, 0)
	case "swap":
		x := args[0]
		e.word("REV64", 0x4ea00800, fresh(), x, 0)
	case "f16":
		x := args[0]
		r := fresh()
		e.word("FCVTN", 0x0e216800, r, x, 0)
		e.word("FCVTL", 0x0e217800, r, r, 0)
	case "shl":
		x := args[0]
		e.word(fmt.Sprintf("SHL #%d", n.imm), 0x4f005400|uint32(32+n.imm)<<16, fresh(), x, 0)
	case "shr":
		x := args[0]
		e.word(fmt.Sprintf("USHR #%d", n.imm), 0x6f000400|uint32(64-n.imm)<<16, fresh(), x, 0)
	case "sra":
		x := args[0]
		e.word(fmt.Sprintf("SSHR #%d", n.imm), 0x4f000400|uint32(64-n.imm)<<16, fresh(), x, 0)
	default:
		op, ok := neonTwo[n.op]
		if !ok {
			fail("%s: unknown operation %q", e.k.name, n.op)
		}
		x, y := args[0], args[1]
		e.word(strings.ToUpper(n.op), op, fresh(), x, y)
	}
}

func (e *neonEmitter) stream(name string) (stream, int) {
	for i, s := range e.k.streams {
		if s.name == name {
			return s, i
		}
	}
	fail("%s has no stream %q", e.k.name, name)
	return stream{}, 0
}

// body writes one vector's worth of work.
func (e *neonEmitter) body(u int) {
	e.disp, e.acc = u, u
	e.regs = map[val]int{}
	for i := range e.free {
		e.free[i] = true
	}
	if e.k.reduce != "" {
		for i := range e.unroll {
			e.free[i] = false
		}
	}
	for _, r := range e.hoisted {
		e.free[r] = false
	}
	for i := range e.b.nodes {
		e.node(i)
	}
	if e.k.reduce != "" {
		if r := e.regs[e.b.accs[0]]; r != e.acc {
			e.word("MOV", neonOrr, e.acc, r, r)
		}
	}
}

// add writes kernel k with as many of its constants in registers as fit.
func (f *neonFile) add(k kernel) {
	b := &builder{t: neon}
	k.body(b)
	last, must, may := b.lives()
	for n := len(may); n >= 0; n-- {
		var out strings.Builder
		e := &neonEmitter{k: k, b: b, out: &out, last: last, hoisted: map[val]int{}, unroll: 1}
		if k.reduce != "" {
			e.unroll = lanesReduced / 4
		}
		if e.try(append(append([]val{}, must...), may[:n]...)) {
			f.text.WriteString(out.String())
			return
		}
	}
	fail("%s: too few registers", k.name)
}

func (e *neonEmitter) try(keep []val) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, is := v.(noRegister); !is {
				panic(v)
			}
			ok = false
		}
	}()
	lowest := 0
	if e.k.reduce != "" {
		lowest = e.unroll
	}
	for i, v := range keep {
		if 31-i < lowest {
			return false
		}
		e.hoisted[v] = 31 - i
	}
	k := e.k
	decl, _, size := k.neonBody()
	name := k.name + "NEON"
	fmt.Fprintf(e.out, "\n// func %s%s\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, decl, k.doc, name, size)
	at := 0
	if k.reduce != "" {
		e.ins("MOVD acc+0(FP), R10")
		at = 8
	}
	for i, s := range k.streams {
		e.ins("MOVD %s+%d(FP), R%d", s.name, at+8*i, i)
	}
	at += 8 * len(k.streams)
	scalars := at
	e.ins("MOVD n+%d(FP), R8", at+(len(k.scalars)*4+7)&^7)
	for _, v := range keep {
		n, r := e.b.nodes[v], e.hoisted[v]
		switch n.kind {
		case kScalar:
			for i, s := range k.scalars {
				if s == n.name {
					e.ins("FMOVS %s+%d(FP), F%d", s, scalars+4*i, r)
					e.word("DUP S0", 0x4e040400, r, r, 0)
				}
			}
		case kAlt:
			e.ins("MOVD $0x80000000, R9")
			e.ins("VDUP R9, V%d.D2", r)
		case kConst:
			e.loadConst(n.bits, r)
		}
	}
	memory := func(op uint32, what string) {
		for i := range e.unroll {
			e.ins("WORD $0x%08x // %s Q%d, [R10, #%d]", op|uint32(i)<<10|10<<5|uint32(i), what, i, 16*i)
		}
	}
	if k.reduce != "" {
		memory(0x3dc00000, "LDR")
	}
	e.out.WriteString("\nloop:\n")
	for u := range e.unroll {
		e.body(u)
	}
	for i, s := range k.streams {
		bytes := 16
		if s.elem != "f32" {
			bytes = 8
		}
		e.ins("ADD $%d, R%d", bytes*e.unroll, i)
	}
	e.ins("SUBS $%d, R8", 4*e.unroll)
	e.ins("BGT loop")
	if k.reduce != "" {
		memory(0x3d800000, "STR")
	}
	e.ins("RET")
	return true
}

// neonBody gives the parameters of the assembly, the names in a call, and their size: a reduction gets its 64 partial
// results in memory.
func (k kernel) neonBody() (decl, call string, size int) {
	decl, call = k.signature()
	size = 8*len(k.streams) + (len(k.scalars)*4+7)&^7 + 8
	if k.reduce != "" {
		decl = "(acc *[64]float32, " + strings.TrimSuffix(strings.TrimPrefix(decl, "("), " float32")
		call = "&acc, " + call
		size += 8
	}
	return decl, call, size
}

// neonGo writes the Go side: the table, and functions that do whole vectors in assembly and the rest in Go.
func neonGo(ks []kernel) string {
	var d strings.Builder
	d.WriteString(header + "package vec\n\nvar kernelsNEON = kernels{\n")
	for _, k := range ks {
		fmt.Fprintf(&d, "\t%s: %sNEONAll,\n", k.name, k.name)
	}
	d.WriteString("}\n")
	for _, k := range ks {
		body, bodyCall, _ := k.neonBody()
		decl, _ := k.signature()
		fmt.Fprintf(&d, "\n//go:noescape\nfunc %sNEON%s\n\nfunc %sNEONAll%s {\n", k.name, body, k.name, decl)
		bodyCall = strings.TrimSuffix(bodyCall, "n") + "m"
		if k.reduce == "" {
			fmt.Fprintf(&d, "\tm := n &^ 3\n\tif m > 0 {\n\t\t%sNEON(%s)\n\t}\n\tif m < n {\n\t\t%sGo(%s)\n\t}\n}\n", k.name, bodyCall, k.name, k.rest())
			continue
		}
		fold, init := "foldSum", "var acc [64]float32"
		if k.reduce == "max" {
			fold, init = "foldMax", "acc := minusInfs"
		}
		fmt.Fprintf(&d, "\t%s\n\tm := n &^ 63\n\tif m > 0 {\n\t\t%sNEON(%s)\n\t}\n\tif m < n {\n\t\t%sGoInto(&acc, %s)\n\t}\n\treturn %s(&acc)\n}\n",
			init, k.name, bodyCall, k.name, k.rest(), fold)
	}
	return formatted(d.String())
}
