package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// offsets lists where the elements of v lie, in row-major order.
func offsets(v view) []int {
	out := make([]int, v.shape.Size())
	for k := range out {
		at, i := v.offset, k
		for ax := len(v.shape) - 1; ax >= 0; ax-- {
			at += i % v.shape[ax] * v.strides[ax]
			i /= v.shape[ax]
		}
		out[k] = at
	}
	return out
}

// randomView is a slice of a permuted dense value, sometimes broadcast along an axis.
func randomView(r *rand.Rand) view {
	shape := make(tensor.Shape, 1+r.IntN(4))
	for i := range shape {
		shape[i] = []int{1, 2, 3, 4, 6}[r.IntN(5)]
	}
	v := view{st: &storage{bytes: 4 * shape.Size()}, dtype: tensor.F32, shape: shape, strides: shape.Strides()}
	if r.IntN(2) == 0 {
		perm := r.Perm(len(shape))
		s, st := make(tensor.Shape, len(shape)), make([]int, len(shape))
		for i, p := range perm {
			s[i], st[i] = v.shape[p], v.strides[p]
		}
		v.shape, v.strides = s, st
	}
	for i := range v.shape {
		switch r.IntN(6) {
		case 0:
			if n := v.shape[i] / 2; n > 0 {
				v.offset += (v.shape[i] - n) * v.strides[i]
				v.shape[i] = n
			}
		case 1:
			v.strides[i] = 0
		}
	}
	return v
}

func factors(r *rand.Rand, n int) tensor.Shape {
	var s tensor.Shape
	for n > 1 {
		d := 2 + r.IntN(n-1)
		for n%d != 0 {
			d = 2 + r.IntN(n-1)
		}
		s = append(s, d)
		n /= d
		if r.IntN(4) == 0 {
			s = append(s, 1)
		}
	}
	return s
}

func TestReshapeKeepsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	possible := 0
	for range 5000 {
		v := randomView(r)
		shape := factors(r, v.shape.Size())
		got, ok := v.reshape(shape)
		if !ok {
			if v.dense() {
				t.Fatalf("a dense %v cannot become %v", v.shape, shape)
			}
			continue
		}
		possible++
		if !got.shape.Equal(shape) || !slices.Equal(offsets(got), offsets(v)) {
			t.Fatalf("%v by %v as %v has strides %v", v.shape, v.strides, shape, got.strides)
		}
	}
	if possible < 1000 {
		t.Errorf("only %d of 5000 reshapes were possible: the test tests nothing", possible)
	}
}

func TestDense(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		v := randomView(r)
		at := offsets(v)
		want := true
		for i, o := range at {
			want = want && o == v.offset+i
		}
		if v.dense() != want {
			t.Fatalf("%v by %v: dense is %v", v.shape, v.strides, v.dense())
		}
	}
}

func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		v := randomView(r)
		rows, ok := v.rows()
		if !ok {
			continue
		}
		var got []int
		for i := range rows.n {
			for j := range rows.width {
				got = append(got, rows.at(i)+j)
			}
		}
		if !slices.Equal(got, offsets(v)) {
			t.Fatalf("%v by %v: rows %+v", v.shape, v.strides, rows)
		}
	}
}

func TestMove(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	pool := par.New(3)
	defer pool.Close()
	for range 2000 {
		from := randomView(r)
		d := []tensor.DType{tensor.U8, tensor.BF16, tensor.F32, tensor.F64}[r.IntN(4)]
		from.dtype = d
		to := view{dtype: d, shape: from.shape, strides: from.shape.Strides(), offset: r.IntN(3)}
		size := d.Size()
		// Buffers of Go memory that is aligned for every size.
		src, dst := heapBytes(8*1300), heapBytes(8*1300)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		want := slices.Clone(dst)
		a, b := offsets(to), offsets(from)
		for i := range a {
			copy(want[a[i]*size:(a[i]+1)*size], src[b[i]*size:])
		}
		newMove(to, from).run(pool.For, dst, src)
		if !slices.Equal(dst, want) {
			t.Fatalf("%s %v by %v: wrong copy", d, from.shape, from.strides)
		}
	}
	// A transposition large enough for tiles and threads.
	const m, n = 203, 517
	src, dst := heapBytes(4*m*n), heapBytes(4*m*n)
	s, d := elements[uint32](src, 0, m*n), elements[uint32](dst, 0, m*n)
	for i := range s {
		s[i] = uint32(i)
	}
	from := view{dtype: tensor.F32, shape: tensor.Shape{n, m}, strides: []int{1, n}}
	newMove(view{dtype: tensor.F32, shape: from.shape, strides: from.shape.Strides()}, from).run(pool.For, dst, src)
	for i := range n {
		for j := range m {
			if d[i*m+j] != uint32(j*n+i) {
				t.Fatalf("element %d, %d of the transposition is %d", i, j, d[i*m+j])
			}
		}
	}
}
