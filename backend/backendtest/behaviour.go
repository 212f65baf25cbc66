package backendtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// make1 is a graph of one operation over inputs of the given types.
func make1(t *testing.T, op graph.Op, attr graph.Attr, types ...graph.Type) *graph.Graph {
	t.Helper()
	in := make([]*graph.Node, len(types))
	for i, ty := range types {
		in[i] = graph.NewInput(i, ty)
	}
	n, err := graph.Make(op, attr, in...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(op.String(), in, []*graph.Node{n})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func f32(shape ...int) graph.Type { return graph.Type{DType: tensor.F32, Shape: shape} }

// testBuffers checks what buffers promise beside holding a result.
func testBuffers(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	m := newMaker(7)
	t.Run("an upload reads back", func(t *testing.T) {
		for _, d := range join(floats, ints, []tensor.DType{tensor.Bool}) {
			for _, n := range edges {
				a := m.normal(d, n)
				b := upload(t, c, a)
				if err := b.Wait(); err != nil {
					t.Fatal(err)
				}
				if !b.Type().Equal(graph.Type{DType: d, Shape: a.Shape}) {
					t.Errorf("type is %s, expected %s", b.Type(), a)
				}
				got := read(t, b)
				if err := bits.compare(got, a); err != nil {
					t.Error(err)
				}
				if n > 0 && &got.Data[0] == &a.Data[0] {
					t.Error("Read gives the uploaded memory itself, expected a copy")
				}
			}
		}
	})
	t.Run("misaligned upload", func(t *testing.T) {
		for _, d := range join(floats, ints) {
			a := m.normal(d, 129)
			odd := make([]byte, len(a.Data)+1)
			copy(odd[1:], a.Data)
			b := upload(t, c, &tensor.Array{DType: d, Shape: a.Shape, Data: odd[1:]})
			g := make1(t, graph.Neg, nil, graph.Type{DType: d, Shape: a.Shape})
			n := run(t, compile(t, c, g), run(t, compile(t, c, g), b)...)
			if err := bits.compare(read(t, n[0]), a); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("a bad array", func(t *testing.T) {
		if _, err := c.Upload(&tensor.Array{DType: tensor.F32, Shape: tensor.Shape{3}, Data: make([]byte, 8)}, 0); err == nil {
			t.Error("an array with too few bytes was accepted")
		}
	})
	t.Run("outputs outlive inputs", func(t *testing.T) {
		a := m.normal(tensor.F32, 65)
		x := graph.NewInput(0, f32(65))
		r, err := graph.Make(graph.Reshape, graph.ReshapeAttr{Shape: tensor.Shape{5, 13}}, x)
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.New("identity", []*graph.Node{x}, []*graph.Node{x, r})
		if err != nil {
			t.Fatal(err)
		}
		mine := a.Clone()
		b := upload(t, c, mine)
		out := run(t, compile(t, c, g), b)
		if err := c.Sync(0); err != nil {
			t.Fatal(err)
		}
		b.Free()
		clear(mine.Data) // allowed: the buffer was freed after the program had run
		want, _ := a.Reshape(5, 13)
		if err := bits.compare(read(t, out[0]), a); err != nil {
			t.Error(err)
		}
		if err := bits.compare(read(t, out[1]), want); err != nil {
			t.Error(err)
		}
	})
	t.Run("donated", func(t *testing.T) {
		x, y := graph.NewInput(0, f32(1<<12)), graph.NewInput(1, f32(1<<12))
		sum, err := graph.Make(graph.Add, nil, x, y)
		if err != nil {
			t.Fatal(err)
		}
		g, err := graph.New("donated", []*graph.Node{x, y}, []*graph.Node{sum, y})
		if err != nil {
			t.Fatal(err)
		}
		g.Donated = []int{0, 1}
		e, neg := compile(t, c, g), compile(t, c, make1(t, graph.Neg, nil, f32(1<<12)))
		a, b := m.normal(tensor.F32, 1<<12), m.normal(tensor.F32, 1<<12)
		kept, asIs := a.Clone(), b.Clone()
		for _, uploaded := range []bool{true, false} { // memory of the caller's, and the backend's own
			p, q := upload(t, c, a), upload(t, c, b)
			if !uploaded {
				p, q = run(t, neg, run(t, neg, p)...)[0], run(t, neg, run(t, neg, q)...)[0]
			}
			if _, _, err := e.Run([]backend.Buffer{p, p}); err == nil || !strings.Contains(err.Error(), "donated") {
				t.Errorf("one buffer for two donated arguments: %v", err)
			}
			out := run(t, e, p, q)
			if err := bits.compare(read(t, out[1]), asIs); err != nil {
				t.Errorf("uploaded %v, the output that is an argument: %v", uploaded, err)
			}
			for i, v := range read(t, out[0]).Float32s() {
				if v != kept.Float32s()[i]+asIs.Float32s()[i] {
					t.Fatalf("uploaded %v, element %d is %v", uploaded, i, v)
				}
			}
			if _, err := p.Read(); err == nil || !strings.Contains(err.Error(), "freed") {
				t.Errorf("a donated buffer was read: %v", err)
			}
			if _, _, err := e.Run([]backend.Buffer{p, out[0]}); err == nil || !strings.Contains(err.Error(), "freed") {
				t.Errorf("a donated buffer was taken again: %v", err)
			}
			p.Free() // allowed
		}
		for i, x := range []*tensor.Array{a, b} {
			if err := bits.compare(x, []*tensor.Array{kept, asIs}[i]); err != nil {
				t.Errorf("the array that was uploaded has changed: %v", err)
			}
		}
	})
	t.Run("freed while in use", func(t *testing.T) {
		a := m.normal(tensor.F32, 1<<12)
		e := compile(t, c, make1(t, graph.Neg, nil, f32(1<<12)))
		b := upload(t, c, a)
		for range 51 {
			next := run(t, e, b)[0]
			b.Free()
			b.Free() // twice is allowed
			b = next
		}
		want := a.Float32s()
		for i, v := range read(t, b).Float32s() {
			if v != -want[i] {
				t.Fatalf("element %d is %v, expected %v", i, v, -want[i])
			}
		}
	})
	t.Run("a freed buffer is refused", func(t *testing.T) {
		e := compile(t, c, make1(t, graph.Neg, nil, f32(3)))
		b := upload(t, c, m.normal(tensor.F32, 3))
		b.Free()
		if _, err := b.Read(); err == nil {
			t.Error("Read of a freed buffer gave no error")
		}
		if _, _, err := e.Run([]backend.Buffer{b}); err == nil {
			t.Error("Run with a freed buffer gave no error")
		}
	})
	t.Run("an output freed at once", func(t *testing.T) {
		e := compile(t, c, make1(t, graph.Neg, nil, f32(1<<12)))
		b := upload(t, c, m.normal(tensor.F32, 1<<12))
		for range 20 {
			run(t, e, b)[0].Free()
		}
		if err := c.Sync(0); err != nil {
			t.Error(err)
		}
	})
}

// tooLarge is a program whose result no machine holds.
func tooLarge(t *testing.T, c backend.Client) backend.Executable {
	t.Helper()
	g := make1(t, graph.BroadcastInDim, graph.BroadcastInDimAttr{Shape: tensor.Shape{1 << 25, 1 << 25}}, f32())
	e, err := c.Compile(t.Context(), g, 0)
	if err != nil {
		t.Skipf("this backend refuses to compile what does not fit: %v", err)
	}
	return e
}

func testErrors(t *testing.T, newClient NewClient) {
	c := open(t, newClient)
	m := newMaker(8)
	t.Run("arguments", func(t *testing.T) {
		e := compile(t, c, make1(t, graph.Add, nil, f32(3), f32(3)))
		x, y := upload(t, c, m.normal(tensor.F32, 3)), upload(t, c, m.normal(tensor.F32, 4))
		half := upload(t, c, m.normal(tensor.BF16, 3))
		for name, args := range map[string][]backend.Buffer{
			"too few": {x}, "too many": {x, x, x}, "another shape": {x, y}, "another dtype": {half, x}, "nil": {x, nil},
		} {
			if _, _, err := e.Run(args); err == nil {
				t.Errorf("%s: no error", name)
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error has several lines: %q", name, err)
			}
		}
		if got := read(t, run(t, e, x, x)[0]); got.Shape[0] != 3 {
			t.Errorf("after the errors: got %s", got)
		}
		if err := c.Sync(0); err != nil {
			t.Errorf("refused arguments reached Sync: %v", err)
		}
	})
	t.Run("device", func(t *testing.T) {
		n := len(c.Devices())
		if n == 0 {
			t.Fatal("no device")
		}
		g := make1(t, graph.Neg, nil, f32(3))
		if _, err := c.Compile(t.Context(), g, n); err == nil {
			t.Error("Compile for a device that does not exist gave no error")
		}
		if _, err := c.Upload(m.normal(tensor.F32, 3), -1); err == nil {
			t.Error("Upload to a device that does not exist gave no error")
		}
		if err := c.Sync(n); err == nil {
			t.Error("Sync of a device that does not exist gave no error")
		}
	})
	t.Run("cancelled compile", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Compile(ctx, make1(t, graph.Neg, nil, f32(3)), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, expected %v", err, context.Canceled)
		}
	})
	t.Run("a failed execution", func(t *testing.T) {
		bad := tooLarge(t, c)
		x := upload(t, c, m.normal(tensor.F32))
		out, done, err := bad.Run([]backend.Buffer{x})
		if err != nil {
			t.Skipf("this backend refuses to run what does not fit: %v", err)
		}
		big := out[0].Type()
		one := compile(t, c, make1(t, graph.Slice, graph.SliceAttr{Start: []int{0, 0}, Limit: []int{1, 1}, Stride: []int{1, 1}}, big))
		add := compile(t, c, make1(t, graph.Add, nil, f32(1, 1), f32(1, 1)))
		good := upload(t, c, m.normal(tensor.F32, 1, 1))
		later := run(t, add, good, run(t, one, out...)[0])[0] // issued before anybody knows
		fine := run(t, add, good, good)[0]
		first := out[0].Wait()
		if first == nil {
			t.Fatal("the result that does not fit is there")
		}
		if !strings.Contains(first.Error(), graph.BroadcastInDim.String()) {
			t.Errorf("the error does not name the operation: %v", first)
		}
		if err := done.Wait(); err == nil {
			t.Error("the event has no error")
		}
		if ended, err := done.Done(); !ended || err == nil {
			t.Errorf("the event says %v, %v after Wait", ended, err)
		}
		if _, err := out[0].Read(); err == nil {
			t.Error("Read gave no error")
		}
		if err := later.Wait(); err == nil || err.Error() != first.Error() {
			t.Errorf("downstream error is %v, expected %v", err, first)
		}
		if _, err := fine.Read(); err != nil {
			t.Errorf("a program that does not depend on the failure failed: %v", err)
		}
		if err := c.Sync(0); err == nil {
			t.Error("Sync did not report the failure")
		}
		if err := c.Sync(0); err != nil {
			t.Errorf("Sync reported it twice: %v", err)
		}
		if _, err := run(t, add, good, good)[0].Read(); err != nil {
			t.Errorf("the device does not live on: %v", err)
		}
	})
}
