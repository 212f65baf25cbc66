package mosaic

import (
	"fmt"
	"strings"
)

// attentionShape is everything that the text of an attention kernel depends on.
type attentionShape struct {
	heads, headSize int
	queries, keys   int
	scale           float64 // of the scores, times log2(e): the kernel works with powers of two; 1 if the queries are scaled
	width           int     // of the result's rows, more than heads·headSize if others write beside attention; 0 for no more
	tile            tile
}

// tile is how a kernel cuts its work.
type tile struct {
	queries, keys int  // rows of a block
	columns       bool // scores are kept transposed: a query is a lane, not a row
}

// headsPerBlock is how many heads lie side by side in a block: its lanes are a multiple of 128.
func (s attentionShape) headsPerBlock() int { return max(1, lanes/s.headSize) }

// vmemBytes is what the kernel needs of the chip's own memory: keys and values of a head whole, twice each because the
// next head's are fetched meanwhile, and the scores of a block several times.
func (s attentionShape) vmemBytes() int {
	width := s.headsPerBlock() * s.headSize
	rows := ceil(s.keys, s.tile.keys) * s.tile.keys
	return 2*2*rows*width*2 + 2*2*s.tile.queries*width*2 + 3*4*s.tile.queries*s.tile.keys
}

// attentionBody writes the kernel for operands n (one i32, the number of keys), q (queries, heads·headSize), k and v (keys,
// heads·headSize) in bfloat16; the result has q's shape.
//
// The grid is (heads, blocks of queries). Keys and values of a head are in the chip's memory whole, fetched once for each
// head, and a loop goes over blocks of keys with a running maximum and sum (Milakov and Gimelshein 2018; Dao et al. 2022).
// Rows past the end of an operand hold anything: the last block of keys is masked, in the scores and in the values; rows
// of queries past the end are never stored.
func attentionBody(s attentionShape) string {
	a := newAttentionEmitter(s)
	n := a.op("memref.load", "", []string{"%n", a.index(0)}, []string{fmt.Sprintf("memref<1xi32, %s>", smem), "index"}, "i32")
	zero := a.index(0)
	for g := range s.headsPerBlock() {
		a.head(g, n, zero)
	}
	kvRows, width := ceil(s.keys, s.tile.keys)*s.tile.keys, s.headsPerBlock()*s.headSize
	rows := func(n int, block string) window { return window{rows: n, lanes: width, element: "bf16", block: block} }
	return a.module([]string{"h", "i"}, []int{s.heads / s.headsPerBlock(), ceil(s.queries, s.tile.queries)}, []string{"n"},
		[]string{"q", "k", "v", "o"},
		[]window{rows(s.tile.queries, "%i, %h"), rows(kvRows, "%z, %h"), rows(kvRows, "%z, %h"), rows(s.tile.queries, "%i, %h")})
}

type attentionEmitter struct {
	*emitter
	s attentionShape

	axis                 int    // of the scores along which the keys are
	qRef, kRef           string // types of the operands' blocks
	query, key           string // types of one head's
	state, acc           string // of maximum and sum, of the weighted values
	score, scoreB, along string // of a block of scores, the same in bf16, and one number a query
}

func newAttentionEmitter(s attentionShape) *attentionEmitter {
	d, bq, bk, width := s.headSize, s.tile.queries, s.tile.keys, s.headsPerBlock()*s.headSize
	a := &attentionEmitter{emitter: newEmitter(), s: s, axis: 1}
	a.qRef, a.kRef = memref(bq, width, "bf16"), memref(ceil(s.keys, bk)*bk, width, "bf16")
	a.query, a.key = vector(bq, d, "bf16"), vector(bk, d, "bf16")
	a.state, a.acc, a.score = vector(bq, 1, "f32"), vector(bq, d, "f32"), vector(bq, bk, "f32")
	if s.tile.columns {
		a.axis = 0
		a.state, a.acc, a.score = vector(1, bq, "f32"), vector(d, bq, "f32"), vector(bk, bq, "f32")
	}
	a.scoreB, a.along = withElement(a.score, "bf16"), fmt.Sprintf("vector<%dxf32>", bq)
	return a
}

// running is the state of the loop over keys: maximum, sum and weighted values.
type running struct{ max, sum, acc string }

// head writes attention of head g of the block.
func (a *attentionEmitter) head(g int, n, zero string) {
	s, bk := a.s, a.s.tile.keys
	whole := s.keys / bk
	lane := a.index(g * s.headSize)
	q := a.load("%q", a.qRef, zero, lane, a.query)
	r := running{
		a.broadcast(a.f32(-1e30), "f32", a.state), a.broadcast(a.f32(0), "f32", a.state), a.broadcast(a.f32(0), "f32", a.acc),
	}
	if whole > 0 {
		from, to, by := a.int32(0), a.int32(whole), a.int32(1)
		out := a.name()
		types := strings.Join([]string{a.state, a.state, a.acc}, ", ")
		a.line("%s:3 = \"stable_mosaic.scf.for\"(%s, %s, %s, %s, %s, %s) ({", out, from, to, by, r.max, r.sum, r.acc)
		in := running{fmt.Sprintf("%%m%d", g), fmt.Sprintf("%%l%d", g), fmt.Sprintf("%%a%d", g)}
		a.line("^bb0(%%j%d: i32, %s: %s, %s: %s, %s: %s):", g, in.max, a.state, in.sum, a.state, in.acc, a.acc)
		a.indent++
		row := a.same("arith.muli", overflow, "i32", fmt.Sprintf("%%j%d", g), a.int32(bk))
		row = a.op("tpu.assume_multiple", fmt.Sprintf("{multiple = %d : i32}", bk), []string{row}, []string{"i32"}, "i32")
		row = a.op("arith.index_cast", "", []string{row}, []string{"i32"}, "index")
		y := a.step(g, q, row, in, "")
		a.line("\"stable_mosaic.scf.yield\"(%s, %s, %s) : (%s) -> ()", y.max, y.sum, y.acc, types)
		a.indent--
		a.line("}) : (i32, i32, i32, %s) -> (%s)", types, types)
		r = running{out + "#0", out + "#1", out + "#2"}
	}
	if s.keys%bk != 0 {
		left := a.same("arith.subi", overflow, "i32", n, a.int32(whole*bk))
		r = a.step(g, q, a.index(whole*bk), r, left)
	}
	o := a.float("arith.divf", a.acc, r.acc, a.broadcast(r.sum, a.state, a.acc))
	t := vector(s.tile.queries, s.headSize, "f32")
	if s.tile.columns {
		o = a.op("tpu.transpose", "{permutation = array<i64: 1, 0>}", []string{o}, []string{a.acc}, t)
	}
	o = a.op("arith.truncf", "", []string{o}, []string{t}, a.query)
	a.store(o, a.query, "%o", a.qRef, zero, lane)
}

// step takes a block of keys from row on into the running state. left, if not empty, is how many of them there are.
func (a *attentionEmitter) step(g int, q, row string, in running, left string) running {
	k := a.load("%k", a.kRef, row, a.index(g*a.s.headSize), a.key)
	v := a.load("%v", a.kRef, row, a.index(g*a.s.headSize), a.key)
	x, y, tx, ty := q, k, a.query, a.key
	if a.s.tile.columns {
		x, y, tx, ty = k, q, a.key, a.query
	}
	s := a.matmul("[1], [1], [0], [0], [0, 0, 1, 0]", x, y, a.splat("0.0", a.score), tx, ty, a.score)
	if a.s.scale != 1 {
		s = a.float("arith.mulf", a.score, s, a.broadcast(a.f32(a.s.scale), "f32", a.score))
	}
	if left != "" {
		s = a.below(s, a.score, a.axis, left, a.broadcast(a.f32(-1e30), "f32", a.score))
		v = a.below(v, a.key, 0, left, a.broadcast(a.constant("0.0", "bf16"), "bf16", a.key))
	}
	top := a.float("arith.maximumf", a.state, in.max, a.lines("maximumf", s, "0xFF800000"))
	p := a.float("math.exp2", a.score, a.float("arith.subf", a.score, s, a.broadcast(top, a.state, a.score)))
	pb := a.op("arith.truncf", "", []string{p}, []string{a.score}, a.scoreB)
	old := a.float("math.exp2", a.state, a.float("arith.subf", a.state, in.max, top))
	sum := a.float("arith.addf", a.state, a.float("arith.mulf", a.state, old, in.sum), a.lines("add", p, "0.0"))
	zero := a.splat("0.0", a.acc)
	var pv string
	if a.s.tile.columns {
		pv = a.matmul("[0], [0], [1], [1], [0, 1, 1, 1]", v, pb, zero, a.key, a.scoreB, a.acc)
	} else {
		pv = a.matmul("[1], [0], [0], [1], [0, 0, 1, 1]", pb, v, zero, a.scoreB, a.key, a.acc)
	}
	acc := a.float("arith.addf", a.acc, a.float("arith.mulf", a.acc, a.broadcast(old, a.state, a.acc), in.acc), pv)
	return running{top, sum, acc}
}

func (a *attentionEmitter) matmul(dims, x, y, acc, tx, ty, t string) string {
	return a.op("tpu.matmul", "{dimension_numbers = #tpu.dot_dimension_numbers<"+dims+", [], []>, transpose_lhs = false, transpose_rhs = false}",
		[]string{x, y, acc}, []string{tx, ty, t}, t)
}

// lines combines scores over the keys to one number a query.
func (a *attentionEmitter) lines(kind, x, init string) string {
	r := a.reduce(kind, x, a.score, a.axis, init, a.along)
	return a.op("vector.shape_cast", "", []string{r}, []string{a.along}, a.state)
}

// below keeps x where the index along axis is under limit, and takes other elsewhere.
func (a *attentionEmitter) below(x, t string, axis int, limit, other string) string {
	ints, bools := withElement(t, "i32"), withElement(t, "i1")
	i := a.op("tpu.iota", fmt.Sprintf("{dimensions = array<i32: %d>}", axis), nil, nil, ints)
	c := a.op("arith.cmpi", "{predicate = 2 : i64}", []string{i, a.broadcast(limit, "i32", ints)}, []string{ints, ints}, bools)
	return a.op("arith.select", "", []string{c, x, other}, []string{bools, t, t}, t)
}

func ceil(a, b int) int { return (a + b - 1) / b }
