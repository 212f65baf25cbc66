package mosaic

import (
	"fmt"
	"math"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// scoreBytes is how much of the chip's own memory a block of scores may take inside a model's block: what is larger goes
// through the device's memory (measured on v6e: 10 MB stay, 28 MB do not).
const scoreBytes = 10 << 20

// groupOf returns how many heads and how many queries make a block of scores over all keys: about four heads, then as many
// queries as fit, a divisor of neither being needed for queries.
func groupOf(heads, queries, keys int) (group, chunk int) {
	group = 1
	for g := 2; g <= min(heads, 4); g++ {
		if heads%g == 0 && g*16*keys*4 <= scoreBytes {
			group = g
		}
	}
	chunk = scoreBytes / (4 * group * keys)
	if chunk >= queries {
		return group, queries
	}
	for _, multiple := range []int{128, 32, 16, 8, 1} {
		if chunk >= multiple {
			chunk = chunk / multiple * multiple
			break
		}
	}
	chunk = max(chunk, 1)
	// Prefer a divisor of the queries that is nearly as large: the last block then isn't a repetition.
	for c := chunk; c > chunk/2; c-- {
		if queries%c == 0 {
			return group, c
		}
	}
	return group, chunk
}

// writePlain writes attention of q (B, N, H, D), k and v (B, M, H, D) as a loop over groups of heads and, inside it, one
// over blocks of queries, so that no more scores exist at a time than fit the chip's own memory.
func (c Chip) writePlain(w *stablehlo.Writer, n *graph.Node, in []stablehlo.Value, scale float64) (stablehlo.Value, error) {
	s := n.Shape
	batch, queries, heads, d := s[0], s[1], s[2], s[3]
	keys := in[1].Shape[1]
	p := plainShape{batch * heads, queries, keys, d, 0, 0, scale / math.Log2E}
	p.group, p.chunk = groupOf(p.heads, queries, keys)
	headsFirst := func(x stablehlo.Value) stablehlo.Value { // (B, N, H, D) → (B·H, N, D)
		return w.Reshape(w.Transpose(x, 0, 2, 1, 3), batch*heads, x.Shape[1], d)
	}
	o := w.Function(p.name(), p.text(), typeOf(tensor.BF16, p.heads, queries, d), headsFirst(in[0]), headsFirst(in[1]), headsFirst(in[2]))
	return w.Transpose(w.Reshape(o, batch, heads, queries, d), 0, 2, 1, 3), nil
}

// plainShape is everything that the text of plain attention depends on.
type plainShape struct {
	heads, queries, keys, size int
	group, chunk               int
	scale                      float64
}

func (p plainShape) name() string {
	return fmt.Sprintf("attention_%dx%dx%dx%d_%016x", p.heads, p.queries, p.keys, p.size, math.Float64bits(p.scale))
}

// text is the function. The last block of queries begins early enough to be whole.
func (p plainShape) text() string {
	t := func(d tensor.DType, shape ...int) string { return stablehlo.TypeText(typeOf(d, shape...)) }
	i32, g, c, d := t(tensor.I32), p.group, p.chunk, p.size
	q, kv := t(tensor.BF16, p.heads, p.queries, d), t(tensor.BF16, p.heads, p.keys, d)
	gq, gk := t(tensor.BF16, g, p.queries, d), t(tensor.BF16, g, p.keys, d)
	block, scores, scoresB := t(tensor.BF16, g, c, d), t(tensor.F32, g, c, p.keys), t(tensor.BF16, g, c, p.keys)
	line, acc := t(tensor.F32, g, c), t(tensor.F32, g, c, d)
	var b []byte
	add := func(format string, args ...any) { b = fmt.Appendf(b, format+"\n", args...) }
	cut := func(r, x, i, from string, rows int, to string, inner bool) {
		at := i + ", %zero, %zero"
		if inner {
			at = "%zero, " + i + ", %zero"
		}
		add("      %s = stablehlo.dynamic_slice %s, %s, sizes = [%d, %d, %d] : (%s, %s, %s, %s) -> %s", r, x, at, g, rows, d, from, i32, i32, i32, to)
	}
	add("func.func private @%s(%%q: %s, %%k: %s, %%v: %s) -> %s {", p.name(), q, kv, kv, q)
	for _, v := range []struct {
		name string
		v    int
	}{{"zero", 0}, {"one", 1}, {"groups", p.heads / g}, {"blocks", ceil(p.queries, c)}, {"group", g}, {"chunk", c}, {"last", p.queries - c}} {
		add("  %%%s = stablehlo.constant dense<%d> : %s", v.name, v.v, i32)
	}
	add("  %%none = stablehlo.constant dense<0.0> : tensor<f32>")
	add("  %%least = stablehlo.constant dense<0xFF800000> : tensor<f32>")
	add("  %%scale = stablehlo.constant dense<%s> : %s", floatText(p.scale), scores)
	add("  %%o0 = stablehlo.constant dense<0.0> : %s", q)
	add("  %%r:2 = stablehlo.while(%%i = %%zero, %%o = %%o0) : %s, %s", i32, q)
	add("  cond {")
	add("    %%p = stablehlo.compare LT, %%i, %%groups : (%s, %s) -> tensor<i1>", i32, i32)
	add("    stablehlo.return %%p : tensor<i1>")
	add("  } do {")
	add("      %%h = stablehlo.multiply %%i, %%group : %s", i32)
	cut("%qg", "%q", "%h", q, p.queries, gq, false)
	cut("%kg", "%k", "%h", kv, p.keys, gk, false)
	cut("%vg", "%v", "%h", kv, p.keys, gk, false)
	add("      %%u0 = stablehlo.constant dense<0.0> : %s", gq)
	add("      %%s:2 = stablehlo.while(%%j = %%zero, %%u = %%u0) : %s, %s", i32, gq)
	add("      cond {")
	add("        %%p = stablehlo.compare LT, %%j, %%blocks : (%s, %s) -> tensor<i1>", i32, i32)
	add("        stablehlo.return %%p : tensor<i1>")
	add("      } do {")
	add("      %%t0 = stablehlo.multiply %%j, %%chunk : %s", i32)
	add("      %%t = stablehlo.minimum %%t0, %%last : %s", i32)
	cut("%qc", "%qg", "%t", gq, c, block, true)
	add("      %%l = stablehlo.dot_general %%qc, %%kg, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (%s, %s) -> %s", block, gk, scores)
	add("      %%m = stablehlo.reduce(%%l init: %%least) applies stablehlo.maximum across dimensions = [2] : (%s, tensor<f32>) -> %s", scores, line)
	add("      %%mb = stablehlo.broadcast_in_dim %%m, dims = [0, 1] : (%s) -> %s", line, scores)
	add("      %%d = stablehlo.subtract %%l, %%mb : %s", scores)
	add("      %%e = stablehlo.multiply %%d, %%scale : %s", scores)
	add("      %%x = stablehlo.exponential %%e : %s", scores)
	add("      %%n = stablehlo.reduce(%%x init: %%none) applies stablehlo.add across dimensions = [2] : (%s, tensor<f32>) -> %s", scores, line)
	add("      %%xb = stablehlo.convert %%x : (%s) -> %s", scores, scoresB)
	add("      %%a = stablehlo.dot_general %%xb, %%vg, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (%s, %s) -> %s", scoresB, gk, acc)
	add("      %%nb = stablehlo.broadcast_in_dim %%n, dims = [0, 1] : (%s) -> %s", line, acc)
	add("      %%y = stablehlo.divide %%a, %%nb : %s", acc)
	add("      %%yb = stablehlo.convert %%y : (%s) -> %s", acc, block)
	add("      %%u2 = stablehlo.dynamic_update_slice %%u, %%yb, %%zero, %%t, %%zero : (%s, %s, %s, %s, %s) -> %s", gq, block, i32, i32, i32, gq)
	add("      %%j2 = stablehlo.add %%j, %%one : %s", i32)
	add("      stablehlo.return %%j2, %%u2 : %s, %s", i32, gq)
	add("      }")
	add("      %%o2 = stablehlo.dynamic_update_slice %%o, %%s#1, %%h, %%zero, %%zero : (%s, %s, %s, %s, %s) -> %s", q, gq, i32, i32, i32, q)
	add("      %%i2 = stablehlo.add %%i, %%one : %s", i32)
	add("      stablehlo.return %%i2, %%o2 : %s, %s", i32, q)
	add("  }")
	add("  return %%r#1 : %s", q)
	add("}")
	return string(b)
}
