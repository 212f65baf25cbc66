package gemm

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// randomOperand returns rows×cols values in (-1, 1) of type t with the given stride, and the values widened, dense. The
// gaps between rows hold NaN, which must not reach a result.
func randomOperand(rnd *rand.Rand, t tensor.DType, rows, cols, stride int) (Operand, []float64) {
	vals := make([]float64, rows*cols)
	words := make([]float32, rows*stride)
	for i := range words {
		words[i] = float32(math.NaN())
	}
	for r := range rows {
		for c := range cols {
			x := tensor.RoundTo(t, 2*rnd.Float32()-1)
			words[r*stride+c] = x
			vals[r*cols+c] = float64(x)
		}
	}
	return Operand{DType: t, Data: encode(t, words), Stride: stride}, vals
}

func encode(t tensor.DType, x []float32) []byte {
	a, err := tensor.FromFloat32(x, len(x)).Convert(t)
	if err != nil {
		panic(err)
	}
	return a.Data
}

// collect is an Emit that stores C and counts how often each element came.
type collect struct {
	n     int
	c     []float32
	count []uint8
}

func newCollect(m, n int) *collect {
	return &collect{n: n, c: make([]float32, m*n), count: make([]uint8, m*n)}
}

func (c *collect) emit(_, row, col int, acc []float32) {
	copy(c.c[row*c.n+col:], acc)
	for i := range acc {
		c.count[row*c.n+col+i]++
		acc[i] = float32(math.NaN()) // the caller may change acc
	}
}

func (c *collect) complete(t *testing.T) {
	t.Helper()
	for i, n := range c.count {
		if n != 1 {
			t.Fatalf("element (%d, %d) was emitted %d times", i/c.n, i%c.n, n)
		}
	}
}

// reference returns A·B in float64 and Σ|a||b|, which bounds the rounding error.
func reference(m, n, k int, a, b []float64, rowB bool) (c, abs []float64) {
	c, abs = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			var s, q float64
			for x := range k {
				bv := 0.0
				if rowB {
					bv = b[x*n+j]
				} else {
					bv = b[j*k+x]
				}
				s += a[i*k+x] * bv
				q += math.Abs(a[i*k+x] * bv)
			}
			c[i*n+j], abs[i*n+j] = s, q
		}
	}
	return c, abs
}

func compare(t *testing.T, got []float32, want, abs []float64, n, k int) {
	t.Helper()
	tol := 4e-7 * math.Sqrt(float64(k)+1) // relative to Σ|a||b|: float32 sums
	tol = min(tol, 1e-5)
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*abs[i]+1e-30) {
			t.Fatalf("element (%d, %d): got %v, want %v (error %.2e of Σ|a||b|, allowed %.2e)", i/n, i%n, got[i], want[i], d/abs[i], tol)
		}
	}
}

var dtypePairs = [][2]tensor.DType{
	{tensor.F32, tensor.F32}, {tensor.BF16, tensor.BF16}, {tensor.F16, tensor.F16},
	{tensor.F32, tensor.BF16}, {tensor.F32, tensor.F16},
}

// sizes are (M, N, K) at the edges of tiles, panels, vectors and blocks.
func sizes() [][3]int {
	edges := []int{1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129}
	ks := []int{1, 2, 17, 63, 64, 65, 513, 1025, 2100}
	var s [][3]int
	for i, m := range edges {
		s = append(s, [3]int{m, edges[(i*5+3)%len(edges)], ks[i%len(ks)]})
		s = append(s, [3]int{edges[(i*3+7)%len(edges)], m, ks[(i*2+1)%len(ks)]})
	}
	return append(s, [3]int{4, 5, 0}, [3]int{0, 5, 3}, [3]int{5, 0, 3}, [3]int{7, 600, 33}, [3]int{8, 33, 1025}, [3]int{9, 31, 1025},
		[3]int{241, 530, 70}, [3]int{300, 20, 1030}, [3]int{500, 65, 17})
}

func forLevels(t *testing.T, f func(t *testing.T, level isa.Level)) {
	for _, level := range isa.Available() {
		t.Run(level.String(), func(t *testing.T) { f(t, level) })
	}
}

func TestRunAgreesWithFloat64(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	forLevels(t, func(t *testing.T, level isa.Level) {
		for _, pair := range dtypePairs {
			for _, rowB := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v·%v rowB=%v", pair[0], pair[1], rowB), func(t *testing.T) {
					for i, s := range sizes() {
						rnd := rand.New(rand.NewPCG(1, uint64(i)))
						m, n, k := s[0], s[1], s[2]
						a, av := randomOperand(rnd, pair[0], m, k, k+i%3)
						rows, cols := n, k
						if rowB {
							rows, cols = k, n
						}
						b, bv := randomOperand(rnd, pair[1], rows, cols, cols+i%4)
						want, abs := reference(m, n, k, av, bv, rowB)

						p := &Problem{M: m, N: n, K: k, A: a, B: b, RowB: rowB}
						got := newCollect(m, n)
						if err := Run(pool, level, p, got.emit); err != nil {
							t.Fatalf("%v: %v", s, err)
						}
						got.complete(t)
						compare(t, got.c, want, abs, n, k)

						q, err := PackB(pool, level, b, n, k, rowB, pair[0])
						if err != nil {
							t.Fatalf("%v: %v", s, err)
						}
						packed := newCollect(m, n)
						p = &Problem{M: m, N: n, K: k, A: a, Packed: q}
						if err := Run(pool, level, p, packed.emit); err != nil {
							t.Fatalf("%v: %v", s, err)
						}
						packed.complete(t)
						compare(t, packed.c, want, abs, n, k)
					}
				})
			}
		}
	})
}

func TestUnpackGivesBBack(t *testing.T) {
	forLevels(t, func(t *testing.T, level isa.Level) {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.I8} {
			for _, s := range [][2]int{{1, 1}, {33, 7}, {5, 66}, {70, 35}, {3, 0}} {
				n, k := s[0], s[1]
				want := make([]byte, n*k*d.Size())
				for i := range want {
					want[i] = byte(rand.Uint32())
				}
				q, err := PackB(nil, level, Operand{DType: d, Data: want}, n, k, false, tensor.F32)
				if d == tensor.BF16 {
					q, err = PackB(nil, level, Operand{DType: d, Data: want}, n, k, false, d)
				}
				if err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(want))
				if err := q.Unpack(got); err != nil {
					if d == tensor.BF16 && q.kernel.kind == wordF32 {
						continue // widened: it can't be given back
					}
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%v %v: not what was packed", d, s)
				}
			}
		}
	})
}

func TestRowsDoNotDependOnEachOther(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	forLevels(t, func(t *testing.T, level isa.Level) {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
			const m, n, k = 250, 700, 1100
			rnd := rand.New(rand.NewPCG(1, 2))
			a, _ := randomOperand(rnd, d, m, k, k)
			b, _ := randomOperand(rnd, d, n, k, k)
			q, err := PackB(pool, level, b, n, k, false, d)
			if err != nil {
				t.Fatal(err)
			}
			all := newCollect(m, n)
			if err := Run(pool, level, &Problem{M: m, N: n, K: k, A: a, B: b}, all.emit); err != nil {
				t.Fatal(err)
			}
			for _, rows := range [][2]int{{0, 1}, {3, 1}, {0, 2}, {100, 5}, {17, 16}, {40, 77}, {0, 250}} {
				part := Operand{DType: d, Data: a.Data[rows[0]*k*d.Size():]}
				got := newCollect(rows[1], n)
				if err := Run(nil, level, &Problem{M: rows[1], N: n, K: k, A: part, Packed: q}, got.emit); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.c, all.c[rows[0]*n:][:rows[1]*n]) {
					t.Fatalf("%v: rows %d to %d have other bits alone", d, rows[0], rows[0]+rows[1])
				}
			}
		}
	})
}

// TestStrips: however many strips A and B are cut into, the sums are the same.
func TestStrips(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	forLevels(t, func(t *testing.T, level isa.Level) {
		for i, pair := range dtypePairs {
			rnd := rand.New(rand.NewPCG(5, uint64(i)))
			const m, n, k = 500, 420, 70
			a, _ := randomOperand(rnd, pair[0], m, k, k)
			b, _ := randomOperand(rnd, pair[1], n, k, k)
			run := func(words, rows int) []float32 {
				defer func(b, a int) { stripWords, stripA = b, a }(stripWords, stripA)
				stripWords, stripA = words, rows
				out := newCollect(m, n)
				if err := Run(pool, level, &Problem{M: m, N: n, K: k, A: a, B: b}, out.emit); err != nil {
					t.Fatal(err)
				}
				out.complete(t)
				return out.c
			}
			want := run(stripWords, stripA)
			for _, words := range []int{1, 35 * 130, 35 * 260, 70 * 260, 70 * 400, stripWords} {
				for _, rows := range []int{1, 35 * 200, 70 * 260, stripA} {
					for i, got := range run(words, rows) {
						if got != want[i] {
							t.Fatalf("%v·%v: element (%d, %d) is %v with strips of %d and %d words, %v without", pair[0], pair[1], i/n, i%n, got, rows, words, want[i])
						}
					}
				}
			}
		}
	})
}

// TestEveryNumberOfRows: up to several times the tallest tile, each row has the bits that it has among others, and agrees
// with the portable kernels. K takes several blocks, and N doesn't fill its last panel.
func TestEveryNumberOfRows(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	const most, n, k = 96, 39, 2100
	type operands struct {
		a, b  Operand
		scale []float32 // int8
		abs   []float64 // Σ|a||b|
	}
	product := func(t *testing.T, level isa.Level, o operands, m int) []float32 {
		q, err := PackB(pool, level, o.b, n, k, false, o.a.DType)
		if err != nil {
			t.Fatal(err)
		}
		got := newCollect(m, n)
		if err := Run(pool, level, &Problem{M: m, N: n, K: k, A: o.a, Packed: q, Scale: o.scale}, got.emit); err != nil {
			t.Fatal(err)
		}
		got.complete(t)
		return got.c
	}
	var all []operands
	var want [][]float64
	for i, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.BF16} {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		a, av := randomOperand(rnd, d, most, k, k)
		b, bv := randomOperand(rnd, d, n, k, k)
		o := operands{a: a, b: b}
		_, o.abs = reference(most, n, k, av, bv, false)
		if i == 2 {
			o.b, o.scale = Operand{DType: tensor.I8, Data: make([]byte, n*k)}, make([]float32, n)
			if err := QuantizeRows(nil, isa.Portable, o.b.Data, o.scale, b, n, k); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, o)
		want = append(want, nil)
		for _, x := range product(t, isa.Portable, o, most) {
			want[i] = append(want[i], float64(x))
		}
	}
	forLevels(t, func(t *testing.T, level isa.Level) {
		for i, o := range all {
			whole := product(t, level, o, most)
			compare(t, whole, want[i], o.abs, n, k)
			for m := 1; m < most; m++ {
				if !slices.Equal(product(t, level, o, m), whole[:m*n]) {
					t.Fatalf("%v·%v: of %d rows some have other bits than among %d", o.a.DType, o.b.DType, m, most)
				}
			}
		}
	})
}

// TestNothingIsLeftFromBefore: scratch memory is used again and holds what other products left in it, here NaN.
func TestNothingIsLeftFromBefore(t *testing.T) {
	forLevels(t, func(t *testing.T, level isa.Level) {
		for i, pair := range dtypePairs {
			for _, rowB := range []bool{false, true} {
				for _, m := range []int{35, 300} { // in one block of rows, and in several
					const n, most = 40, 130
					rnd := rand.New(rand.NewPCG(11, uint64(i)))
					x, _ := randomOperand(rnd, pair[0], m, 1, most) // NaN but for a column
					y, _ := randomOperand(rnd, pair[1], most, 1, most)
					spoil := Problem{M: m, N: most, K: most, A: x, B: y, RowB: rowB}
					for _, k := range []int{1, 2, 17, 65, 129} {
						if err := Run(nil, level, &spoil, func(_, _, _ int, _ []float32) {}); err != nil {
							t.Fatal(err)
						}
						a, av := randomOperand(rnd, pair[0], m, k, k)
						rows, cols := n, k
						if rowB {
							rows, cols = k, n
						}
						b, bv := randomOperand(rnd, pair[1], rows, cols, cols)
						want, abs := reference(m, n, k, av, bv, rowB)
						got := newCollect(m, n)
						if err := Run(nil, level, &Problem{M: m, N: n, K: k, A: a, B: b, RowB: rowB}, got.emit); err != nil {
							t.Fatal(err)
						}
						compare(t, got.c, want, abs, n, k)
					}
				}
			}
		}
	})
}

// TestMistakes: what doesn't fit is an error, also of one problem among several.
func TestMistakes(t *testing.T) {
	x := Operand{DType: tensor.F32, Data: make([]byte, 4*6)}
	half := Operand{DType: tensor.BF16, Data: make([]byte, 2*6)}
	q, err := PackB(nil, isa.Portable, x, 2, 3, false, tensor.F32)
	if err != nil {
		t.Fatal(err)
	}
	emit := func(_, _, _ int, _ []float32) {}
	for _, c := range []struct {
		level isa.Level
		p     Problem
		want  string
	}{
		{isa.Portable, Problem{M: 2, N: 2, K: 3, A: x, Packed: q}, ""},
		{isa.AVX2, Problem{M: 2, N: 2, K: 3, A: x, Packed: q}, "packed for portable, level is avx2"},
		{isa.Portable, Problem{M: 2, N: 3, K: 2, A: x, Packed: q}, "packed B is 3×2"},
		{isa.Portable, Problem{M: 2, N: 2, K: 3, A: half, Packed: q}, "packed for f32 rows, A is bf16"},
		{isa.Portable, Problem{M: 3, N: 2, K: 3, A: x, B: x}, "A has 24 bytes, expected 36"},
		{isa.Portable, Problem{M: 2, N: 3, K: 3, A: x, B: x}, "B has 24 bytes"},
		{isa.Portable, Problem{M: 2, N: 2, K: 3, A: half, B: x}, "A is bf16 and B is f32"},
		{isa.Portable, Problem{M: -1}, "negative size"},
	} {
		batch := RunBatch(nil, c.level, 3, func(i int) Problem {
			if i == 1 {
				return c.p
			}
			return Problem{M: 2, N: 2, K: 3, A: x, B: x}
		}, func(_, _, _, _ int, _ []float32) {})
		if err := Run(nil, c.level, &c.p, emit); c.want == "" {
			if err != nil || batch != nil {
				t.Errorf("%v, and of several %v: expected no error", err, batch)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) || batch == nil || !strings.Contains(batch.Error(), "batch index 1: "+err.Error()) {
			t.Errorf("%v, and of several %v: expected %q", err, batch, c.want)
		}
	}
}
