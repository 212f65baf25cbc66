package attention

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// value is a (B, N, H, D) operand: the numbers as they are after rounding to the dtype, and their bytes.
type value struct {
	x    []float32
	data []byte
}

func encode(d tensor.DType, x []float32) value {
	v := value{x: make([]float32, len(x)), data: make([]byte, len(x)*d.Size())}
	for i, f := range x {
		v.x[i] = tensor.RoundTo(d, f)
		switch d {
		case tensor.BF16:
			halves(v.data)[i] = tensor.Float32ToBF16(f)
		case tensor.F16:
			halves(v.data)[i] = tensor.Float32ToF16(f)
		default:
			floats(v.data)[i] = f
		}
	}
	return v
}

func decode(d tensor.DType, b []byte) []float32 {
	out := make([]float32, len(b)/d.Size())
	for i := range out {
		switch d {
		case tensor.BF16:
			out[i] = tensor.BF16ToFloat32(halves(b)[i])
		case tensor.F16:
			out[i] = tensor.F16ToFloat32(halves(b)[i])
		default:
			out[i] = floats(b)[i]
		}
	}
	return out
}

// problem is one test: dense operands, and the reference in float64.
type problem struct {
	Problem
	q, k, v value
}

func newProblem(d tensor.DType, b, nq, nk, h, hkv, size int, seed uint64) *problem {
	r := rand.New(rand.NewPCG(seed, uint64(nq)<<32|uint64(nk)))
	normal := func(n int) value {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return encode(d, x)
	}
	p := &problem{q: normal(b * nq * h * size), k: normal(b * nk * hkv * size), v: normal(b * nk * hkv * size)}
	p.Problem = Problem{B: b, Nq: nq, Nk: nk, H: h, Hkv: hkv, D: size, DType: d,
		Q: Dense(p.q.data, nq, h, size), K: Dense(p.k.data, nk, hkv, size), V: Dense(p.v.data, nk, hkv, size),
		Out: Dense(make([]byte, b*nq*h*size*d.Size()), nq, h, size)}
	return p
}

// want computes p in float64, from its definition.
func (p *problem) want() []float64 {
	scale := float64(p.Scale)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(p.D))
	}
	out := make([]float64, p.B*p.Nq*p.H*p.D)
	score := make([]float64, p.Nk)
	for b := range p.B {
		for h := range p.H {
			g := h / (p.H / p.Hkv)
			for i := range p.Nq {
				q := p.q.x[((b*p.Nq+i)*p.H+h)*p.D:][:p.D]
				o := out[((b*p.Nq+i)*p.H+h)*p.D:][:p.D]
				top := math.Inf(-1)
				for j := range score {
					k := p.k.x[((b*p.Nk+j)*p.Hkv+g)*p.D:][:p.D]
					s := 0.0
					for d, x := range q {
						s += float64(x) * float64(k[d])
					}
					s *= scale
					if p.Bias.Data != nil {
						s += float64(p.Bias.Data[b*p.Bias.Batch+h*p.Bias.Head+i*p.Bias.Query+j])
					}
					if p.Causal && j > i || p.Mask.Data != nil && p.Mask.Data[b*p.Mask.Batch+h*p.Mask.Head+i*p.Mask.Query+j] == 0 {
						s = math.Inf(-1)
					}
					score[j] = s
					top = max(top, s)
				}
				if math.IsInf(top, -1) {
					continue
				}
				sum := 0.0
				for j, s := range score {
					score[j] = math.Exp(s - top)
					sum += score[j]
				}
				for j, w := range score {
					if w == 0 {
						continue
					}
					v := p.v.x[((b*p.Nk+j)*p.Hkv+g)*p.D:][:p.D]
					for d, x := range v {
						o[d] += w / sum * float64(x)
					}
				}
			}
		}
	}
	return out
}

// tolerance is the error allowed next to a result of the given size: the rounding of the result, and for bfloat16 that
// of the probabilities too.
func tolerance(d tensor.DType, want float64) float64 {
	switch d {
	case tensor.BF16:
		return 0x1p-8*math.Abs(want) + 6e-3
	case tensor.F16:
		return 0x1p-11*math.Abs(want) + 2e-5
	}
	return 1e-6*math.Abs(want) + 4e-6
}

func (p *problem) test(t *testing.T, pool *par.Pool, what string, levels ...isa.Level) {
	t.Helper()
	want := p.want()
	for _, l := range levels {
		for i := range p.Out.Data {
			p.Out.Data[i] = 0xff // NaN, in every dtype
		}
		if err := Run(pool, l, &p.Problem); err != nil {
			t.Fatalf("%s %v: %v", what, l, err)
		}
		for i, g := range decode(p.DType, p.Out.Data) {
			if d := math.Abs(float64(g) - want[i]); !(d <= tolerance(p.DType, want[i])) {
				t.Errorf("%s %v %v B %d Nq %d Nk %d H %d/%d D %d: element %d (query %d, head %d) is %g, want %g", what, l, p.DType, p.B, p.Nq, p.Nk, p.H, p.Hkv, p.D,
					i, i/p.D/p.H%p.Nq, i/p.D%p.H, g, want[i])
				break
			}
		}
	}
}

// levels returns those that differ for the dtype; the portable one only where the problem is small.
func levels(d tensor.DType, work int) []isa.Level {
	var ls []isa.Level
	for _, l := range isa.Available() {
		if l == isa.Portable && work > 4e6 {
			continue
		}
		if l >= isa.AVX512BF16 && d != tensor.BF16 {
			continue
		}
		if l != isa.AMX && os.Getenv("GESSO_TEST_ONLY_AMX") != "" { // see amxtest
			continue
		}
		ls = append(ls, l)
	}
	return ls
}

var dtypes = []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}

func TestLengths(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	sizes := []int{1, 2, 3, 15, 16, 17, 63, 64, 65, 77, 127, 129, 333}
	for _, nq := range sizes {
		for _, nk := range sizes {
			d := dtypes[(nq+nk)%3]
			p := newProblem(d, 1, nq, nk, 1, 1, 64, 1)
			p.test(t, pool, "length", levels(d, nq*nk*64)...)
			if nq == nk {
				for _, d := range dtypes {
					p := newProblem(d, 2, nq, nk, 2, 1, 16, 2)
					p.Causal = true
					p.test(t, pool, "causal", levels(d, nq*nk*64)...)
				}
			}
		}
	}
}

func TestHeadSizes(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, size := range []int{1, 2, 3, 7, 8, 16, 31, 64, 72, 80, 128, 160, 256} {
		for _, d := range dtypes {
			p := newProblem(d, 2, 65, 77, 4, 2, size, 3)
			p.test(t, pool, "head size", levels(d, 2*65*77*4*size)...)
		}
	}
}

func randomBytes(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 5))
	m := make([]byte, n)
	for i := range m {
		m[i] = byte(r.IntN(3)) // 0, 1, and another value that means true
	}
	return m
}

func randomBias(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 6))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 3)
	}
	return x
}

func TestBiasAndMasks(t *testing.T) {
	const b, nq, nk, h = 2, 67, 141, 4
	for _, d := range dtypes {
		for _, c := range []struct {
			name string
			set  func(p *Problem)
		}{
			{"bias per head", func(p *Problem) { p.Bias = Bias{Data: randomBias(h*nq*nk, 1), Batch: 0, Head: nq * nk, Query: nk} }},
			{"bias for all", func(p *Problem) { p.Bias = Bias{Data: randomBias(nq*nk, 1), Batch: 0, Head: 0, Query: nk} }},
			{"bias per batch", func(p *Problem) { p.Bias = Bias{Data: randomBias(b*nk, 1), Batch: nk, Head: 0, Query: 0} }},
			{"t5", func(p *Problem) {
				p.Bias = Bias{Data: randomBias(h*nq*nk, 1), Batch: 0, Head: nq * nk, Query: nk}
				p.Scale = 1
			}},
			{"keys", func(p *Problem) { p.Mask = Mask{randomBytes(b*nk, 1), nk, 0, 0} }},
			{"full", func(p *Problem) { p.Mask = Mask{randomBytes(b*nq*nk, 1), nq * nk, 0, nk} }},
			{"per head", func(p *Problem) { p.Mask = Mask{randomBytes(h*nq*nk, 1), 0, nq * nk, nk} }},
			{"bias and mask and causal", func(p *Problem) {
				p.Bias = Bias{Data: randomBias(h*nq*nk, 1), Batch: 0, Head: nq * nk, Query: nk}
				p.Mask = Mask{randomBytes(b*nk, 1), nk, 0, 0}
				p.Causal = true
			}},
			{"last key only", func(p *Problem) {
				m := make([]byte, nk)
				m[nk-1] = 1
				p.Mask = Mask{m, 0, 0, 0}
			}},
			{"negative scale", func(p *Problem) { p.Scale = -0.2 }},
			{"negative scale and bias", func(p *Problem) {
				p.Scale = -0.2
				p.Bias = Bias{Data: randomBias(nq*nk, 1), Batch: 0, Head: 0, Query: nk}
			}},
		} {
			p := newProblem(d, b, nq, nk, h, 2, 16, 4)
			c.set(&p.Problem)
			p.test(t, nil, c.name, levels(d, 0)...)
		}
	}
}

func TestFullyMaskedQueriesGiveZeros(t *testing.T) {
	const n = 20
	for _, d := range dtypes {
		p := newProblem(d, 1, n, 200, 1, 1, 16, 5)
		m := randomBytes(n*200, 9)
		clear(m[4*200 : 5*200])
		p.Mask = Mask{m, 0, 0, 200}
		for _, l := range levels(d, 0) {
			if err := Run(nil, l, &p.Problem); err != nil {
				t.Fatal(err)
			}
			for i, g := range decode(d, p.Out.Data) {
				if (i/16 == 4) != (g == 0) {
					t.Fatalf("%v %v: query %d is %g", l, d, i/16, g)
				}
			}
		}
		p.Mask = Mask{}
		p.Nk = 0
		for _, l := range levels(d, 0) {
			if err := Run(nil, l, &p.Problem); err != nil {
				t.Fatal(err)
			}
			for i, g := range decode(d, p.Out.Data) {
				if g != 0 {
					t.Fatalf("%v %v: element %d without keys is %g", l, d, i, g)
				}
			}
		}
	}
}

// TestMostNegativeBias: a mask written as a bias of the most negative float32 hides keys, and a row of nothing else is
// an average, as in PyTorch.
func TestMostNegativeBias(t *testing.T) {
	const n = 33
	for _, l := range isa.Available() {
		p := newProblem(tensor.F32, 1, 2, n, 1, 1, 16, 6)
		bias := make([]float32, 2*n)
		for j := range n {
			if j != 7 {
				bias[j] = -math.MaxFloat32
			}
			bias[n+j] = -math.MaxFloat32
		}
		p.Bias = Bias{Data: bias, Batch: 0, Head: 0, Query: n}
		if err := Run(nil, l, &p.Problem); err != nil {
			t.Fatal(err)
		}
		got := decode(tensor.F32, p.Out.Data)
		for d := range 16 {
			mean := 0.0
			for j := range n {
				mean += float64(p.v.x[j*16+d]) / n
			}
			if got[d] != p.v.x[7*16+d] {
				t.Fatalf("%v: element %d is %g, want key 7's %g", l, d, got[d], p.v.x[7*16+d])
			}
			if math.Abs(float64(got[16+d])-mean) > 1e-6 {
				t.Fatalf("%v: element %d is %g, want the mean %g", l, d, got[16+d], mean)
			}
		}
	}
}

func TestLargeLogits(t *testing.T) {
	for _, d := range dtypes {
		p := newProblem(d, 1, 50, 300, 1, 1, 64, 7)
		p.Scale = 30 // logits of ±1000
		for _, l := range levels(d, 0) {
			if err := Run(nil, l, &p.Problem); err != nil {
				t.Fatal(err)
			}
			want := p.want()
			for i, g := range decode(d, p.Out.Data) {
				// An f32 logit of 1000 is known to 6e-5 only.
				if !(math.Abs(float64(g)-want[i]) <= 2e-3+2*tolerance(d, want[i])) {
					t.Fatalf("%v %v: element %d is %g, want %g", l, d, i, g, want[i])
				}
			}
		}
	}
}

func TestNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for _, d := range dtypes {
		for _, l := range levels(d, 0) {
			for _, bad := range []float32{nan, inf} {
				p := newProblem(d, 1, 70, 200, 1, 1, 16, 8)
				q := append([]float32(nil), p.q.x...)
				for i := range 16 {
					q[33*16+i] = bad
				}
				copy(p.q.data, encode(d, q).data)
				if err := Run(nil, l, &p.Problem); err != nil {
					t.Fatal(err)
				}
				for i, g := range decode(d, p.Out.Data) {
					if (i/16 == 33) != (g != g) {
						t.Fatalf("%v %v: with %g in query 33, query %d has %g", l, d, bad, i/16, g)
					}
				}
			}
			// A key whose scores are all -Inf is not seen.
			p := newProblem(d, 1, 3, 20, 1, 1, 2, 9)
			ones := make([]float32, len(p.q.x))
			for i := range ones {
				ones[i] = 1
			}
			k := append([]float32(nil), p.k.x...)
			k[0], k[1] = -inf, 1
			copy(p.q.data, encode(d, ones).data)
			copy(p.k.data, encode(d, k).data)
			p.q.x, p.k.x = ones, k
			p.test(t, nil, "-Inf score", l)
		}
	}
}

func TestSameForAnyNumberOfThreads(t *testing.T) {
	for _, d := range dtypes {
		p := newProblem(d, 1, 500, 300, 3, 1, 32, 10)
		p.Causal = true
		for _, l := range levels(d, 0) {
			if err := Run(nil, l, &p.Problem); err != nil {
				t.Fatal(err)
			}
			want := string(p.Out.Data)
			for _, n := range []int{2, 3, 7} {
				pool := par.New(n)
				clear(p.Out.Data)
				if err := Run(pool, l, &p.Problem); err != nil {
					t.Fatal(err)
				}
				pool.Close()
				if string(p.Out.Data) != want {
					t.Errorf("%v %v: %d threads give another result", l, d, n)
				}
			}
		}
	}
}

// TestManyKeys takes several blocks of keys in every dtype, the last one short, with what hides some or all of a block.
func TestManyKeys(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, d := range dtypes {
		for _, nk := range []int{512, 513, 1024, 1061} {
			for _, c := range []struct {
				name string
				set  func(p *Problem)
			}{
				{"plain", func(p *Problem) {}},
				{"causal", func(p *Problem) { p.Causal = true }},
				{"bias", func(p *Problem) { p.Bias = Bias{Data: randomBias(p.Nq*p.Nk, 3), Query: p.Nk} }},
				{"first block hidden", func(p *Problem) {
					m := randomBytes(p.Nk, 4)
					clear(m[:min(512, p.Nk-1)])
					m[p.Nk-1] = 1
					p.Mask = Mask{Data: m}
				}},
			} {
				nq := 35
				if c.name == "causal" {
					nq = nk
				}
				p := newProblem(d, 1, nq, nk, 2, 1, 8, 13)
				c.set(&p.Problem)
				var ls []isa.Level
				for _, l := range levels(d, 0) {
					if l != isa.Portable || c.name != "causal" {
						ls = append(ls, l)
					}
				}
				p.test(t, pool, c.name, ls...)
			}
		}
	}
}

// TestManyHeads needs several groups of heads, whose keys are packed while the group before is used; the last is not full.
func TestManyHeads(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, d := range dtypes {
		p := newProblem(d, 2, 5, 9, 35, 35, 8, 12)
		p.test(t, nil, "70 heads", levels(d, 0)...)
		p.test(t, pool, "70 heads, 2 threads", levels(d, 0)...)
	}
}

// TestStrides reads q, k and v out of one fused projection (B, N, 3, H, D) and writes into a wider row.
func TestStrides(t *testing.T) {
	const b, n, h, size = 2, 70, 3, 24
	for _, d := range dtypes {
		dense := newProblem(d, b, n, n, h, h, size, 11)
		fused := make([]float32, b*n*3*h*size)
		for i := range b * n {
			for w, v := range []value{dense.q, dense.k, dense.v} {
				copy(fused[(i*3+w)*h*size:(i*3+w+1)*h*size], v.x[i*h*size:])
			}
		}
		e := encode(d, fused).data
		part := func(w int) View {
			return View{Data: e[w*h*size*d.Size():], Batch: n * 3 * h * size, Token: 3 * h * size, Head: size}
		}
		for _, l := range levels(d, 0) {
			if err := Run(nil, l, &dense.Problem); err != nil {
				t.Fatal(err)
			}
			want := decode(d, dense.Out.Data)
			p := dense.Problem
			p.Q, p.K, p.V = part(0), part(1), part(2)
			const wide = h*size + 5
			out := make([]byte, b*n*wide*d.Size())
			p.Out = View{Data: out, Batch: n * wide, Token: wide, Head: size}
			if err := Run(nil, l, &p); err != nil {
				t.Fatal(err)
			}
			for i, g := range decode(d, out) {
				row, col := i/wide, i%wide
				w := float32(0) // untouched
				if col < h*size {
					w = want[row*h*size+col]
				}
				if g != w {
					t.Fatalf("%v %v: row %d column %d is %g, want %g", l, d, row, col, g, w)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(p *Problem)
	}{
		{"short q", func(p *Problem) { p.Q.Data = p.Q.Data[:len(p.Q.Data)-4] }},
		{"short out", func(p *Problem) { p.Out.Data = nil }},
		{"long stride", func(p *Problem) { p.K.Token++ }},
		{"negative stride", func(p *Problem) { p.K.Head = -1 }},
		{"heads", func(p *Problem) { p.Hkv = 3 }},
		{"no size", func(p *Problem) { p.D = 0 }},
		{"dtype", func(p *Problem) { p.DType = tensor.F64 }},
		{"scale", func(p *Problem) { p.Scale = float32(math.NaN()) }},
		{"bias", func(p *Problem) { p.Bias = Bias{Data: make([]float32, 19), Batch: 0, Head: 0, Query: 5} }},
		{"mask", func(p *Problem) { p.Mask = Mask{make([]byte, 4), 0, 0, 0} }},
	} {
		p := newProblem(tensor.F32, 1, 4, 5, 2, 2, 8, 12).Problem
		if err := Run(nil, isa.Portable, &p); err != nil {
			t.Fatalf("before %s: %v", c.name, err)
		}
		c.set(&p)
		if err := Run(nil, isa.Portable, &p); err == nil {
			t.Errorf("%s: want an error", c.name)
		}
	}
}

func ExampleRun() {
	x := encode(tensor.F32, []float32{1, 0, 0, 1}) // two tokens, one head of two elements
	out := make([]byte, 16)
	p := Problem{B: 1, Nq: 2, Nk: 2, H: 1, Hkv: 1, D: 2, DType: tensor.F32, Scale: 20,
		Q: Dense(x.data, 2, 1, 2), K: Dense(x.data, 2, 1, 2), V: Dense(x.data, 2, 1, 2), Out: Dense(out, 2, 1, 2)}
	if err := Run(nil, isa.Detect(), &p); err != nil {
		panic(err)
	}
	fmt.Printf("%.2g\n", decode(tensor.F32, out))
	// Output: [1 2.1e-09 2.1e-09 1]
}

// A bias of a half type gives the bits of the same bias in float32.
func TestHalfBias(t *testing.T) {
	const b, nq, nk, h = 2, 67, 141, 4
	for _, d := range dtypes {
		for _, half := range []tensor.DType{tensor.BF16, tensor.F16} {
			p := newProblem(d, b, nq, nk, h, 2, 16, 4)
			a, err := tensor.FromFloat32(randomBias(h*nq*nk, 1), h*nq*nk).Convert(half)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range levels(d, 0) {
				p.Bias = Bias{Data: a.Float32s(), Head: nq * nk, Query: nk}
				if err := Run(nil, l, &p.Problem); err != nil {
					t.Fatal(err)
				}
				want := bytes.Clone(p.Out.Data)
				clear(p.Out.Data)
				p.Bias = Bias{Half: tensor.View[uint16](a.Data), HalfType: half, Head: nq * nk, Query: nk}
				if err := Run(nil, l, &p.Problem); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(p.Out.Data, want) {
					t.Errorf("%v, %v, bias %v: other bits than with the bias in f32", l, d, half)
				}
			}
		}
	}
}

// TestExp2Fast checks the stated bound on a dense set of arguments, and the ends of the range.
func TestExp2Fast(t *testing.T) {
	for i := range 1_250_000 {
		x := -float32(i) * 1e-4
		want := math.Exp2(float64(x))
		if got := float64(exp2Fast(x)); !(math.Abs(got-want) <= 1.2e-4*want) {
			t.Fatalf("2^%g = %g, want %g", x, got, want)
		}
	}
	for _, x := range []float32{-127, -150, -1e30, minusInf} {
		if got := exp2Fast(x); !(got >= 0 && got < 1e-37) {
			t.Errorf("2^%g = %g, want next to nothing", x, got)
		}
	}
	if got := exp2Fast(minusInf); got != 0 {
		t.Errorf("2^-Inf = %g, want 0: a hidden key must not count", got)
	}
	if x := exp2Fast(float32(math.NaN())); x == x {
		t.Errorf("2^NaN = %g", x)
	}
}

// TestNothingIsLeftFromBefore: packed keys and panels are kept, and hold what another problem left in them, here NaN.
func TestNothingIsLeftFromBefore(t *testing.T) {
	for _, d := range dtypes {
		for _, l := range levels(d, 0) {
			for _, size := range []int{1, 3, 20, 33} {
				for _, nk := range []int{1, 5, 50, 77} {
					spoiled := newProblem(d, 1, 70, 200, 1, 1, 64, 14)
					for _, v := range []value{spoiled.q, spoiled.k, spoiled.v} {
						for i := range v.data {
							v.data[i] = 0xff
						}
					}
					if err := Run(nil, l, &spoiled.Problem); err != nil {
						t.Fatal(err)
					}
					newProblem(d, 1, 37, nk, 1, 1, size, 15).test(t, nil, "after NaN", l)
				}
			}
		}
	}
}

// TestProbabilitiesOfManyKeys: with bfloat16 a probability is rounded relative to the largest score of up to 512 keys, as in
// PyTorch. Here each query sees key 0 and, with a larger score, key 300, whose value is 0; the probability of the first shows.
func TestProbabilitiesOfManyKeys(t *testing.T) {
	const n, nk = 200, 600
	for _, l := range levels(tensor.BF16, 0) {
		p := newProblem(tensor.BF16, 1, n, nk, 1, 1, 1, 16)
		q, k, v, mask := make([]float32, n), make([]float32, nk), make([]float32, nk), make([]byte, nk)
		for i := range q {
			q[i] = float32(1+i) / 64
		}
		k[0], v[0], mask[0], mask[300] = -1, 1, 1, 1
		p.q, p.k, p.v = encode(tensor.BF16, q), encode(tensor.BF16, k), encode(tensor.BF16, v)
		p.Scale, p.Mask = 1, Mask{mask, 0, 0, 0}
		p.Q, p.K, p.V = Dense(p.q.data, n, 1, 1), Dense(p.k.data, nk, 1, 1), Dense(p.v.data, nk, 1, 1)
		if err := Run(nil, l, &p.Problem); err != nil {
			t.Fatal(err)
		}
		rounded, exact := 0, 0
		for i, got := range decode(tensor.BF16, p.Out.Data) {
			e := math.Exp(-float64(p.q.x[i]))
			with := tensor.RoundTo(tensor.BF16, float32(float64(tensor.RoundTo(tensor.BF16, float32(e)))/(1+e)))
			without := tensor.RoundTo(tensor.BF16, float32(e/(1+e)))
			if with == without {
				continue
			}
			switch got {
			case with:
				rounded++
			case without:
				exact++
			}
		}
		if rounded < 10 || exact > rounded/4 {
			t.Errorf("%v: %d results are of rounded probabilities, %d of others", l, rounded, exact)
		}
	}
}
