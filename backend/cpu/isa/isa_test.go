package isa

import "testing"

func TestChoose(t *testing.T) {
	if l, err := Choose(""); err != nil || l != Detect() {
		t.Fatalf("Choose(\"\") = %v, %v; want the detected level %v", l, err, Detect())
	}
	if l, err := Choose("Portable"); err != nil || l != Portable {
		t.Fatalf("Choose(Portable) = %v, %v", l, err)
	}
	if _, err := Choose("sse9"); err == nil {
		t.Fatal("Choose(sse9): want an error")
	}
	for _, l := range Available() {
		if got, err := Parse(l.String()); err != nil || got != l {
			t.Errorf("Parse(%q) = %v, %v", l.String(), got, err)
		}
	}
}
