package tensor

import (
	"fmt"
	"math"
	"strconv"
)

// Shape is the extent of each axis, outermost first. A scalar has the empty shape.
type Shape []int

// Size returns the number of elements.
func (s Shape) Size() int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// Check returns an error when an extent is negative or the element count does not fit an int.
func (s Shape) Check() error {
	n := 1
	for _, d := range s {
		if d < 0 {
			return fmt.Errorf("shape %v has a negative extent", s)
		}
		if d != 0 && n > math.MaxInt/d {
			return fmt.Errorf("shape %v is too large", s)
		}
		n *= d
	}
	return nil
}

// Equal reports whether both shapes have the same axes.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// Clone returns a copy.
func (s Shape) Clone() Shape { return append(Shape(nil), s...) }

// Strides returns the row-major strides in elements.
func (s Shape) Strides() []int {
	st := make([]int, len(s))
	n := 1
	for i := len(s) - 1; i >= 0; i-- {
		st[i] = n
		n *= s[i]
	}
	return st
}

// String returns the shape as [2 3 4].
func (s Shape) String() string {
	b := []byte{'['}
	for i, d := range s {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	return string(append(b, ']'))
}
