package tensor

import "math"

// BF16ToFloat32 widens a bfloat16; it is exact.
func BF16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float32ToBF16 rounds to nearest, ties to even; NaN stays NaN.
func Float32ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0x7f800000 { // NaN: keep the sign, set the quiet bit
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + (u>>16)&1) >> 16)
}

// F16ToFloat32 widens an IEEE binary16; it is exact.
func F16ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h & 0x3ff)
	switch exp {
	case 0x1f:
		if man != 0 {
			man |= 0x200 // quiet
		}
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// Float32ToF16 rounds to nearest, ties to even; values past 65504 (after rounding) become infinite, NaN stays NaN.
func Float32ToF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign := uint16(u>>16) & 0x8000
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00 | uint16(u>>13)&0x3ff
	case u >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case u < 0x38800000: // below 2^-14: subnormal or zero
		// Adding 0.5 puts the 2^-24 unit at the last bit of the mantissa, so the hardware rounds for us.
		r := math.Float32frombits(u) + 0.5
		return sign | uint16(math.Float32bits(r)-0x3f000000)
	}
	return sign | uint16((u-0x38000000+0xfff+(u>>13)&1)>>13)
}

// RoundTo rounds f to the nearest value of d and returns it as a float32; d is F32, BF16 or F16.
func RoundTo(d DType, f float32) float32 {
	switch d {
	case BF16:
		return BF16ToFloat32(Float32ToBF16(f))
	case F16:
		return F16ToFloat32(Float32ToF16(f))
	}
	return f
}

// F8E4M3ToFloat32 widens torch.float8_e4m3fn: bias 7, no infinities, 0x7f and 0xff are NaN.
func F8E4M3ToFloat32(b uint8) float32 {
	sign := uint32(b&0x80) << 24
	exp, man := uint32(b>>3)&0xf, uint32(b&7)
	switch {
	case b&0x7f == 0x7f:
		return math.Float32frombits(sign | 0x7fc00000)
	case exp == 0:
		f := float32(man) * (1.0 / (1 << 9))
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+120)<<23 | man<<20)
}

// F8E5M2ToFloat32 widens torch.float8_e5m2: the upper byte of a binary16.
func F8E5M2ToFloat32(b uint8) float32 { return F16ToFloat32(uint16(b) << 8) }
