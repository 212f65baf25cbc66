package cpu

import (
	"bytes"
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// TestLargeStepsTakeNoMemory: a loop that needs more than heldLimit between programs that need little takes memory from the
// system in its first step only, and what it needed goes back after others.
func TestLargeStepsTakeNoMemory(t *testing.T) {
	c := newClient(t, Options{})
	scalar := []graph.Type{{DType: tensor.F32, Shape: tensor.Shape{1}}}
	// A program that keeps n numbers in between.
	sum := func(n int) backend.Executable {
		return compiled(t, c, scalar, func(l *graph.Builder, in []*graph.Node) []*graph.Node {
			x := l.Make(graph.BroadcastInDim, graph.BroadcastInDimAttr{Shape: tensor.Shape{n / 64, 64}, Axes: []int{1}}, in[0])
			x = l.Make(graph.Exp, nil, x)
			return []*graph.Node{l.Make(graph.Reduce, graph.ReduceAttr{Kind: graph.ReduceMax, Axes: []int{0, 1}}, x)}
		})
	}
	const large = 2 * heldLimit
	programs := []backend.Executable{sum(4 << 10), sum(large / 4), sum(large / 9 * 2), sum(4 << 10)}
	one := tensor.FromFloat32([]float32{1}, 1).Data
	x, err := c.Upload(tensor.FromFloat32([]float32{0}, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 5 {
		for _, e := range programs {
			if got := results(t, e, x)[0]; !bytes.Equal(got, one) {
				t.Fatalf("step %d gave %x, expected 1", step, got)
			}
		}
		if m := c.mem.mapped; m < large || m > large+large/8 {
			t.Fatalf("after step %d %d bytes have been taken from the system, expected little more than %d", step, m, large)
		}
	}
	for range stretches {
		results(t, programs[0], x)
	}
	if idle := idleBytes(c.mem); idle > heldLimit {
		t.Errorf("%d bytes idle after small programs, expected at most %d", idle, heldLimit)
	}
}
