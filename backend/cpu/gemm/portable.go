package gemm

import "unsafe"

// tilePortable4 is the 4×4 tile in plain Go.
func tilePortable4(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, _ *uint32) {
	var s [4][4]float32
	if kw > 0 {
		pb := unsafe.Slice((*float32)(unsafe.Pointer(b)), 4*kw)
		a0 := floatRow(a, lda, 0, kw)
		a1 := floatRow(a, lda, 1, kw)
		a2 := floatRow(a, lda, 2, kw)
		a3 := floatRow(a, lda, 3, kw)
		for h := 0; h < 4; h += 2 { // two columns at a time keep the sums in registers
			var s00, s01, s10, s11, s20, s21, s30, s31 float32
			for k := range kw {
				b0, b1 := pb[4*k+h], pb[4*k+h+1]
				s00 += a0[k] * b0
				s01 += a0[k] * b1
				s10 += a1[k] * b0
				s11 += a1[k] * b1
				s20 += a2[k] * b0
				s21 += a2[k] * b1
				s30 += a3[k] * b0
				s31 += a3[k] * b1
			}
			s[0][h], s[0][h+1] = s00, s01
			s[1][h], s[1][h+1] = s10, s11
			s[2][h], s[2][h+1] = s20, s21
			s[3][h], s[3][h+1] = s30, s31
		}
	}
	for r := range 4 {
		storePortable(c, ldc, r, &s[r], acc)
	}
}

// tilePortable1 is the 1×4 tile in plain Go.
func tilePortable1(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, _ *uint32) {
	var s [4]float32
	if kw > 0 {
		pb := unsafe.Slice((*float32)(unsafe.Pointer(b)), 4*kw)
		for k, x := range floatRow(a, lda, 0, kw) {
			s[0] += x * pb[4*k]
			s[1] += x * pb[4*k+1]
			s[2] += x * pb[4*k+2]
			s[3] += x * pb[4*k+3]
		}
	}
	storePortable(c, ldc, 0, &s, acc)
}

func floatRow(a *uint32, lda uintptr, row, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(a), uintptr(row)*lda)), n)
}

func storePortable(c *float32, ldc uintptr, row int, s *[4]float32, acc int) {
	out := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(c), uintptr(row)*ldc)), 4)
	for i, x := range s {
		if acc != 0 {
			x += out[i]
		}
		out[i] = x
	}
}

// tilePortableInt8 is the 1×4 tile of int8 words in plain Go.
func tilePortableInt8(kw int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int, _ *uint32) {
	var s [4]int32
	if kw > 0 {
		pa, pb := unsafe.Slice((*[4]int8)(unsafe.Pointer(a)), kw), unsafe.Slice((*[4][4]int8)(unsafe.Pointer(b)), kw)
		for k, x := range pa {
			x0, x1, x2, x3 := int32(x[0]), int32(x[1]), int32(x[2]), int32(x[3])
			for j := range s {
				y := &pb[k][j]
				s[j] += x0*int32(y[0]) + x1*int32(y[1]) + x2*int32(y[2]) + x3*int32(y[3])
			}
		}
	}
	out := (*[4]int32)(unsafe.Pointer(c))
	for i, x := range s {
		if acc != 0 {
			x += out[i]
		}
		out[i] = x
	}
}
