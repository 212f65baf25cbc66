package rng

// mt19937 is the 32-bit Mersenne Twister as PyTorch seeds and steps it.
// Source: Matsumoto and Nishimura 1998; at::mt19937 (ATen/core/MT19937RNGEngine.h).
type mt19937 struct {
	state [mtN]uint32
	next  int // index of the next word; mtN when all are spent
}

const (
	mtN = 624 // words of state
	mtM = 397 // distance to the word that is mixed in
)

// seed restarts the sequence. Only the low 32 bits take part, as in PyTorch.
func (m *mt19937) seed(s uint64) {
	m.state[0] = uint32(s)
	for i := 1; i < mtN; i++ {
		p := m.state[i-1]
		m.state[i] = 1812433253*(p^p>>30) + uint32(i)
	}
	m.next = mtN
}

// twist replaces all words by the next block of the recurrence.
func (m *mt19937) twist() {
	mix := func(u, v uint32) uint32 {
		y := u&0x80000000 | v&0x7fffffff
		return y>>1 ^ -(v&1)&0x9908b0df
	}
	s := &m.state
	for i := 0; i < mtN-mtM; i++ {
		s[i] = s[i+mtM] ^ mix(s[i], s[i+1])
	}
	for i := mtN - mtM; i < mtN-1; i++ {
		s[i] = s[i+mtM-mtN] ^ mix(s[i], s[i+1])
	}
	s[mtN-1] = s[mtM-1] ^ mix(s[mtN-1], s[0])
	m.next = 0
}

// uint32 draws 32 bits.
func (m *mt19937) uint32() uint32 {
	if m.next == mtN {
		m.twist()
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// uint64 draws 64 bits: two draws, the first of which is the high word.
func (m *mt19937) uint64() uint64 {
	high := uint64(m.uint32())
	return high<<32 | uint64(m.uint32())
}

// uniform24 draws from [0, 1) in steps of 2^-24, as torch.rand in float32.
func (m *mt19937) uniform24() float32 { return float32(m.uint32()&(1<<24-1)) * (1.0 / (1 << 24)) }

// uniform53 draws from [0, 1) in steps of 2^-53, as torch.rand in float64.
func (m *mt19937) uniform53() float64 { return float64(m.uint64()&(1<<53-1)) * (1.0 / (1 << 53)) }
