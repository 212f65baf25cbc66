package main

import (
	"fmt"
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

func (e *emitter) addr(s stream, pointer string) string { return e.addrAhead(s, pointer, 0) }

// addrAhead is the place so many bytes further on.
func (e *emitter) addrAhead(s stream, pointer string, ahead int) string {
	size := 4
	if s.elem != "f32" {
		size = 2
	}
	d := ""
	if disp := e.disp*size + ahead; disp != 0 {
		d = fmt.Sprint(disp)
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
	if s.ahead > 0 && !e.tail {
		e.ins("PREFETCHT0 %s", e.addrAhead(s, p, s.ahead))
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
