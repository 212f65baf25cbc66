package gemm

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// quantized is QuantizeRows for one row, written differently.
func quantized(row []float64) (q []int, scale float32) {
	m := float32(0)
	for _, x := range row {
		m = max(m, float32(math.Abs(x)))
	}
	q = make([]int, len(row))
	if m < 0x1p-120 {
		return q, 0
	}
	inv := 127 / m
	for i, x := range row {
		q[i] = int(math.RoundToEven(float64(float32(x) * inv)))
	}
	return q, m / 127
}

func TestQuantizeRows(t *testing.T) {
	forLevels(t, func(t *testing.T, level isa.Level) {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
			for _, k := range []int{0, 1, 7, 8, 15, 16, 17, 33, 100, 1000} {
				const rows = 19
				src, vals := randomOperand(rand.New(rand.NewPCG(3, uint64(k))), d, rows, k, k+3)
				got, scale := make([]byte, rows*k), make([]float32, rows)
				if err := QuantizeRows(nil, level, got, scale, src, rows, k); err != nil {
					t.Fatal(err)
				}
				for i := range rows {
					want, s := quantized(vals[i*k:][:k])
					if s != scale[i] {
						t.Fatalf("%v, k %d: scale of row %d is %v, want %v", d, k, i, scale[i], s)
					}
					for j, w := range want {
						if g := int(int8(got[i*k+j])); g != w {
							t.Fatalf("%v, k %d: element (%d, %d) is %d, want %d", d, k, i, j, g, w)
						}
					}
				}
			}
		}
	})
}

func TestQuantizeRowsOfExtremes(t *testing.T) {
	forLevels(t, func(t *testing.T, level isa.Level) {
		inf := float32(math.Inf(1))
		nan := float32(math.NaN())
		for _, c := range []struct {
			value, scale float32
			first        int8
		}{
			{0, 0, 0}, {0x1p-121, 0, 0}, {0x1p-120, 0x1p-120 / 127, 127}, {-math.MaxFloat32, math.MaxFloat32 / 127, -127},
			{inf, nan, 0}, {-inf, nan, 0}, {nan, nan, 0},
		} {
			for _, at := range []int{0, 40} { // in a whole vector, and in the rest
				row := make([]float32, 41)
				row[at] = c.value
				q, scale := make([]byte, 41), make([]float32, 1)
				if err := QuantizeRows(nil, level, q, scale, Operand{DType: tensor.F32, Data: tensor.Bytes(row)}, 1, 41); err != nil {
					t.Fatal(err)
				}
				if math.Float32bits(scale[0]) != math.Float32bits(c.scale) && !(scale[0] != scale[0] && c.scale != c.scale) {
					t.Errorf("%v: scale %v, want %v", c.value, scale[0], c.scale)
				}
				if c.scale == c.scale && int8(q[at]) != c.first {
					t.Errorf("%v: %d, want %d", c.value, int8(q[at]), c.first)
				}
			}
		}
	})
}

// int8Problem returns a product with B quantised, and what it must give, bit for bit.
func int8Problem(rnd *rand.Rand, d tensor.DType, m, n, k, pad int) (*Problem, []float32) {
	a, av := randomOperand(rnd, d, m, k, k+pad)
	b, scale := make([]byte, n*(k+pad)), make([]float32, n)
	for i := range b {
		b[i] = byte(rnd.IntN(256)) // -128 too
	}
	for i := range scale {
		scale[i] = rnd.Float32()
	}
	want := make([]float32, m*n)
	for i := range m {
		q, s := quantized(av[i*k:][:k])
		for j := range n {
			sum := 0
			for x, v := range q {
				sum += v * int(int8(b[j*(k+pad)+x]))
			}
			want[i*n+j] = float32(sum) * s * scale[j]
		}
	}
	return &Problem{M: m, N: n, K: k, A: a, B: Operand{DType: tensor.I8, Data: b, Stride: k + pad}, Scale: scale}, want
}

func TestInt8IsExact(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	forLevels(t, func(t *testing.T, level isa.Level) {
		for i, s := range sizes() {
			d := []tensor.DType{tensor.F32, tensor.BF16, tensor.F16}[i%3]
			m, n, k := s[0], s[1], s[2]
			p, want := int8Problem(rand.New(rand.NewPCG(5, uint64(i))), d, m, n, k, i%4)
			check := func(how string, p *Problem) {
				got := newCollect(m, n)
				if err := Run(pool, level, p, got.emit); err != nil {
					t.Fatalf("%v %s: %v", s, how, err)
				}
				got.complete(t)
				if !slices.Equal(got.c, want) {
					t.Fatalf("%v %v %s: differs from integers", s, d, how)
				}
			}
			check("plain", p)
			q, err := PackB(pool, level, p.B, n, k, false, d)
			if err != nil {
				t.Fatal(err)
			}
			check("packed", &Problem{M: m, N: n, K: k, A: p.A, Packed: q, Scale: p.Scale})
		}
	})
}

func TestPackInt8(t *testing.T) {
	forLevels(t, func(t *testing.T, level isa.Level) {
		const m, n, k = 9, 40, 300
		rnd := rand.New(rand.NewPCG(9, 9))
		x, xv := randomOperand(rnd, tensor.BF16, m, k, k)
		w, wv := randomOperand(rnd, tensor.BF16, n, k, k)
		q, scale, err := PackInt8(nil, level, w, n, k, tensor.BF16)
		if err != nil {
			t.Fatal(err)
		}
		got := newCollect(m, n)
		if err := Run(nil, level, &Problem{M: m, N: n, K: k, A: x, Packed: q, Scale: scale}, got.emit); err != nil {
			t.Fatal(err)
		}
		want, abs := reference(m, n, k, xv, wv, false)
		for i := range want { // rounding to a 254th of the range, twice, averages out over k
			if d := math.Abs(float64(got.c[i]) - want[i]); d > 0.002*abs[i] {
				t.Fatalf("element %d: %v, want %v (%.4f of Σ|a||b|)", i, got.c[i], want[i], d/abs[i])
			}
		}
	})
}

func TestInt8RowsWithNaN(t *testing.T) {
	forLevels(t, func(t *testing.T, level isa.Level) {
		const m, n, k = 3, 5, 40
		p, _ := int8Problem(rand.New(rand.NewPCG(1, 1)), tensor.F32, m, n, k, 0)
		copy(p.A.Data[4*k:], tensor.Bytes([]float32{float32(math.Inf(-1))}))
		got := newCollect(m, n)
		if err := Run(nil, level, p, got.emit); err != nil {
			t.Fatal(err)
		}
		for i, x := range got.c {
			if isNaN := x != x; isNaN != (i/n == 1) {
				t.Fatalf("element (%d, %d) is %v; only row 1 has an infinity", i/n, i%n, x)
			}
		}
	})
}

func TestInt8Mistakes(t *testing.T) {
	level := isa.Portable
	x := Operand{DType: tensor.F32, Data: make([]byte, 4*6)}
	b := Operand{DType: tensor.I8, Data: make([]byte, 6)}
	for _, c := range []struct {
		p    Problem
		want string
	}{
		{Problem{M: 2, N: 2, K: 3, A: x, B: b}, "0 scales for B"},
		{Problem{M: 2, N: 2, K: 3, A: x, B: b, RowB: true, Scale: make([]float32, 2)}, "stored K×N"},
		{Problem{M: 2, N: 2, K: 3, A: b, B: b, Scale: make([]float32, 2)}, "A is i8"},
		{Problem{M: 2, N: 2, K: 3, A: x, B: x, Scale: make([]float32, 2)}, "expected i8"},
		{Problem{M: 2, N: 2, K: 1 << 18, A: Operand{DType: tensor.F32, Data: make([]byte, 8<<18)}, B: b, Scale: make([]float32, 2)}, "at most"},
	} {
		err := Run(nil, level, &c.p, func(_, _, _ int, _ []float32) {})
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

func BenchmarkInt8(b *testing.B) {
	level := isa.Detect()
	for _, s := range [][3]int{{1357, 1536, 6144}, {1024, 3072, 3072}, {16, 3072, 3072}, {1, 3072, 3072}} {
		m, k, n := s[0], s[1], s[2]
		rnd := rand.New(rand.NewPCG(1, 2))
		x, _ := randomOperand(rnd, tensor.BF16, m, k, k)
		w, _ := randomOperand(rnd, tensor.BF16, n, k, k)
		q, scale, err := PackInt8(nil, level, w, n, k, tensor.BF16)
		if err != nil {
			b.Fatal(err)
		}
		out := Output{DType: tensor.BF16, Data: make([]byte, m*n*2), Stride: n}
		for _, threads := range []int{1, 2} {
			pool := par.New(threads)
			b.Run(fmt.Sprintf("%dx%dx%d/T%d", m, k, n, threads), func(b *testing.B) {
				report(b, m, n, k, func() error {
					return Run(pool, level, &Problem{M: m, N: n, K: k, A: x, Packed: q, Scale: scale}, out.Emit(level))
				})
			})
			pool.Close()
		}
	}
}
