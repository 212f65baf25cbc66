package mosaic

// normRopeShape is everything that the text of a norm-and-rotation kernel depends on.
type normRopeShape struct {
	heads, headSize int
	rows            int
	total           int     // rows of x and of the result, if more than those that are worked on
	start           int     // blocks of x before the first row that is worked on
	block           int     // rows of a block
	offset          int     // blocks of the tables before the first row's
	eps             float64 // of the norm
	roundFirst      bool    // round to bf16 before the weight multiplies, see graph.RMSNormAttr
	scale           float64 // of the result
}

// normRopeRows is the number of rows of a block: 512 is no better, and 128 costs a tenth more.
const normRopeRows = 256

// normRopeBody writes the kernel for operands x (rows, heads·headSize) and w (1, headSize) in bfloat16, cos and sin (table
// rows, headSize) in f32, each pair's number twice; the result has x's shape. Each head of each row is normalised by its
// root mean square and rotated in pairs (x0, x1), (x2, x3) … The head size is 128: a rotation by a lane goes over the whole
// register.
func normRopeBody(s normRopeShape) string {
	e := newEmitter()
	d, width := s.headSize, s.heads*s.headSize
	refX, refW, refT := memref(s.block, width, "bf16"), memref(1, d, "bf16"), memref(s.block, d, "f32")
	x, xb, row := vector(s.block, d, "f32"), vector(s.block, d, "bf16"), vector(s.block, 1, "f32")
	w, wb, ints, bools := vector(1, d, "f32"), vector(1, d, "bf16"), withElement(x, "i32"), withElement(x, "i1")
	zero := e.index(0)
	extend := func(v, from, to string) string { return e.op("arith.extf", "", []string{v}, []string{from}, to) }

	one, back := e.int32(1), e.int32(d-1)
	lane := e.op("tpu.iota", "{dimensions = array<i32: 1>}", nil, nil, ints)
	odd := e.same("arith.andi", "", ints, lane, e.broadcast(one, "i32", ints))
	odd = e.op("arith.cmpi", "{predicate = 0 : i64}", []string{odd, e.broadcast(one, "i32", ints)}, []string{ints, ints}, bools)
	cos, sin := e.load("%c", refT, zero, zero, x), e.load("%s", refT, zero, zero, x)
	// (x0, x1) becomes (x0·cos - x1·sin, x1·cos + x0·sin): the sine's sign and the scale go into the tables, once a block.
	scale := e.broadcast(e.f32(s.scale), "f32", x)
	if s.scale != 1 {
		cos = e.float("arith.mulf", x, cos, scale)
	}
	sin = e.float("arith.mulf", x, sin, e.op("arith.select", "", []string{odd, scale, e.broadcast(e.f32(-s.scale), "f32", x)}, []string{bools, x, x}, x))
	weight := e.broadcast(extend(e.load("%w", refW, zero, zero, wb), wb, w), w, x)
	part, eps := e.broadcast(e.f32(1/float64(d)), "f32", row), e.broadcast(e.f32(s.eps), "f32", row)
	along := "vector<" + itoa(s.block) + "xf32>"

	// One text for all heads: written out for each, the compiler would take seconds for every kernel.
	from, to, by := e.int32(0), e.int32(s.heads), e.int32(1)
	e.line("\"stable_mosaic.scf.for\"(%s, %s, %s) ({", from, to, by)
	e.line("^bb0(%%j: i32):")
	e.indent++
	at := e.same("arith.muli", overflow, "i32", "%j", e.int32(d))
	at = e.op("tpu.assume_multiple", "{multiple = "+itoa(d)+" : i32}", []string{at}, []string{"i32"}, "i32")
	at = e.op("arith.index_cast", "", []string{at}, []string{"i32"}, "index")
	v := extend(e.load("%x", refX, zero, at, xb), xb, x)
	r := e.reduce("add", e.float("arith.mulf", x, v, v), x, 1, "0.0", along)
	r = e.op("vector.shape_cast", "", []string{r}, []string{along}, row)
	r = e.float("math.rsqrt", row, e.float("arith.addf", row, e.float("arith.mulf", row, r, part), eps))
	y := e.float("arith.mulf", x, v, e.broadcast(r, row, x))
	if s.roundFirst {
		y = extend(e.op("arith.truncf", "", []string{y}, []string{x}, xb), xb, x)
	}
	y = e.float("arith.mulf", x, y, weight)
	rotated := func(by string) string {
		return e.op("tpu.dynamic_rotate", "{dimension = 1 : si32}", []string{y, by}, []string{x, "i32"}, x)
	}
	z := e.op("arith.select", "", []string{odd, rotated(one), rotated(back)}, []string{bools, x, x}, x)
	o := e.float("arith.addf", x, e.float("arith.mulf", x, y, cos), e.float("arith.mulf", x, z, sin))
	e.store(e.op("arith.truncf", "", []string{o}, []string{x}, xb), xb, "%o", refX, zero, at)
	e.line("\"stable_mosaic.scf.yield\"() : () -> ()")
	e.indent--
	e.line("}) : (i32, i32, i32) -> ()")
	block := window{rows: s.block, lanes: width, element: "bf16", block: "%i, %z", offset: s.start}
	table := window{rows: s.block, lanes: d, element: "f32", block: "%i, %z", offset: s.offset}
	return e.module([]string{"i"}, []int{ceil(s.rows, s.block)}, nil, []string{"x", "w", "c", "s", "o"},
		[]window{block, {rows: 1, lanes: d, element: "bf16", block: "%z, %z"}, table, table, block})
}
