package queue

import "testing"

// Everything that was pushed is served once and in order, and nothing after Stop.
func TestQueue(t *testing.T) {
	q := New[int]()
	var got []int
	go q.Serve(func(x int) { got = append(got, x) })
	const n = 10000
	for i := range n {
		if !q.Push(i) {
			t.Fatal("refused before Stop")
		}
	}
	q.Stop()
	if q.Push(n) {
		t.Error("taken after Stop")
	}
	q.Wait()
	if len(got) != n {
		t.Fatalf("%d of %d were served", len(got), n)
	}
	for i, x := range got {
		if x != i {
			t.Fatalf("%d came in place of %d", x, i)
		}
	}
}
