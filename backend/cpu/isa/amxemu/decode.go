package amxemu

import (
	"encoding/binary"
	"fmt"
)

// opcode names an instruction.
type opcode uint8

const (
	opConfig opcode = iota
	opRelease
	opZero
	opLoad
	opLoadT1
	opStore
	opBF16
	opSSD
	opSUD
	opUSD
	opUUD
)

var opcodeNames = []string{"LDTILECFG", "TILERELEASE", "TILEZERO", "TILELOADD", "TILELOADDT1", "TILESTORED", "TDPBF16PS", "TDPBSSD", "TDPBSUD", "TDPBUSD", "TDPBUUD"}

func (o opcode) String() string { return opcodeNames[o] }

func (o opcode) isDot() bool { return o >= opBF16 }

// left and right widen a byte of the first and the second source.
func (o opcode) left(b byte) int32 {
	if o == opUSD || o == opUUD {
		return int32(b)
	}
	return int32(int8(b))
}

func (o opcode) right(b byte) int32 {
	if o == opSUD || o == opUUD {
		return int32(b)
	}
	return int32(int8(b))
}

// instruction is one decoded.
type instruction struct {
	op          opcode
	length      int
	dst, a, b   int // tiles; a is the first source
	base, index int // general registers, -1 for none
	scale       uint
	disp        int64
}

func (in *instruction) address(reg func(i int) uint64) uint64 {
	a := uint64(in.disp)
	if in.base >= 0 {
		a += reg(in.base)
	}
	return a
}

// stride is the index register's, which counts once for each row.
func (in *instruction) stride(reg func(i int) uint64) uint64 {
	if in.index < 0 {
		return 0
	}
	return reg(in.index) << in.scale
}

// decode reads one instruction: VEX.128.0F38.W0 with opcodes 49, 4B, 5C and 5E.
func decode(code []byte) (instruction, error) {
	var in instruction
	if len(code) < 5 || code[0] != 0xc4 || code[1]&0x1f != 2 || code[2]&0x84 != 0 {
		return in, ErrNotAMX
	}
	notR, notX, notB := int(code[1]>>7), int(code[1]>>6&1), int(code[1]>>5&1)
	vvvv, pp, op, modrm := int(^code[2]>>3&15), code[2]&3, code[3], code[4]
	mod, tile, rm := modrm>>6, int(modrm>>3&7), int(modrm&7)
	in.length, in.dst = 5, tile
	const np, p66, pf3, pf2 = 0, 1, 2, 3
	switch {
	case op == 0x49 && pp == np && mod == 3 && modrm == 0xc0:
		in.op = opRelease
	case op == 0x49 && pp == np && mod != 3 && tile == 0:
		in.op = opConfig
		return in, in.operand(code, notX, notB)
	case op == 0x49 && pp == pf2 && mod == 3 && rm == 0:
		in.op = opZero
	case op == 0x4b && pp != np && mod != 3:
		if rm != 4 {
			return in, fmt.Errorf("tile memory instruction without SIB byte: % x", code[:5])
		}
		in.op = []opcode{p66: opLoadT1, pf3: opStore, pf2: opLoad}[pp]
		if notR == 0 || vvvv != 0 {
			return in, fmt.Errorf("%s: invalid prefix % x", in.op, code[:3])
		}
		return in, in.operand(code, notX, notB)
	case op == 0x5c && pp == pf3 && mod == 3:
		in.op, in.a, in.b = opBF16, rm, vvvv
	case op == 0x5e && mod == 3:
		in.op, in.a, in.b = []opcode{np: opUUD, p66: opUSD, pf3: opSUD, pf2: opSSD}[pp], rm, vvvv
	default:
		return in, ErrNotAMX
	}
	if notR == 0 || in.op.isDot() && (notB == 0 || vvvv > 7) || !in.op.isDot() && vvvv != 0 {
		return in, fmt.Errorf("%s: invalid prefix % x", in.op, code[:3])
	}
	return in, nil
}

// operand reads the memory operand that starts with the ModRM byte.
func (in *instruction) operand(code []byte, notX, notB int) error {
	mod, rm := code[4]>>6, int(code[4]&7)
	rest := code[5:]
	in.base, in.index = rm|(1-notB)<<3, -1
	if rm == 4 {
		if len(rest) < 1 {
			return ErrNotAMX
		}
		sib := rest[0]
		rest = rest[1:]
		in.length++
		in.base, in.scale = int(sib&7)|(1-notB)<<3, uint(sib>>6)
		if x := int(sib>>3&7) | (1-notX)<<3; x != 4 {
			in.index = x
		}
	}
	switch {
	case mod == 0 && in.base&7 == 5:
		return fmt.Errorf("%s: this form of address is not emulated", in.op)
	case mod == 1 && len(rest) >= 1:
		in.disp = int64(int8(rest[0]))
		in.length++
	case mod == 2 && len(rest) >= 4:
		in.disp = int64(int32(binary.LittleEndian.Uint32(rest)))
		in.length += 4
	case mod != 0:
		return ErrNotAMX
	}
	return nil
}
