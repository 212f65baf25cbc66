package weights

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// one returns a tensor of shape, of counting bytes, in a file of its own that starts with another tensor.
func one(t testing.TB, d tensor.DType, shape ...int) *Tensor {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, map[string]*tensor.Array{"t": counting(d, 3, shape...), "before": counting(tensor.I64, 0, 1)}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("f.safetensors", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x, err := f.Tensor("t")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// naive picks the elements of the parts of an axis one by one: the definition that Gather is tested against.
func naive(t *Tensor, axis int, parts [][2]int) []byte {
	size := t.DType.Size()
	strides := t.Shape.Strides()
	data := t.bytes()
	var out []byte
	var walk func(ax, off int)
	walk = func(ax, off int) {
		if ax == len(t.Shape) {
			out = append(out, data[off*size:(off+1)*size]...)
			return
		}
		if ax != axis {
			for i := range t.Shape[ax] {
				walk(ax+1, off+i*strides[ax])
			}
			return
		}
		for _, p := range parts {
			for i := p[0]; i < p[1]; i++ {
				walk(ax+1, off+i*strides[ax])
			}
		}
	}
	walk(0, 0)
	return out
}

func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shapes := []tensor.Shape{{1}, {7}, {4, 6}, {1, 5}, {5, 1}, {3, 4, 5}, {2, 3, 1, 4}, {3, 0}, {0, 3}, {2, 2, 2, 2, 2}}
	for _, shape := range shapes {
		for _, d := range []tensor.DType{tensor.U8, tensor.BF16, tensor.F32, tensor.F64} {
			x := one(t, d, shape...)
			for axis, dim := range shape {
				for range 8 {
					var parts [][2]int
					for range r.IntN(4) {
						start := r.IntN(dim + 1)
						parts = append(parts, [2]int{start, start + r.IntN(dim-start+1)})
					}
					v, err := x.Gather(axis, parts)
					if err != nil {
						t.Fatal(err)
					}
					checkView(t, v, naive(x, axis, parts), fmt.Sprintf("%s axis %d parts %v", x, axis, parts))
				}
			}
			checkView(t, x.whole(), x.bytes(), x.String())
		}
	}
	checkView(t, one(t, tensor.F32).whole(), []byte{3, 4, 5, 6}, "scalar")
}

// checkView compares all ways to read a view with want.
func checkView(t *testing.T, v *View, want []byte, what string) {
	t.Helper()
	if v.NumBytes() != len(want) {
		t.Fatalf("%s: %d bytes, expected %d", what, v.NumBytes(), len(want))
	}
	read := v.Tensor.file.BytesRead
	before := read()
	got := make([]byte, len(want))
	if err := v.CopyTo(got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s: CopyTo gives % x, %v; expected % x", what, got, err, want)
	}
	if n := read() - before; n != int64(len(want)) {
		t.Errorf("%s: CopyTo counts %d bytes, expected %d", what, n, len(want))
	}
	before = read()
	a, err := v.Array()
	if err != nil || !bytes.Equal(a.Data, want) || !a.Shape.Equal(v.Shape) || a.DType != v.Tensor.DType {
		t.Fatalf("%s: Array gives %v % x, %v; expected % x", what, a, a.Data, err, want)
	}
	if n := read() - before; n != int64(len(want)) {
		t.Errorf("%s: Bytes counts %d bytes, expected %d", what, n, len(want))
	}
	var byRange []byte
	end := -1
	for rg := range v.Ranges() {
		if rg.Len == 0 {
			t.Errorf("%s: an empty range", what)
		}
		if rg.Off == end {
			t.Errorf("%s: neighbouring ranges are not joined", what)
		}
		end = rg.Off + rg.Len
		byRange = append(byRange, v.Tensor.bytes()[rg.Off:end]...)
	}
	if !bytes.Equal(byRange, want) {
		t.Errorf("%s: the ranges give % x, expected % x", what, byRange, want)
	}
	v.Release() // of memory that is no mapping: must not touch it
	if !bytes.Equal(got, want) {
		t.Errorf("%s: Release changed the data", what)
	}
}

func TestSliceRanges(t *testing.T) {
	x := one(t, tensor.BF16, 4, 6)
	for _, c := range []struct {
		axis  int
		parts [][2]int
		want  []Range
	}{
		{0, [][2]int{{1, 3}}, []Range{{12, 24}}},
		{0, [][2]int{{0, 1}, {1, 4}}, []Range{{0, 48}}},
		{0, [][2]int{{0, 1}, {2, 3}}, []Range{{0, 12}, {24, 12}}},
		{0, [][2]int{{2, 3}, {0, 1}}, []Range{{24, 12}, {0, 12}}},
		{1, [][2]int{{0, 6}}, []Range{{0, 48}}},
		{1, [][2]int{{3, 6}}, []Range{{6, 6}, {18, 6}, {30, 6}, {42, 6}}},
		{1, [][2]int{{0, 1}, {3, 4}}, []Range{{0, 2}, {6, 2}, {12, 2}, {18, 2}, {24, 2}, {30, 2}, {36, 2}, {42, 2}}},
		{1, [][2]int{{2, 2}}, nil},
		{1, nil, nil},
	} {
		v, err := x.Gather(c.axis, c.parts)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(v.Ranges()); !slices.Equal(got, c.want) {
			t.Errorf("axis %d parts %v: ranges %v, expected %v", c.axis, c.parts, got, c.want)
		}
	}
	empty := one(t, tensor.F32, 1<<62, 0)
	if v, err := empty.Slice(1, 0, 0); err != nil || len(slices.Collect(v.Ranges())) != 0 { // must not count to 2^62
		t.Errorf("%v: %v", v, err)
	}
	for range (&View{Tensor: x, outer: 3, stride: 1, runs: []Range{{0, 1}}}).Ranges() {
		break // must not go on after the caller stops
	}
}

// A slice of rows is a view of the file: nothing is copied.
func TestRowsAreNotCopied(t *testing.T) {
	x := one(t, tensor.F32, 4, 3)
	v, err := x.Slice(0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	b, err := v.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if &b[0] != &x.Bytes()[12] {
		t.Error("the rows were copied")
	}
	if cap(b) != len(b) || cap(x.Bytes()) != len(x.Bytes()) {
		t.Error("an append to a view would write into the next tensor")
	}
}

func TestSliceErrors(t *testing.T) {
	x := one(t, tensor.F32, 4, 3)
	for _, c := range []struct {
		axis, start, stop int
		want              string
	}{
		{2, 0, 1, "shape [4 3] has no axis 2"},
		{-1, 0, 1, "has no axis -1"},
		{0, -1, 1, "[-1, 1) is no part of axis 0"},
		{0, 3, 2, "[3, 2) is no part"},
		{1, 0, 4, "[0, 4) is no part of axis 1 of shape [4 3]"},
	} {
		_, err := x.Slice(c.axis, c.start, c.stop)
		wantError(t, err, `f.safetensors: tensor "t": `, c.want)
	}
	_, err := one(t, tensor.F32).Slice(0, 0, 1)
	wantError(t, err, "shape [] has no axis 0")
	wantError(t, x.CopyTo(make([]byte, 47)), "destination has 47 bytes, expected 48")
}

// The parts of all ranks together are the tensor, and every rank reads its part only.
func TestRanksReadTheirPart(t *testing.T) {
	const ranks = 4
	for axis := range 2 {
		x := one(t, tensor.F32, 8, 12)
		before := x.file.BytesRead()
		for r := range ranks {
			n := x.Shape[axis] / ranks
			v, err := x.Slice(axis, r*n, (r+1)*n)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.CopyTo(make([]byte, v.NumBytes())); err != nil {
				t.Fatal(err)
			}
			if got, want := x.file.BytesRead()-before, int64((r+1)*x.NumBytes()/ranks); got != want {
				t.Errorf("axis %d: %d bytes read after rank %d, expected %d", axis, got, r, want)
			}
		}
	}
}
