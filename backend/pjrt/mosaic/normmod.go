package mosaic

import "fmt"

// normModulateShape is everything that the text of a norm-and-modulation kernel depends on.
type normModulateShape struct {
	rows, width int
	block       int // rows of a block
	eps         float64
}

// normModulateChunk is the number of rows that are worked on at a time: what lies in registers.
const normModulateChunk = 16

// normModulateBody writes the kernel for operands x (rows, width), scale and shift (1, width) in bfloat16; the result has
// x's shape: (x - mean)/√(variance + eps)·(1 + scale) + shift of each row, in f32, rounded once. XLA would go over x three
// times, and repeat the last in every product that takes the result.
func normModulateBody(s normModulateShape) string {
	e := newEmitter()
	chunk, d := normModulateChunk, s.width
	ref, refRow := memref(s.block, d, "bf16"), memref(1, d, "bf16")
	x, xb, row := vector(chunk, d, "f32"), vector(chunk, d, "bf16"), vector(chunk, 1, "f32")
	line, lineB, along := vector(1, d, "f32"), vector(1, d, "bf16"), fmt.Sprintf("vector<%dxf32>", chunk)
	zero := e.index(0)
	extend := func(v, from, to string) string { return e.op("arith.extf", "", []string{v}, []string{from}, to) }
	scale := extend(e.load("%c", refRow, zero, zero, lineB), lineB, line)
	scale = e.float("arith.addf", line, scale, e.splat("1.0", line))
	shift := extend(e.load("%s", refRow, zero, zero, lineB), lineB, line)
	part := e.broadcast(e.f32(1/float64(d)), "f32", row)
	eps := e.broadcast(e.f32(s.eps), "f32", row)
	mean := func(v string) string {
		r := e.reduce("add", v, x, 1, "0.0", along)
		return e.float("arith.mulf", row, e.op("vector.shape_cast", "", []string{r}, []string{along}, row), part)
	}
	from, to, by := e.int32(0), e.int32(s.block/chunk), e.int32(1)
	e.line("\"stable_mosaic.scf.for\"(%s, %s, %s) ({", from, to, by)
	e.line("^bb0(%%j: i32):")
	e.indent++
	at := e.same("arith.muli", overflow, "i32", "%j", e.int32(chunk))
	at = e.op("tpu.assume_multiple", fmt.Sprintf("{multiple = %d : i32}", chunk), []string{at}, []string{"i32"}, "i32")
	at = e.op("arith.index_cast", "", []string{at}, []string{"i32"}, "index")
	v := extend(e.load("%x", ref, at, zero, xb), xb, x)
	v = e.float("arith.subf", x, v, e.broadcast(mean(v), row, x))
	r := e.float("math.rsqrt", row, e.float("arith.addf", row, mean(e.float("arith.mulf", x, v, v)), eps))
	y := e.float("arith.mulf", x, e.float("arith.mulf", x, v, e.broadcast(r, row, x)), e.broadcast(scale, line, x))
	y = e.float("arith.addf", x, y, e.broadcast(shift, line, x))
	e.store(e.op("arith.truncf", "", []string{y}, []string{x}, xb), xb, "%o", ref, at, zero)
	e.line("\"stable_mosaic.scf.yield\"() : () -> ()")
	e.indent--
	e.line("}) : (i32, i32, i32) -> ()")
	block := window{rows: s.block, lanes: d, element: "bf16", block: "%i, %z"}
	one := window{rows: 1, lanes: d, element: "bf16", block: "%z, %z"}
	return e.module([]string{"i"}, []int{ceil(s.rows, s.block)}, nil, []string{"x", "c", "s", "o"}, []window{block, one, one, block})
}
