package main

import (
	"fmt"
	"sort"
	"strings"
)

// lanesReduced is how many partial sums a reduction keeps, on every level: element i goes to partial sum i mod 64.
const lanesReduced = 64

var pointerRegs = []string{"DI", "SI", "DX", "BX", "R8", "R9", "R10", "R11"}

// asmFile collects the functions and constants of one level.
type asmFile struct {
	t      target
	text   strings.Builder
	consts map[uint32]bool
}

func (f *asmFile) suffix() string {
	if f.t == avx512 {
		return "AVX512"
	}
	return "AVX2"
}

// emitter writes the instructions of one kernel.
type emitter struct {
	f       *asmFile
	k       kernel
	b       *builder
	t       target
	acc     []int       // registers of the accumulators
	hoisted map[val]int // constants and scalars that stay in registers
	last    []int       // index of the node that uses a value last
	regs    map[val]int // while a body is written
	masks   map[val]int
	free    []bool
	freeK   []bool
	out     *strings.Builder
	tail    bool
	disp    int // elements from the index register
	accNow  int // register of the accumulator of this body
}

type noRegister struct{}

func (e *emitter) reg(i int) string {
	if e.t == avx512 {
		return fmt.Sprintf("Z%d", i)
	}
	return fmt.Sprintf("Y%d", i)
}

func (e *emitter) ins(format string, args ...any) { fmt.Fprintf(e.out, "\t"+format+"\n", args...) }

func (e *emitter) alloc() int {
	for i, ok := range e.free {
		if ok {
			e.free[i] = false
			return i
		}
	}
	panic(noRegister{})
}

func (e *emitter) release(r int) {
	if r != e.accNow || len(e.acc) == 0 {
		e.free[r] = true
	}
}

func constName(u uint32) string { return fmt.Sprintf("c%08x<>(SB)", u) }

// isMem reports whether v is a constant that isn't in a register.
func (e *emitter) isMem(v val) bool {
	_, ok := e.hoisted[v]
	return e.b.nodes[v].kind == kConst && !ok
}

// operand gives the last source of an instruction, and the mnemonic's suffix when it is a broadcast from memory.
func (e *emitter) operand(v val) (string, string) {
	if e.isMem(v) {
		u := e.b.nodes[v].bits
		e.f.consts[u] = true
		if e.t == avx512 {
			return constName(u), ".BCST"
		}
		return constName(u), ""
	}
	return e.reg(e.in(v)), ""
}

// in returns the register of v.
func (e *emitter) in(v val) int {
	if r, ok := e.hoisted[v]; ok {
		return r
	}
	r, ok := e.regs[v]
	if !ok {
		fail("%s: value %d (%v) has no register", e.k.name, v, e.b.nodes[v])
	}
	return r
}

// inReg is in, after loading a constant from memory if needed; the second result says that the caller releases it.
func (e *emitter) inReg(v val) (int, bool) {
	if !e.isMem(v) {
		return e.in(v), false
	}
	r := e.alloc()
	e.f.consts[e.b.nodes[v].bits] = true
	e.ins("VBROADCASTSS %s, %s", constName(e.b.nodes[v].bits), e.reg(r))
	return r, true
}

// dies reports whether node i is the last use of v, and v's register may be overwritten.
func (e *emitter) dies(v val, i int) bool {
	if _, ok := e.hoisted[v]; ok || e.b.nodes[v].kind == kConst {
		return false
	}
	if e.b.nodes[v].op == "acc" && e.tail {
		return false // the old value is still needed where the mask is clear
	}
	return e.last[v] == i
}

func (e *emitter) freeDying(i int) {
	for _, a := range e.b.nodes[i].args {
		if e.b.nodes[a].kind == kMask {
			if e.last[a] == i {
				if e.t == avx512 {
					e.freeK[e.masks[a]] = true
				} else {
					e.release(e.regs[a])
				}
			}
			continue
		}
		if e.dies(a, i) {
			e.release(e.regs[a])
		}
	}
}

// dst chooses the result register of node i after its operands have been read.
func (e *emitter) dst(i int) int {
	e.freeDying(i)
	var r int
	if len(e.b.accs) == 1 && e.b.accs[0] == val(i) && !e.tail {
		r = e.accNow // no reduction reads its accumulator after the operation that makes the new one
	} else {
		r = e.alloc()
	}
	e.regs[val(i)] = r
	return r
}

func (e *emitter) addr(s stream, pointer string) string {
	size := 4
	if s.elem != "f32" {
		size = 2
	}
	d := ""
	if e.disp != 0 {
		d = fmt.Sprint(e.disp * size)
	}
	return fmt.Sprintf("%s(%s)(AX*%d)", d, pointer, size)
}

func (e *emitter) stream(name string) (stream, string) {
	for i, s := range e.k.streams {
		if s.name == name {
			return s, pointerRegs[i]
		}
	}
	fail("%s has no stream %q", e.k.name, name)
	return stream{}, ""
}

// tailMask is the register that AVX2 tails keep their mask in.
const tailMask = 15

func (e *emitter) load(i int) {
	s, p := e.stream(e.b.nodes[i].name)
	a, r := e.addr(s, p), e.dst(i)
	k := ""
	z := ""
	if e.tail && e.t == avx512 {
		k, z = "K1, ", ".Z"
	}
	switch {
	case s.elem == "f32" && e.tail && e.t == avx2:
		e.ins("VMASKMOVPS %s, Y%d, %s", a, tailMask, e.reg(r))
	case s.elem == "f32":
		e.ins("VMOVUPS%s %s, %s%s", z, a, k, e.reg(r))
	case s.elem == "bf16":
		e.ins("VPMOVZXWD%s %s, %s%s", z, a, k, e.reg(r))
		e.ins("VPSLLD $16, %s, %s", e.reg(r), e.reg(r))
	case s.elem == "f16":
		e.ins("VCVTPH2PS%s %s, %s%s", z, a, k, e.reg(r))
	}
}

func (e *emitter) store(i int) {
	n := e.b.nodes[i]
	s, p := e.stream(n.name)
	a, r := e.addr(s, p), e.in(n.args[0])
	k := ""
	if e.tail && e.t == avx512 {
		k = "K1, "
	}
	switch {
	case s.elem == "f32" && e.tail && e.t == avx2:
		e.ins("VMASKMOVPS %s, Y%d, %s", e.reg(r), tailMask, a)
	case s.elem == "f32":
		e.ins("VMOVUPS %s, %s%s", e.reg(r), k, a)
	case s.elem == "f16":
		e.ins("VCVTPS2PH $0, %s, %s%s", e.reg(r), k, a)
	case s.elem == "bf16" && e.t == avx512:
		t := e.alloc()
		e.ins("VPSRLD $16, %s, %s", e.reg(r), e.reg(t))
		e.ins("VPMOVDW %s, %s%s", e.reg(t), k, a)
		e.release(t)
	case s.elem == "bf16":
		t, u := e.alloc(), e.alloc()
		e.ins("VPSRLD $16, %s, %s", e.reg(r), e.reg(t))
		e.ins("VEXTRACTI128 $1, Y%d, X%d", t, u)
		e.ins("VPACKUSDW X%d, X%d, X%d", u, t, t)
		e.ins("VMOVDQU X%d, %s", t, a)
		e.release(t)
		e.release(u)
	}
	e.freeDying(i)
}

var twoOperand = map[string]struct {
	avx2, avx512 string
	commutes     bool
}{
	"add":    {"VADDPS", "VADDPS", true},
	"mul":    {"VMULPS", "VMULPS", true},
	"sub":    {"VSUBPS", "VSUBPS", false},
	"div":    {"VDIVPS", "VDIVPS", false},
	"gt":     {"VMAXPS", "VMAXPS", false},
	"lt":     {"VMINPS", "VMINPS", false},
	"and":    {"VPAND", "VPANDD", true},
	"or":     {"VPOR", "VPORD", true},
	"xor":    {"VPXOR", "VPXORD", true},
	"iadd":   {"VPADDD", "VPADDD", true},
	"isub":   {"VPSUBD", "VPSUBD", false},
	"scalef": {"", "VSCALEFPS", false},
}

func (e *emitter) node(i int) {
	n := e.b.nodes[i]
	if n.kind == kConst || n.kind == kScalar || n.kind == kAlt {
		return
	}
	switch n.op {
	case "load":
		e.load(i)
	case "store":
		e.store(i)
	case "acc":
		e.regs[val(i)] = e.accNow
	case "fma", "fnma":
		e.fma(i)
	case "cmp":
		x, tmp := e.inReg(n.args[0])
		y, sfx := e.operand(n.args[1])
		if tmp {
			e.release(x)
		}
		if e.t == avx512 {
			e.freeDying(i)
			k := 2
			for ; k < 8 && !e.freeK[k]; k++ {
			}
			if k == 8 {
				panic(noRegister{})
			}
			e.freeK[k] = false
			e.masks[val(i)] = k
			e.ins("VCMPPS%s $%d, %s, %s, K%d", sfx, n.imm, y, e.reg(x), k)
			return
		}
		e.ins("VCMPPS $%d, %s, %s, %s", n.imm, y, e.reg(x), e.reg(e.dst(i)))
	case "sel":
		y, tmp := e.inReg(n.args[2])
		x, sfx := e.operand(n.args[1])
		if tmp {
			e.release(y)
		}
		if e.t == avx512 {
			k := e.masks[n.args[0]]
			e.ins("VBLENDMPS%s %s, %s, K%d, %s", sfx, x, e.reg(y), k, e.reg(e.dst(i)))
			return
		}
		m := e.regs[n.args[0]]
		e.ins("VBLENDVPS Y%d, %s, %s, %s", m, x, e.reg(y), e.reg(e.dst(i)))
	case "sqrt":
		x, sfx := e.operand(n.args[0])
		e.ins("VSQRTPS%s %s, %s", sfx, x, e.reg(e.dst(i)))
	case "toint":
		x, sfx := e.operand(n.args[0])
		e.ins("VCVTPS2DQ%s %s, %s", sfx, x, e.reg(e.dst(i)))
	case "round":
		x := e.reg(e.in(n.args[0]))
		op := "VROUNDPS"
		if e.t == avx512 {
			op = "VRNDSCALEPS"
		}
		e.ins("%s $%d, %s, %s", op, 8|n.imm, x, e.reg(e.dst(i)))
	case "shl", "shr", "sra":
		op := map[string]string{"shl": "VPSLLD", "shr": "VPSRLD", "sra": "VPSRAD"}[n.op]
		x := e.reg(e.in(n.args[0]))
		e.ins("%s $%d, %s, %s", op, n.imm, x, e.reg(e.dst(i)))
	case "swap":
		x := e.reg(e.in(n.args[0]))
		e.ins("VPERMILPS $0xb1, %s, %s", x, e.reg(e.dst(i)))
	case "f16":
		x := e.in(n.args[0])
		r := e.dst(i)
		if e.t == avx512 {
			e.ins("VCVTPS2PH $0, Z%d, Y%d", x, r)
			e.ins("VCVTPH2PS Y%d, Z%d", r, r)
		} else {
			e.ins("VCVTPS2PH $0, Y%d, X%d", x, r)
			e.ins("VCVTPH2PS X%d, Y%d", r, r)
		}
	default:
		op, ok := twoOperand[n.op]
		if !ok {
			fail("%s: unknown operation %q", e.k.name, n.op)
		}
		a, c := n.args[0], n.args[1]
		if op.commutes && e.isMem(a) {
			a, c = c, a
		}
		x, tmp := e.inReg(a)
		y, sfx := e.operand(c)
		if tmp {
			e.release(x)
		}
		name := op.avx2
		if e.t == avx512 {
			name = op.avx512
		}
		e.ins("%s%s %s, %s, %s", name, sfx, y, e.reg(x), e.reg(e.dst(i)))
	}
}

// fma writes x*y+z or z-x*y with the form that destroys an operand which is no longer needed.
func (e *emitter) fma(i int) {
	n := e.b.nodes[i]
	x, y, z := n.args[0], n.args[1], n.args[2]
	op := "VFMADD"
	if n.op == "fnma" {
		op = "VFNMADD"
	}
	if e.isMem(x) {
		x, y = y, x
	}
	var temps []int
	inReg := func(v val) int {
		r, tmp := e.inReg(v)
		if tmp {
			temps = append(temps, r)
		}
		return r
	}
	finish := func(r int) {
		for _, t := range temps {
			if t != r {
				e.release(t)
			}
		}
		for _, a := range n.args {
			if e.dies(a, i) && e.regs[a] != r {
				e.release(e.regs[a])
			}
		}
		e.regs[val(i)] = r
	}
	free := func(v val) bool { return e.dies(v, i) }
	switch {
	case free(z):
		m, sfx := e.operand(y)
		r := e.in(z)
		e.ins("%s231PS%s %s, %s, %s", op, sfx, m, e.reg(inReg(x)), e.reg(r))
		finish(r)
	case free(x) && !e.isMem(y):
		m, sfx := e.operand(z)
		r := e.in(x)
		e.ins("%s213PS%s %s, %s, %s", op, sfx, m, e.reg(e.in(y)), e.reg(r))
		finish(r)
	case free(y):
		m, sfx := e.operand(z)
		r := e.in(y)
		e.ins("%s213PS%s %s, %s, %s", op, sfx, m, e.reg(inReg(x)), e.reg(r))
		finish(r)
	case free(x):
		m, sfx := e.operand(y)
		r := e.in(x)
		e.ins("%s132PS%s %s, %s, %s", op, sfx, m, e.reg(inReg(z)), e.reg(r))
		finish(r)
	default:
		r := e.alloc()
		if e.isMem(z) {
			e.f.consts[e.b.nodes[z].bits] = true
			e.ins("VBROADCASTSS %s, %s", constName(e.b.nodes[z].bits), e.reg(r))
		} else {
			e.ins("VMOVAPS %s, %s", e.reg(e.in(z)), e.reg(r))
		}
		m, sfx := e.operand(y)
		e.ins("%s231PS%s %s, %s, %s", op, sfx, m, e.reg(inReg(x)), e.reg(r))
		finish(r)
	}
}

// body writes one vector's worth of work.
func (e *emitter) body(acc int, tail bool, disp int) {
	e.tail, e.disp = tail, disp
	e.regs, e.masks = map[val]int{}, map[val]int{}
	e.free = make([]bool, 32)
	n := 32
	if e.t == avx2 {
		n = tailMask
	}
	for i := range n {
		e.free[i] = true
	}
	for _, r := range e.acc {
		e.free[r] = false
	}
	for _, r := range e.hoisted {
		e.free[r] = false
	}
	e.freeK = []bool{false, false, true, true, true, true, true, true}
	if len(e.acc) > 0 {
		e.accNow = e.acc[acc]
	}
	for i := range e.b.nodes {
		e.node(i)
	}
	if len(e.acc) == 0 {
		return
	}
	r := e.regs[e.b.accs[0]]
	switch {
	case tail && e.t == avx512:
		e.ins("VMOVAPS %s, K1, %s", e.reg(r), e.reg(e.accNow))
	case tail:
		e.ins("VBLENDVPS Y%d, %s, %s, %s", tailMask, e.reg(r), e.reg(e.accNow), e.reg(e.accNow))
	case r != e.accNow:
		e.ins("VMOVAPS %s, %s", e.reg(r), e.reg(e.accNow))
	}
}

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
	last := make([]int, len(b.nodes))
	uses := make([]int, len(b.nodes))
	for i, n := range b.nodes {
		for _, a := range n.args {
			last[a] = i
			uses[a]++
		}
	}
	for _, a := range b.accs {
		last[a] = len(b.nodes)
	}
	var must, may []val
	for i, n := range b.nodes {
		switch {
		case n.kind == kScalar || n.kind == kAlt:
			must = append(must, val(i))
		case n.kind == kConst:
			may = append(may, val(i))
		}
	}
	sort.SliceStable(may, func(i, j int) bool { return uses[may[i]] > uses[may[j]] })
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
