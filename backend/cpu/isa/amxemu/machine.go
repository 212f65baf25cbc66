// Package amxemu runs AMX instructions on a processor that has none, so that the kernels made of them can be tested there.
//
// A [Machine] is the tile state of one thread and carries out one instruction at a time, as the pseudo-code of the Intel
// Software Developer's Manual, volume 2, says. [Run], on Linux, starts a program of this module under ptrace with AMX
// declared available, and carries out in a Machine whatever the processor refuses:
//
//	go build -o amxemu ./backend/cpu/isa/amxemu/run
//	GESSO_CPU_ISA=amx ./amxemu gesso verify testdata/golden
//	go test -exec amxemu ./backend/cpu/gemm
//
// It is some thousand times slower than the real thing, and stricter: what the manual leaves to chance is an error.
package amxemu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrNotAMX is returned for bytes that are no AMX instruction.
var ErrNotAMX = errors.New("not an AMX instruction")

// Memory is what instructions read and write.
type Memory interface {
	Read(addr uint64, dst []byte) error
	Write(addr uint64, src []byte) error
}

// Machine is the tile state of a thread. The zero value is the state after TILERELEASE.
type Machine struct {
	configured bool
	rows, cols [8]int // cols in bytes
	tile       [8][16][64]byte

	Count int // instructions so far
}

// Step carries out the instruction at the start of code. reg returns general registers by number. It returns the
// instruction's length.
func (m *Machine) Step(code []byte, reg func(i int) uint64, mem Memory) (int, error) {
	in, err := decode(code)
	if err != nil {
		return 0, err
	}
	m.Count++
	switch in.op {
	case opConfig:
		err = m.config(in.address(reg), mem)
	case opRelease:
		*m = Machine{Count: m.Count}
	default:
		if err = m.check(&in); err == nil {
			err = m.run(&in, reg, mem)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", in.op, err)
	}
	return in.length, nil
}

// config is LDTILECFG.
func (m *Machine) config(addr uint64, mem Memory) error {
	var c [64]byte
	if err := mem.Read(addr, c[:]); err != nil {
		return err
	}
	*m = Machine{Count: m.Count}
	if c[0] == 0 {
		return nil
	}
	if c[0] != 1 || c[1] != 0 {
		return fmt.Errorf("palette %d from row %d, expected 1 from 0", c[0], c[1])
	}
	for i := range 64 {
		reserved := i >= 2 && i < 16 || i >= 32 && i < 48 || i >= 56
		if reserved && c[i] != 0 {
			return fmt.Errorf("reserved byte %d is %d", i, c[i])
		}
	}
	for t := range 8 {
		m.cols[t], m.rows[t] = int(binary.LittleEndian.Uint16(c[16+2*t:])), int(c[48+t])
		if m.cols[t] > 64 || m.rows[t] > 16 || (m.cols[t] == 0) != (m.rows[t] == 0) {
			return fmt.Errorf("tile %d of %d rows of %d bytes", t, m.rows[t], m.cols[t])
		}
	}
	m.configured = true
	return nil
}

// check does what makes real hardware raise an invalid-opcode exception.
func (m *Machine) check(in *instruction) error {
	if !m.configured {
		return errors.New("no tile configuration")
	}
	if m.rows[in.dst] == 0 {
		return fmt.Errorf("tile %d is not configured", in.dst)
	}
	if !in.op.isDot() {
		return nil
	}
	d, a, b := in.dst, in.a, in.b
	if d == a || d == b || a == b {
		return fmt.Errorf("tiles %d, %d and %d are not different", d, a, b)
	}
	if m.rows[d] != m.rows[a] || m.cols[d] != m.cols[b] || m.cols[a] != 4*m.rows[b] || m.cols[d]%4 != 0 {
		return fmt.Errorf("tiles of %d×%d, %d×%d and %d×%d bytes don't fit", m.rows[d], m.cols[d], m.rows[a], m.cols[a], m.rows[b], m.cols[b])
	}
	return nil
}

func (m *Machine) run(in *instruction, reg func(i int) uint64, mem Memory) error {
	t := in.dst
	switch in.op {
	case opZero:
		m.tile[t] = [16][64]byte{}
	case opLoad, opLoadT1:
		m.tile[t] = [16][64]byte{}
		for r := range m.rows[t] {
			if err := mem.Read(in.address(reg)+uint64(r)*in.stride(reg), m.tile[t][r][:m.cols[t]]); err != nil {
				return err
			}
		}
	case opStore:
		for r := range m.rows[t] {
			if err := mem.Write(in.address(reg)+uint64(r)*in.stride(reg), m.tile[t][r][:m.cols[t]]); err != nil {
				return err
			}
		}
	default:
		m.dot(in)
	}
	return nil
}

// dot is TDPBF16PS and its relations.
func (m *Machine) dot(in *instruction) {
	d, a, b := &m.tile[in.dst], &m.tile[in.a], &m.tile[in.b]
	words, columns := m.cols[in.a]/4, m.cols[in.dst]/4
	for r := range m.rows[in.dst] {
		for n := range columns {
			at := d[r][4*n:]
			if in.op == opBF16 {
				var even, odd float32
				for k := range words {
					even = fma(bf16(a[r][4*k:]), bf16(b[k][4*n:]), even)
					odd = fma(bf16(a[r][4*k+2:]), bf16(b[k][4*n+2:]), odd)
				}
				sum := flush(even + odd)
				c := math.Float32frombits(binary.LittleEndian.Uint32(at))
				binary.LittleEndian.PutUint32(at, math.Float32bits(flush(flush(c)+sum)))
				continue
			}
			sum := int32(binary.LittleEndian.Uint32(at))
			for k := range words {
				for i := range 4 {
					sum += in.op.left(a[r][4*k+i]) * in.op.right(b[k][4*n+i])
				}
			}
			binary.LittleEndian.PutUint32(at, uint32(sum))
		}
		clear(d[r][m.cols[in.dst]:])
	}
}

// bf16 reads a bfloat16, subnormal ones as zero.
func bf16(b []byte) float32 {
	return flush(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
}

// fma rounds once, to nearest even. The product of two bfloat16 is exact in a float64, and its sum with a float32 is
// rounded there to more than twice the digits, which makes the second rounding harmless.
func fma(x, y, z float32) float32 { return flush(float32(float64(x)*float64(y) + float64(z))) }

// flush replaces subnormal numbers by zero of the same sign.
func flush(x float32) float32 {
	if bits := math.Float32bits(x); bits&0x7f800000 == 0 {
		return math.Float32frombits(bits & 0x80000000)
	}
	return x
}
