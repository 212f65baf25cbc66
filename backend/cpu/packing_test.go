package cpu

import (
	"bytes"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// stopped is the clock of tests in which packing has all the time that it needs.
func stopped() time.Time { return time.Time{} }

// On a machine that is slow to pack, weights are packed as time is earned by running programs; those that wait their turn
// give the same bits.
func TestPackingHasLimitedTime(t *testing.T) {
	c := newClient(t, Options{})
	var clock time.Time
	tick := time.Duration(0)
	c.packing.now = func() time.Time {
		clock = clock.Add(tick)
		return clock
	}
	const weights = 8
	f32 := func(shape ...int) graph.Type { return graph.Type{DType: tensor.F32, Shape: shape} }
	types := []graph.Type{f32(70, 96)}
	args := []backend.Buffer{}
	upload := func(typ graph.Type) backend.Buffer {
		b, err := c.Upload(random(typ), 0)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	args = append(args, upload(types[0]))
	for range weights {
		types = append(types, f32(64, 96))
		args = append(args, upload(types[1]))
	}
	e := compiled(t, c, types, func(l *graph.Builder, in []*graph.Node) (out []*graph.Node) {
		for _, w := range in[1:] {
			out = append(out, l.Make(graph.Linear, graph.LinearAttr{}, in[0], w))
		}
		return out
	})
	want := results(t, e, args...)
	for _, b := range args[1:] {
		b.(backend.Parameter).MarkParameter(func() {})
	}
	packed := func() (n int) {
		for _, b := range args[1:] {
			if b.(*buffer).v.param.packed != nil {
				n++
			}
		}
		return n
	}
	check := func(expected int) {
		t.Helper()
		for i, got := range results(t, e, args...) {
			if !bytes.Equal(got, want[i]) {
				t.Fatalf("product %d: other bits with %d of the weights packed", i, expected)
			}
		}
		if n := packed(); n != expected {
			t.Fatalf("%d weights are packed, want %d", n, expected)
		}
	}
	tick = packTime * 2 / 5 // of each packing, and each run
	check(3)
	check(3) // in debt: 0.2 of packTime, and a run earns 0.4/packShare
	for range 2 * packShare {
		results(t, e, args...)
	}
	if n := packed(); n <= 3 || n == weights {
		t.Fatalf("%d weights are packed after more runs, want some more than 3", n)
	}
	tick = 0
	c.packing.budget = packTime
	check(weights)
}
