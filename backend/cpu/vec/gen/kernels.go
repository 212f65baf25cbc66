package main

// The mathematics of every kernel, once for all targets.

const signBit = 0x80000000

func (b *builder) abs(x val) val { return b.and(x, b.bits(0x7fffffff)) }

// expm1Core splits x = n·ln 2 + r and returns n and exp(r)-1. x must be within ±104.
// Polynomial: Cephes expf (S. Moshier), |r| ≤ ln 2 / 2.
func (b *builder) expm1Core(x val) (n, q val) {
	n = b.round(0, b.mul(x, b.c(1.44269504088896341)))
	r := b.fnma(n, b.c(0.693359375), x)
	r = b.fnma(n, b.c(-2.12194440e-4), r)
	p := b.c(1.9875691500e-4)
	for _, k := range []float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		p = b.fma(p, r, b.c(k))
	}
	return n, b.fma(p, b.mul(r, r), r)
}

// exp is e^x: 0 below -104, +Inf above 88.73, NaN for NaN.
func (b *builder) exp(x val) val {
	x = b.gt(b.c(-104), x)
	x = b.lt(b.c(89), x)
	n, q := b.expm1Core(x)
	return b.scale(b.add(q, b.c(1)), n)
}

// expNeg is e^x for x known not to be above 0.
func (b *builder) expNeg(x val) val {
	n, q := b.expm1Core(b.gt(b.c(-104), x))
	return b.scale(b.add(q, b.c(1)), n)
}

// tanh is m/(m+2) with m = exp(2|x|)-1, which keeps its precision at zero.
func (b *builder) tanh(x val) val {
	a := b.lt(b.c(9.5), b.abs(x))
	n, q := b.expm1Core(b.add(a, a))
	s := b.iadd(b.shl(23, b.toInt(n)), b.c(1)) // 2^n
	m := b.fma(q, s, b.sub(s, b.c(1)))
	t := b.div(m, b.add(m, b.c(2)))
	return b.or(t, b.and(x, b.bits(signBit)))
}

// erf follows N. Juffa's erff: a polynomial below 0.9277, 1-exp(polynomial) above.
func (b *builder) erf(x val) val {
	t := b.abs(x)
	t = b.lt(b.c(4), t) // erf(4) rounds to 1
	s := b.mul(t, t)
	r := b.fma(b.c(-0x1.220000p-16), t, b.c(0x1.91cfb2p-12))
	u := b.fma(b.c(-0x1.fd1438p-9), t, b.c(0x1.8d6342p-6))
	r = b.fma(r, s, u)
	r = b.fma(r, t, b.c(-0x1.b55cb8p-4))
	r = b.fma(r, t, b.c(-0x1.450aa0p-1))
	r = b.fma(r, t, b.c(-0x1.079d0cp-3))
	r = b.fma(r, t, b.xor(t, b.bits(signBit)))
	n, q := b.expm1Core(r)
	// 1-exp(r) = (1-2^n) - q·2^n
	w := b.iadd(b.shl(23, b.toInt(n)), b.c(1))
	big := b.fnma(q, w, b.sub(b.c(1), w))
	p := b.c(-0x1.38e000p-11)
	for _, k := range []float32{0x1.471a58p-8, -0x1.b691b2p-6, 0x1.ce1c44p-4, -0x1.812700p-2, 0x1.06eba8p-3} {
		p = b.fma(p, s, b.c(k))
	}
	small := b.fma(p, t, t)
	v := b.sel(b.cmp(cmpLT, b.c(0.927734375), t), big, small)
	return b.or(v, b.and(x, b.bits(signBit)))
}

// sigmoid is 1/(1+e) or e/(1+e) with e = exp(-|x|): no overflow, full precision on both sides.
func (b *builder) sigmoid(x val) val {
	e := b.expNeg(b.or(x, b.bits(signBit)))
	s := b.div(b.c(1), b.add(e, b.c(1)))
	return b.sel(b.cmp(cmpLT, x, b.c(0)), b.mul(e, s), s)
}

// overExp is x/(1+exp(-z)).
func (b *builder) overExp(x, z val) val {
	return b.div(x, b.add(b.exp(b.xor(z, b.bits(signBit))), b.c(1)))
}

// geluTanh is x·σ(2u), which equals x/2·(1+tanh u), u = √(2/π)(x + 0.044715x³).
func (b *builder) geluTanh(x val) val {
	t := b.fma(b.mul(x, x), b.c(2*0.79788456080286535588*0.044715), b.c(2*0.79788456080286535588))
	return b.overExp(x, b.mul(x, t))
}

func (b *builder) gelu(x val) val {
	e := b.erf(b.mul(x, b.c(0.70710678118654752440)))
	return b.mul(b.mul(x, b.c(0.5)), b.add(e, b.c(1)))
}

// bf16Bits leaves the rounded bfloat16 in the upper half of the word; the lower half is not cleared.
func (b *builder) bf16Bits(x val) val {
	lsb := b.and(b.shr(16, x), b.bits(1))
	r := b.iadd(b.iadd(x, b.bits(0x7fff)), lsb)
	return b.sel(b.cmp(cmpUnord, x, x), b.or(x, b.bits(0x400000)), r)
}

func (b *builder) bf16(x val) val { return b.and(b.bf16Bits(x), b.bits(0xffff0000)) }

func in(name string) stream  { return stream{name: name, elem: "f32"} }
func out(name string) stream { return stream{name: name, elem: "f32", out: true} }

func unary(name, doc string, f func(b *builder, x val) val) kernel {
	return kernel{name: name, doc: doc, streams: []stream{out("dst"), in("x")},
		body: func(b *builder) { b.store("dst", f(b, b.load("x"))) }}
}

func binary(name, doc string, f func(b *builder, x, y val) val) kernel {
	return kernel{name: name, doc: doc, streams: []stream{out("dst"), in("x"), in("y")},
		body: func(b *builder) { b.store("dst", f(b, b.load("x"), b.load("y"))) }}
}

func comparison(name, doc string, pred int, yes, no float32) kernel {
	return binary(name, doc, func(b *builder, x, y val) val { return b.sel(b.cmp(pred, x, y), b.c(yes), b.c(no)) })
}

// pairs is a kernel on words of two bfloat16, each computed in float32 and rounded to bfloat16: twice the elements of a
// vector, and no conversions. f gets one half of each operand.
func pairs(name, doc string, streams []string, f func(b *builder, x []val) val) kernel {
	k := kernel{name: name, doc: doc + ", of pairs of bfloat16", streams: []stream{out("dst")}}
	for _, s := range streams {
		k.streams = append(k.streams, in(s))
	}
	k.body = func(b *builder) {
		var lo, hi []val
		for _, s := range streams {
			w := b.load(s)
			lo, hi = append(lo, b.shl(16, w)), append(hi, b.and(w, b.bits(0xffff0000)))
		}
		l := b.shr(16, b.bf16Bits(f(b, lo)))
		b.store("dst", b.or(l, b.bf16(f(b, hi))))
	}
	return k
}

func withScalar(name, doc string, f func(b *builder, x, s val) val) kernel {
	return kernel{name: name, doc: doc, streams: []stream{out("dst"), in("x")}, scalars: []string{"s"},
		body: func(b *builder) { b.store("dst", f(b, b.load("x"), b.scalar("s"))) }}
}

func reduction(name, doc, kind string, streams []stream, scalars []string, f func(b *builder)) kernel {
	return kernel{name: name, doc: doc, reduce: kind, streams: streams, scalars: scalars, body: f}
}

// rounded makes the f32, bf16 and f16 flavours of a kernel; f gets the rounding of intermediate values.
func rounded(k kernel, f func(b *builder, r func(val) val)) []kernel {
	var ks []kernel
	for _, d := range []string{"", "BF16", "F16"} {
		k := k
		k.name += d
		k.body = func(b *builder) {
			f(b, func(v val) val {
				switch d {
				case "BF16":
					return b.bf16(v)
				case "F16":
					return b.f16(v)
				}
				return v
			})
		}
		ks = append(ks, k)
	}
	return ks
}

func kernels() []kernel {
	ks := []kernel{
		unary("neg", "-x", func(b *builder, x val) val { return b.xor(x, b.bits(signBit)) }),
		unary("abs", "|x|", (*builder).abs),
		unary("exp", "exp(x)", (*builder).exp),
		unary("sqrt", "√x", (*builder).sqrt),
		unary("rsqrt", "1/√x", func(b *builder, x val) val { return b.div(b.c(1), b.sqrt(x)) }),
		unary("tanh", "tanh(x)", (*builder).tanh),
		unary("erf", "erf(x)", (*builder).erf),
		unary("sigmoid", "1/(1+exp(-x))", (*builder).sigmoid),
		unary("silu", "x/(1+exp(-x))", func(b *builder, x val) val { return b.overExp(x, x) }),
		unary("gelu", "x/2·(1+erf(x/√2))", (*builder).gelu),
		unary("geluTanh", "the tanh form of gelu", (*builder).geluTanh),
		unary("quickGelu", "x/(1+exp(-1.702x))", func(b *builder, x val) val { return b.overExp(x, b.mul(x, b.c(1.702))) }),
		unary("floor", "⌊x⌋", func(b *builder, x val) val { return b.round(1, x) }),
		unary("ceil", "⌈x⌉", func(b *builder, x val) val { return b.round(2, x) }),
		unary("roundBF16", "x rounded to bfloat16", (*builder).bf16),
		unary("roundF16", "x rounded to binary16", (*builder).f16),

		binary("add", "x+y", (*builder).add),
		binary("sub", "x-y", (*builder).sub),
		binary("mul", "x·y", (*builder).mul),
		binary("div", "x/y", (*builder).div),
		binary("max", "the larger, NaN if either is", (*builder).nanmax),
		binary("min", "the smaller, NaN if either is", (*builder).nanmin),

		comparison("equal", "1 where x = y, else 0", cmpEQ, 1, 0),
		comparison("notEqual", "0 where x = y, else 1", cmpEQ, 0, 1),
		comparison("below", "1 where x < y, else 0", cmpLT, 1, 0),
		comparison("atMost", "1 where x ≤ y, else 0", cmpLE, 1, 0),
		{name: "choose", doc: "y where x = 0, else z", streams: []stream{out("dst"), in("x"), in("y"), in("z")},
			body: func(b *builder) {
				x, y, z := b.load("x"), b.load("y"), b.load("z")
				b.store("dst", b.sel(b.cmp(cmpEQ, x, b.c(0)), y, z))
			}},

		pairs("addPairs", "x+y", []string{"x", "y"}, func(b *builder, x []val) val { return b.add(x[0], x[1]) }),
		pairs("subPairs", "x-y", []string{"x", "y"}, func(b *builder, x []val) val { return b.sub(x[0], x[1]) }),
		pairs("mulPairs", "x·y", []string{"x", "y"}, func(b *builder, x []val) val { return b.mul(x[0], x[1]) }),
		pairs("modulatePairs", "x·(1+scale)+shift, rounded after each step", []string{"x", "scale", "shift"}, func(b *builder, x []val) val {
			return b.add(b.bf16(b.mul(x[0], b.bf16(b.add(x[1], b.c(1))))), x[2])
		}),

		withScalar("addScalar", "x+s", (*builder).add),
		withScalar("mulScalar", "x·s", (*builder).mul),
		withScalar("divScalar", "x/s", (*builder).div),
		withScalar("scalarSub", "s-x", func(b *builder, x, s val) val { return b.sub(s, x) }),
		withScalar("scalarDiv", "s/x", func(b *builder, x, s val) val { return b.div(s, x) }),
		withScalar("maxScalar", "the larger of x and s, NaN if either is", (*builder).nanmax),
		withScalar("minScalar", "the smaller of x and s, NaN if either is", (*builder).nanmin),

		{name: "mulAdd", doc: "x·y rounded, +z rounded", streams: []stream{out("dst"), in("x"), in("y"), in("z")},
			body: func(b *builder) { b.store("dst", b.add(b.mul(b.load("x"), b.load("y")), b.load("z"))) }},
		{name: "fma", doc: "x·y+z rounded once", streams: []stream{out("dst"), in("x"), in("y"), in("z")},
			body: func(b *builder) { b.store("dst", b.fma(b.load("x"), b.load("y"), b.load("z"))) }},

		{name: "fromBF16", doc: "bfloat16 to float32", streams: []stream{out("dst"), {name: "x", elem: "bf16"}},
			body: func(b *builder) { b.store("dst", b.load("x")) }},
		{name: "toBF16", doc: "float32 to bfloat16", streams: []stream{{name: "dst", elem: "bf16", out: true}, in("x")},
			body: func(b *builder) { b.store("dst", b.bf16Bits(b.load("x"))) }},
		{name: "fromF16", doc: "binary16 to float32", streams: []stream{out("dst"), {name: "x", elem: "f16"}},
			body: func(b *builder) { b.store("dst", b.load("x")) }},
		{name: "toF16", doc: "float32 to binary16", streams: []stream{{name: "dst", elem: "f16", out: true}, in("x")},
			body: func(b *builder) { b.store("dst", b.load("x")) }},

		{name: "addToBF16", doc: "x+y to bfloat16",
			streams: []stream{{name: "dst", elem: "bf16", out: true}, in("x"), {name: "y", elem: "bf16"}},
			body:    func(b *builder) { b.store("dst", b.bf16Bits(b.add(b.load("x"), b.load("y")))) }},
		{name: "addAddToBF16", doc: "x+y rounded, +z, to bfloat16",
			streams: []stream{{name: "dst", elem: "bf16", out: true}, in("x"), {name: "y", elem: "bf16"}, {name: "z", elem: "bf16"}},
			body: func(b *builder) {
				b.store("dst", b.bf16Bits(b.add(b.bf16(b.add(b.load("x"), b.load("y"))), b.load("z"))))
			}},
		{name: "addMulAddToBF16", doc: "(x+y)·gate+z to bfloat16, rounded after each step",
			streams: []stream{{name: "dst", elem: "bf16", out: true}, in("x"), {name: "y", elem: "bf16"}, {name: "gate", elem: "bf16"}, {name: "z", elem: "bf16"}},
			body: func(b *builder) {
				gated := b.bf16(b.mul(b.bf16(b.add(b.load("x"), b.load("y"))), b.load("gate")))
				b.store("dst", b.bf16Bits(b.add(gated, b.load("z"))))
			}},
		{name: "addGeluTanhToBF16", doc: "the tanh form of gelu of x+y to bfloat16, rounded before",
			streams: []stream{{name: "dst", elem: "bf16", out: true}, in("x"), {name: "y", elem: "bf16"}},
			body: func(b *builder) {
				b.store("dst", b.bf16Bits(b.geluTanh(b.bf16(b.add(b.load("x"), b.load("y"))))))
			}},
		{name: "addQuickGeluToBF16", doc: "v·sigmoid(1.702v) of v = x+y to bfloat16, rounded after each step",
			streams: []stream{{name: "dst", elem: "bf16", out: true}, in("x"), {name: "y", elem: "bf16"}},
			body: func(b *builder) {
				v := b.bf16(b.add(b.load("x"), b.load("y")))
				b.store("dst", b.bf16Bits(b.mul(v, b.bf16(b.sigmoid(b.bf16(b.mul(v, b.c(1.702))))))))
			}},

		reduction("sum", "Σx", "sum", []stream{in("x")}, nil,
			func(b *builder) { b.setAcc(b.add(b.acc(), b.load("x"))) }),
		reduction("sumSquares", "Σx²", "sum", []stream{in("x")}, nil,
			func(b *builder) { x := b.load("x"); b.setAcc(b.fma(x, x, b.acc())) }),
		reduction("sumSquaresFrom", "Σ(x-s)²", "sum", []stream{in("x")}, []string{"s"},
			func(b *builder) { d := b.sub(b.load("x"), b.scalar("s")); b.setAcc(b.fma(d, d, b.acc())) }),
		reduction("dot", "Σx·y", "sum", []stream{in("x"), in("y")}, nil,
			func(b *builder) { b.setAcc(b.fma(b.load("x"), b.load("y"), b.acc())) }),
		reduction("rowMax", "the largest x, NaN if any is", "max", []stream{in("x")}, nil,
			func(b *builder) { b.setAcc(b.nanmax(b.acc(), b.load("x"))) }),
		reduction("expSum", "exp(x-s), and its sum; s is not below any x", "sum", []stream{out("dst"), in("x")}, []string{"s"},
			func(b *builder) {
				e := b.expNeg(b.sub(b.load("x"), b.scalar("s")))
				b.store("dst", e)
				b.setAcc(b.add(b.acc(), e))
			}),

		{name: "normalize", doc: "(x-mean)·rstd", streams: []stream{out("dst"), in("x")}, scalars: []string{"mean", "rstd"},
			body: func(b *builder) {
				b.store("dst", b.mul(b.sub(b.load("x"), b.scalar("mean")), b.scalar("rstd")))
			}},
		{name: "normalizeWeight", doc: "(x-mean)·rstd·w", streams: []stream{out("dst"), in("x"), in("w")}, scalars: []string{"mean", "rstd"},
			body: func(b *builder) {
				b.store("dst", b.mul(b.mul(b.sub(b.load("x"), b.scalar("mean")), b.scalar("rstd")), b.load("w")))
			}},
		{name: "normalizeAffine", doc: "(x-mean)·rstd·w+c", streams: []stream{out("dst"), in("x"), in("w"), in("c")}, scalars: []string{"mean", "rstd"},
			body: func(b *builder) {
				b.store("dst", b.fma(b.mul(b.sub(b.load("x"), b.scalar("mean")), b.scalar("rstd")), b.load("w"), b.load("c")))
			}},
		{name: "rope", doc: "x·cos + (-x₁, x₀, -x₃, x₂ …)·sin; n is even", streams: []stream{out("dst"), in("x"), in("cos"), in("sin")},
			body: func(b *builder) {
				x := b.load("x")
				r := b.xor(b.swap(x), b.alternate())
				b.store("dst", b.add(b.mul(x, b.load("cos")), b.mul(r, b.load("sin"))))
			}},
		{name: "ropeHalf", doc: "x·cos - y·sin and y·cos2 + x·sin2",
			streams: []stream{out("dst"), out("dst2"), in("x"), in("y"), in("cos"), in("sin"), in("cos2"), in("sin2")},
			body: func(b *builder) {
				x, y := b.load("x"), b.load("y")
				u := b.sub(b.mul(x, b.load("cos")), b.mul(y, b.load("sin")))
				v := b.add(b.mul(y, b.load("cos2")), b.mul(x, b.load("sin2")))
				b.store("dst", u)
				b.store("dst2", v)
			}},
	}
	ks = append(ks, rounded(kernel{name: "scaleWeight", doc: "x·s·w, rounded before w", streams: []stream{out("dst"), in("x"), in("w")}, scalars: []string{"s"}},
		func(b *builder, r func(val) val) {
			b.store("dst", b.mul(r(b.mul(b.load("x"), b.scalar("s"))), b.load("w")))
		})...)
	ks = append(ks, rounded(kernel{name: "modulate", doc: "x·(1+scale)+shift, rounded after each step but the last",
		streams: []stream{out("dst"), in("x"), in("scale"), in("shift")}},
		func(b *builder, r func(val) val) {
			m := r(b.add(b.load("scale"), b.c(1)))
			b.store("dst", b.add(r(b.mul(b.load("x"), m)), b.load("shift")))
		})...)
	for _, d := range []string{"f32", "bf16"} {
		ks = append(ks, groupKernels(d)...)
	}
	return ks
}

// groupKernels are the two passes of a group normalisation, over rows of channels of the given type.
func groupKernels(elem string) []kernel {
	name := func(s string) string {
		if elem == "bf16" {
			s += "BF16"
		}
		return s
	}
	row := func(name string) stream { return stream{name: name, elem: elem, ahead: 2048} }
	rows := []string{"x0", "x1", "x2", "x3"}
	moments := kernel{name: name("moments"), doc: "adds x-c to sum and (x-c)² to squares, for four rows x",
		streams: []stream{out("sum"), out("squares"), in("c")},
		body: func(b *builder) {
			sum, squares, c := b.load("sum"), b.load("squares"), b.load("c")
			for _, r := range rows {
				d := b.sub(b.load(r), c)
				sum, squares = b.add(sum, d), b.fma(d, d, squares)
			}
			b.store("sum", sum)
			b.store("squares", squares)
		}}
	for _, r := range rows {
		moments.streams = append(moments.streams, row(r))
	}
	ks := []kernel{moments}
	for _, silu := range []bool{false, true} {
		k := kernel{name: name("centred"), doc: "(x-mean)·scale+offset",
			streams: []stream{{name: "dst", elem: elem, out: true}, row("x"), in("mean"), in("scale"), in("offset")}}
		if silu {
			k.name, k.doc = name("centredSilu"), "silu of "+k.doc+", rounded before"
		}
		k.body = func(b *builder) {
			v := b.fma(b.sub(b.load("x"), b.load("mean")), b.load("scale"), b.load("offset"))
			if silu && elem == "bf16" {
				v = b.bf16(v)
			}
			if silu {
				v = b.overExp(v, v)
			}
			if elem == "bf16" {
				v = b.bf16Bits(v)
			}
			b.store("dst", v)
		}
		ks = append(ks, k)
	}
	return ks
}
