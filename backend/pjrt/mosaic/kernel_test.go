package mosaic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

func random(r *rand.Rand, element string, scale float64, rows, cols int) cell {
	c := cell{[]int{rows, cols}, element, make([]float64, rows*cols)}
	for i := range c.v {
		c.v[i] = rounded(element, r.NormFloat64()*scale)
	}
	return c
}

func unset(rows, cols int) cell {
	c := cell{[]int{rows, cols}, "bf16", make([]float64, rows*cols)}
	for i := range c.v {
		c.v[i] = math.NaN()
	}
	return c
}

// compare returns the relative error in the Frobenius norm; NaN counts as infinite.
func compare(got, want []float64) float64 {
	var e, n float64
	for i := range want {
		d := got[i] - want[i]
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		e, n = e+d*d, n+want[i]*want[i]
	}
	return math.Sqrt(e / n)
}

func attentionReference(q, k, v cell, heads, d int, scale float64) []float64 {
	n, m, w := q.shape[0], k.shape[0], heads*d
	out := make([]float64, n*w)
	p := make([]float64, m)
	for h := range heads {
		for i := range n {
			top, sum := math.Inf(-1), 0.0
			for j := range m {
				s := 0.0
				for c := range d {
					s += q.v[i*w+h*d+c] * k.v[j*w+h*d+c]
				}
				p[j] = s * scale
				top = max(top, p[j])
			}
			for j := range m {
				p[j] = math.Exp(p[j] - top)
				sum += p[j]
			}
			for c := range d {
				o := 0.0
				for j := range m {
					o += p[j] * v.v[j*w+h*d+c]
				}
				out[i*w+h*d+c] = o / sum
			}
		}
	}
	return out
}

// The text computes attention at lengths that fill no block, whatever lies outside the operands.
func TestAttention(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range []attentionShape{
		{heads: 1, headSize: 128, queries: 128, keys: 256, tile: tile{128, 128, false}},
		{heads: 2, headSize: 128, queries: 140, keys: 300, tile: tile{128, 128, false}},
		{heads: 2, headSize: 64, queries: 100, keys: 300, tile: tile{128, 256, false}},
		{heads: 4, headSize: 64, queries: 20, keys: 129, tile: tile{128, 128, false}},
		{heads: 1, headSize: 128, queries: 1, keys: 1, tile: tile{128, 128, false}},
		{heads: 1, headSize: 128, queries: 17, keys: 100, tile: tile{128, 128, false}},
	} {
		for _, columns := range []bool{false, true} {
			s := s
			s.tile.columns = columns
			t.Run(fmt.Sprintf("%dx%d_%d_%d_%v", s.heads, s.headSize, s.queries, s.keys, columns), func(t *testing.T) {
				w := s.heads * s.headSize
				q, k, v := random(r, "bf16", 3, s.queries, w), random(r, "bf16", 3, s.keys, w), random(r, "bf16", 1, s.keys, w)
				scale := 1 / math.Sqrt(float64(s.headSize))
				want := attentionReference(q, k, v, s.heads, s.headSize, scale)
				s.scale = scale * math.Log2E
				check := func(q cell, want []float64) {
					t.Helper()
					got := execute(t, attentionBody(s), []float64{float64(s.keys)}, []cell{q, k, v, unset(s.queries, w)})
					if e := compare(got.v, want); e > 2.5e-3 {
						t.Errorf("relative error %.3g", e)
					}
				}
				check(q, want)
				for i, x := range q.v { // scaled queries, as norm and rotation give them
					q.v[i] = rounded("bf16", x*s.scale)
				}
				want = attentionReference(q, k, v, s.heads, s.headSize, math.Ln2)
				s.scale = 1
				check(q, want)
			})
		}
	}
}

func normRopeReference(x, w, c, s cell, heads, d, offset int, eps, scale float64) []float64 {
	n, width := x.shape[0], heads*d
	out := make([]float64, n*width)
	for i := range n {
		for h := range heads {
			row := x.v[i*width+h*d:][:d]
			ms := 0.0
			for _, v := range row {
				ms += v * v
			}
			r := 1 / math.Sqrt(ms/float64(d)+eps)
			for p := range d / 2 {
				a, b := row[2*p]*r*w.v[2*p], row[2*p+1]*r*w.v[2*p+1]
				at := (i + offset) * d
				out[i*width+h*d+2*p] = (a*c.v[at+2*p] - b*s.v[at+2*p]) * scale
				out[i*width+h*d+2*p+1] = (b*c.v[at+2*p+1] + a*s.v[at+2*p+1]) * scale
			}
		}
	}
	return out
}

// The text normalises and rotates, also where its rows are not the first of the tables.
func TestNormRope(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const d = 128
	for _, s := range []normRopeShape{
		{heads: 2, rows: 256, block: 128, scale: 1},
		{heads: 3, rows: 300, block: 128, scale: 0.1275},
		{heads: 1, rows: 100, block: 128, offset: 2, scale: 1},
		{heads: 2, rows: 17, block: 32, scale: 1, roundFirst: true},
	} {
		t.Run(fmt.Sprintf("%d_%d_%d", s.heads, s.rows, s.offset), func(t *testing.T) {
			s.headSize, s.eps = d, 1e-6
			tableRows := s.rows + s.offset*s.block
			x, w := random(r, "bf16", 2, s.rows, s.heads*d), random(r, "bf16", 1, 1, d)
			c, sn := random(r, "f32", 1, tableRows, d), random(r, "f32", 1, tableRows, d)
			for i := 0; i < len(c.v); i += 2 {
				angle := r.Float64() * 6
				c.v[i], sn.v[i] = rounded("f32", math.Cos(angle)), rounded("f32", math.Sin(angle))
				c.v[i+1], sn.v[i+1] = c.v[i], sn.v[i]
			}
			want := normRopeReference(x, w, c, sn, s.heads, d, s.offset*s.block, s.eps, s.scale)
			for _, out := range []cell{unset(s.rows, s.heads*d), x} { // and in place
				got := execute(t, normRopeBody(s), nil, []cell{x, w, c, sn, out})
				if e := compare(got.v, want); e > 3e-3 {
					t.Errorf("relative error %.3g", e)
				}
			}
		})
	}
}

// Norm and rotation of a part leave the other parts as they are.
func TestNormRopePart(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	s := normRopeShape{heads: 2, headSize: 128, rows: 256, total: 400, start: 1, block: 128, offset: 1, eps: 1e-6, scale: 1}
	x, w := random(r, "bf16", 2, s.total, 256), random(r, "bf16", 1, 1, 128)
	c, sn := random(r, "f32", 1, s.total, 128), random(r, "f32", 1, s.total, 128)
	for i := 0; i < len(c.v); i += 2 {
		c.v[i+1], sn.v[i+1] = c.v[i], sn.v[i]
	}
	before := append([]float64(nil), x.v...)
	want := normRopeReference(x, w, c, sn, s.heads, 128, 0, s.eps, s.scale)
	got := execute(t, normRopeBody(s), nil, []cell{x, w, c, sn, x})
	const from, to = 128 * 256, 384 * 256
	if e := compare(got.v[from:to], want[from:to]); e > 3e-3 {
		t.Errorf("relative error %.3g", e)
	}
	for i, v := range got.v {
		if (i < from || i >= to) && v != before[i] {
			t.Fatalf("row %d was written", i/256)
		}
	}
	if k := normRopeKernel(s, s.total); k.result.Shape[0] != s.total || !k.operands[0].Equal(k.result) {
		t.Errorf("operand %s, result %s", k.operands[0], k.result)
	}
}

// The text normalises rows and modulates them.
func TestNormModulate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range []normModulateShape{{rows: 128, width: 256, block: 64, eps: 1e-6}, {rows: 100, width: 128, block: 64, eps: 1e-6}, {rows: 17, width: 384, block: 32, eps: 1e-6}} {
		x, scale, shift := random(r, "bf16", 3, s.rows, s.width), random(r, "bf16", 0.5, 1, s.width), random(r, "bf16", 1, 1, s.width)
		for i := range x.v {
			x.v[i] = rounded("bf16", x.v[i]+2)
		}
		got := execute(t, normModulateBody(s), nil, []cell{x, scale, shift, unset(s.rows, s.width)})
		want := make([]float64, len(x.v))
		for i := range s.rows {
			row := x.v[i*s.width:][:s.width]
			mean, variance := 0.0, 0.0
			for _, v := range row {
				mean += v / float64(s.width)
			}
			for _, v := range row {
				variance += (v - mean) * (v - mean) / float64(s.width)
			}
			for j, v := range row {
				want[i*s.width+j] = (v-mean)/math.Sqrt(variance+s.eps)*(1+scale.v[j]) + shift.v[j]
			}
		}
		if e := compare(got.v, want); e > 3e-3 {
			t.Errorf("%+v: relative error %.3g", s, e)
		}
	}
}

// Attention leaves the columns beside its own as they are.
func TestAttentionBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	s := attentionShape{heads: 2, headSize: 128, queries: 100, keys: 140, width: 640, scale: math.Log2E / 16, tile: tile{128, 128, true}}
	const w = 256
	q, k, v := random(r, "bf16", 3, s.queries, w), random(r, "bf16", 3, s.keys, w), random(r, "bf16", 1, s.keys, w)
	o := random(r, "bf16", 1, s.queries, s.width)
	before := append([]float64(nil), o.v...)
	got := execute(t, attentionBody(s), []float64{float64(s.keys)}, []cell{q, k, v, o})
	var own []float64
	for i, x := range got.v {
		if i%s.width < w {
			own = append(own, x)
		} else if x != before[i] {
			t.Fatalf("element %d of row %d was written", i%s.width, i/s.width)
		}
	}
	if e := compare(own, attentionReference(q, k, v, s.heads, s.headSize, 1./16)); e > 2.5e-3 {
		t.Errorf("relative error %.3g", e)
	}
	if kernel := attentionKernel(s); kernel.result.Shape[1] != s.width {
		t.Errorf("the result is %s", kernel.result)
	}
}

// A kernel is only called with operands of its own shapes: others would compile, and read what isn't there.
func TestOperandsFit(t *testing.T) {
	k := attentionKernel(attentionShape{heads: 2, headSize: 64, queries: 100, keys: 100, scale: 1, tile: tile{128, 128, false}})
	if len(k.operands) != 4 || !k.operands[1].Equal(typeOf(tensor.BF16, 100, 128)) || !k.result.Equal(k.operands[1]) {
		t.Errorf("operands %v, result %v", k.operands, k.result)
	}
	if _, err := k.write(nil); err == nil {
		t.Error("a call without operands was written")
	}
}

func TestTiles(t *testing.T) {
	for _, c := range chips {
		for _, n := range []int{1, 100, 512, 1357, 4096, 4608, 16896, 65536} {
			tl := c.tileFor(n, n)
			if tl.queries%lanes != 0 || tl.keys%lanes != 0 || tl.queries > c.attention.queries || tl.keys > c.attention.keys {
				t.Errorf("%s: %d tokens: %+v", c.Generation, n, tl)
			}
			if waste := ceil(n, tl.queries)*tl.queries - n; n > 4096 && waste > n/20 {
				t.Errorf("%s: %d tokens: %+v leaves %d rows empty", c.Generation, n, tl, waste)
			}
		}
	}
}

func TestParseTopology(t *testing.T) {
	for in, want := range map[string]string{
		"v6e:1x1": "v6e:1x1", "v5e:2x4": "v5e:2x4", "v7x:2x2x1": "tpu7x:2x2x1", "tpu7x:1x1x1": "tpu7x:1x1x1", "v5p:1x1": "v5p:1x1x1",
		"v6e": "", "v6e-8": "", "v8:1x1": "", ":1x1": "", "v6e:": "", "v6e:0x1": "", "v6e:1": "", "v6e:1x1x1x1": "", "v6e:01x1": "", "TPU v4:1x1": "",
	} {
		got, _, err := ParseTopology(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
