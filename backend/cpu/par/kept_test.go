package par

import (
	"runtime"
	"testing"
)

func TestKept(t *testing.T) {
	k := Kept[[]int]{New: func() *[]int { return &[]int{7} }}
	a, b := k.Get(), k.Get()
	if a == b || (*a)[0] != 7 {
		t.Fatalf("got %p and %p, %v", a, b, *a)
	}
	*a = append(*a, 8)
	k.Put(a)
	for range 3 {
		runtime.GC()
	}
	if c := k.Get(); c != a || len(*c) != 2 {
		t.Errorf("got %p, expected %p as it was put back", c, a)
	}
	var zero Kept[int]
	if v := zero.Get(); v == nil || *v != 0 {
		t.Error("the zero Kept gives no new value")
	}
}
