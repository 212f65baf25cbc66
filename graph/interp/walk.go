package interp

import "github.com/gesso-go/gesso/tensor"

// walk visits every index of shape in row-major order: k counts the visits and at[j] is the offset that strides[j]
// gives the index. Strides have one entry per axis of shape.
func walk(shape tensor.Shape, fn func(k int, at []int), strides ...[]int) {
	n := shape.Size()
	index := make([]int, len(shape))
	at := make([]int, len(strides))
	for k := 0; k < n; k++ {
		fn(k, at)
		for ax := len(shape) - 1; ax >= 0; ax-- {
			index[ax]++
			for j, s := range strides {
				at[j] += s[ax]
			}
			if index[ax] < shape[ax] {
				break
			}
			for j, s := range strides {
				at[j] -= shape[ax] * s[ax]
			}
			index[ax] = 0
		}
	}
}

// spread returns the strides with which a dense value of shape from is read at the indices of shape to, by NumPy's
// broadcast rule: aligned at the last axis, and standing still where the extent is 1.
func spread(from, to tensor.Shape) []int {
	dense := from.Strides()
	out := make([]int, len(to))
	off := len(to) - len(from)
	for i, d := range from {
		if d != 1 {
			out[off+i] = dense[i]
		}
	}
	return out
}
