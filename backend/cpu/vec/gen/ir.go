package main

import (
	"fmt"
	"math"
	"sort"
)

// target is what a kernel is written for.
type target int

const (
	golang target = iota
	avx2
	avx512
	neon
)

func (t target) lanes() int {
	switch t {
	case avx512:
		return 16
	case avx2:
		return 8
	}
	return 1
}

// val is a value of the straight-line program: one float32 (or its bits, or a mask) per lane.
type val int

type kind int

const (
	kOp     kind = iota // computed in the loop
	kConst              // the same bits in every lane
	kScalar             // an argument, the same in every lane
	kAlt                // sign bits in the even lanes (for rope)
	kMask               // a comparison
)

type node struct {
	kind kind
	op   string
	args []val
	imm  int
	bits uint32 // kConst
	name string // stream or scalar
}

// stream is a pointer argument; elem is f32, bf16 or f16.
type stream struct {
	name, elem string
	out        bool
	ahead      int // it comes from memory, in ways that the processor doesn't foresee: ask for it so many bytes before it is read
}

// kernel is one function: pointers in the order of streams, then scalars, then n.
type kernel struct {
	name    string
	doc     string
	streams []stream
	scalars []string
	reduce  string // "", "sum" or "max": the kernel returns a float32
	body    func(b *builder)
}

// builder records the body of a kernel for one target.
type builder struct {
	t     target
	nodes []node
	accs  []val // the new value of the accumulator, for reductions
}

func (b *builder) put(n node) val {
	b.nodes = append(b.nodes, n)
	return val(len(b.nodes) - 1)
}

func (b *builder) op(name string, args ...val) val { return b.put(node{op: name, args: args}) }

func (b *builder) opi(name string, imm int, args ...val) val {
	return b.put(node{op: name, args: args, imm: imm})
}

func (b *builder) load(s string) val { return b.put(node{op: "load", name: s}) }

func (b *builder) store(s string, v val) { b.put(node{op: "store", name: s, args: []val{v}}) }

func (b *builder) bits(u uint32) val {
	for i, n := range b.nodes {
		if n.kind == kConst && n.bits == u {
			return val(i)
		}
	}
	return b.put(node{kind: kConst, bits: u})
}

func (b *builder) c(f float32) val { return b.bits(math.Float32bits(f)) }

func (b *builder) scalar(name string) val {
	for i, n := range b.nodes {
		if n.kind == kScalar && n.name == name {
			return val(i)
		}
	}
	return b.put(node{kind: kScalar, name: name})
}

// acc is the accumulator of a reduction; setAcc gives its next value.
func (b *builder) acc() val       { return b.put(node{op: "acc"}) }
func (b *builder) setAcc(v val)   { b.accs = append(b.accs, v) }
func (b *builder) alternate() val { return b.put(node{kind: kAlt}) }

func (b *builder) add(x, y val) val  { return b.op("add", x, y) }
func (b *builder) sub(x, y val) val  { return b.op("sub", x, y) }
func (b *builder) mul(x, y val) val  { return b.op("mul", x, y) }
func (b *builder) div(x, y val) val  { return b.op("div", x, y) }
func (b *builder) sqrt(x val) val    { return b.op("sqrt", x) }
func (b *builder) and(x, y val) val  { return b.op("and", x, y) }
func (b *builder) or(x, y val) val   { return b.op("or", x, y) }
func (b *builder) xor(x, y val) val  { return b.op("xor", x, y) }
func (b *builder) iadd(x, y val) val { return b.op("iadd", x, y) }
func (b *builder) isub(x, y val) val { return b.op("isub", x, y) }
func (b *builder) toInt(x val) val   { return b.op("toint", x) }
func (b *builder) swap(x val) val    { return b.op("swap", x) }
func (b *builder) f16(x val) val     { return b.op("f16", x) }

// fma is x*y+z, fnma is z-x*y, rounded once.
func (b *builder) fma(x, y, z val) val  { return b.op("fma", x, y, z) }
func (b *builder) fnma(x, y, z val) val { return b.op("fnma", x, y, z) }

// gt is x if x > y, else y; lt is x if x < y, else y. With a NaN both give y, as MAXPS and MINPS do.
func (b *builder) gt(x, y val) val { return b.op("gt", x, y) }
func (b *builder) lt(x, y val) val { return b.op("lt", x, y) }

// round takes the immediate of ROUNDPS: 0 nearest even, 1 floor, 2 ceil.
func (b *builder) round(mode int, x val) val { return b.opi("round", mode, x) }

func (b *builder) shl(k int, x val) val { return b.opi("shl", k, x) }
func (b *builder) shr(k int, x val) val { return b.opi("shr", k, x) }
func (b *builder) sra(k int, x val) val { return b.opi("sra", k, x) }

// Comparison predicates, numbered as CMPPS's.
const (
	cmpEQ    = 0
	cmpLT    = 1
	cmpLE    = 2
	cmpUnord = 3
)

func (b *builder) cmp(pred int, x, y val) val {
	return b.put(node{kind: kMask, op: "cmp", imm: pred, args: []val{x, y}})
}

// sel is x where the mask is set, else y.
func (b *builder) sel(m, x, y val) val { return b.op("sel", m, x, y) }

// nanmax and nanmin are NaN when either operand is.
func (b *builder) nanmax(x, y val) val { return b.sel(b.cmp(cmpUnord, x, x), x, b.gt(x, y)) }
func (b *builder) nanmin(x, y val) val { return b.sel(b.cmp(cmpUnord, x, x), x, b.lt(x, y)) }

// scale multiplies p, within a factor of four of 1, by 2^n with one rounding; n is an integer in [-250, 250].
func (b *builder) scale(p, n val) val {
	if b.t == avx512 {
		return b.op("scalef", p, n)
	}
	// Two factors, each a normal number: the first product is exact, the second rounds.
	i := b.toInt(n)
	h := b.sra(1, i)
	one := b.c(1) // its bits are the biased exponent 127 in place
	p = b.mul(p, b.iadd(b.shl(23, h), one))
	return b.mul(p, b.iadd(b.shl(23, b.isub(i, h)), one))
}

func fail(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// lives returns where each value is used last, the values that must stay in registers (scalars), and those that may:
// constants, the most used first.
func (b *builder) lives() (last []int, must, may []val) {
	last = make([]int, len(b.nodes))
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
	for i, n := range b.nodes {
		switch n.kind {
		case kScalar, kAlt:
			must = append(must, val(i))
		case kConst:
			may = append(may, val(i))
		}
	}
	sort.SliceStable(may, func(i, j int) bool { return uses[may[i]] > uses[may[j]] })
	return last, must, may
}
