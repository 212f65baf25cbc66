package xet

import "encoding/binary"

// group sorts src by byte position modulo four: all first bytes, then all second bytes, and so on. Floating-point data
// compresses better that way, because exponents stand beside exponents. dst has src's length and doesn't overlap it.
func group(dst, src []byte) {
	a, b, c, d := groupBounds(dst)
	parts := [4][]byte{a, b, c, d}
	for i, v := range src {
		parts[i%4][i/4] = v
	}
}

// ungroup is the inverse of group.
func ungroup(dst, src []byte) {
	n := len(src)
	a, b, c, d := groupBounds(src)
	k := 0
	// Eight values at a time: interleave bytes of a with c and b with d, then the results.
	for ; k+8 <= n/4; k += 8 {
		interleave8(dst[4*k:4*k+32], binary.LittleEndian.Uint64(a[k:]), binary.LittleEndian.Uint64(b[k:]),
			binary.LittleEndian.Uint64(c[k:]), binary.LittleEndian.Uint64(d[k:]))
	}
	for i := 4 * k; i < n; i++ {
		switch i % 4 {
		case 0:
			dst[i] = a[i/4]
		case 1:
			dst[i] = b[i/4]
		case 2:
			dst[i] = c[i/4]
		default:
			dst[i] = d[i/4]
		}
	}
}

// groupBounds cuts p into its four groups: group i has ceil((len(p)-i)/4) bytes.
func groupBounds(p []byte) (a, b, c, d []byte) {
	n := len(p)
	na, nb, nc := (n+3)/4, (n+2)/4, (n+1)/4
	return p[:na], p[na : na+nb], p[na+nb : na+nb+nc], p[na+nb+nc:]
}

// interleave8 writes the 32 bytes a0 b0 c0 d0 a1 b1 … of four words of eight bytes.
func interleave8(out []byte, a, b, c, d uint64) {
	abLow, abHigh := spread(a)|spread(b)<<8, spread(a>>32)|spread(b>>32)<<8
	cdLow, cdHigh := spread(c)|spread(d)<<8, spread(c>>32)|spread(d>>32)<<8
	_ = out[31]
	binary.LittleEndian.PutUint64(out[0:], pair(abLow)|pair(cdLow)<<16)
	binary.LittleEndian.PutUint64(out[8:], pair(abLow>>32)|pair(cdLow>>32)<<16)
	binary.LittleEndian.PutUint64(out[16:], pair(abHigh)|pair(cdHigh)<<16)
	binary.LittleEndian.PutUint64(out[24:], pair(abHigh>>32)|pair(cdHigh>>32)<<16)
}

// spread moves the low four bytes of x to the even bytes.
func spread(x uint64) uint64 {
	x &= 0xFFFF_FFFF
	x = (x | x<<16) & 0x0000_FFFF_0000_FFFF
	return (x | x<<8) & 0x00FF_00FF_00FF_00FF
}

// pair moves the low two 16-bit words of x to the even words.
func pair(x uint64) uint64 {
	x &= 0xFFFF_FFFF
	return (x | x<<16) & 0x0000_FFFF_0000_FFFF
}
