package hlo

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// instruction is the part of HloInstructionProto that counting needs.
type instruction struct {
	name, opcode, target string
	shape                shape
	parameter, id        int64
	operands, called     []int64
	config               []byte
	value                int64 // of a constant that is one s32
}

// computation is HloComputationProto.
type computation struct {
	id, root     int64
	instructions []*instruction
	byID         map[int64]*instruction
}

// shape is ShapeProto: an array, or a tuple.
type shape struct {
	element int64
	dims    []int64
	space   int64 // of memory: 0 is the device's, 1 the chip's own
	tuple   []shape
}

// module is HloModuleProto.
type module struct {
	entry        int64
	computations map[int64]*computation
}

var errProto = errors.New("not an HLO module")

// fields calls fn for each field of a message: v holds a number, b the bytes of a message or string.
func fields(msg []byte, fn func(field int, v uint64, b []byte) error) error {
	for len(msg) > 0 {
		key, n := binary.Uvarint(msg)
		if n <= 0 {
			return errProto
		}
		msg = msg[n:]
		var v uint64
		var b []byte
		switch key & 7 {
		case 0:
			if v, n = binary.Uvarint(msg); n <= 0 {
				return errProto
			}
			msg = msg[n:]
		case 1, 5:
			size := 8
			if key&7 == 5 {
				size = 4
			}
			if len(msg) < size {
				return errProto
			}
			msg = msg[size:]
		case 2:
			l, n := binary.Uvarint(msg)
			if n <= 0 || l > uint64(len(msg)-n) {
				return errProto
			}
			b, msg = msg[n:n+int(l)], msg[n+int(l):]
			if b == nil {
				b = []byte{}
			}
		default:
			return errProto
		}
		if err := fn(int(key>>3), v, b); err != nil {
			return err
		}
	}
	return nil
}

// numbers appends a repeated integer, packed or not.
func numbers(to []int64, v uint64, b []byte) ([]int64, error) {
	if b == nil {
		return append(to, int64(v)), nil
	}
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errProto
		}
		to, b = append(to, int64(v)), b[n:]
	}
	return to, nil
}

// maxDepth is how deep tuples may lie in tuples.
const maxDepth = 16

func parseShape(msg []byte, depth int) (s shape, err error) {
	if depth > maxDepth {
		return s, errProto
	}
	err = fields(msg, func(field int, v uint64, b []byte) (err error) {
		switch field {
		case 2:
			s.element = int64(v)
		case 3:
			s.dims, err = numbers(s.dims, v, b)
		case 4:
			var t shape
			t, err = parseShape(b, depth+1)
			s.tuple = append(s.tuple, t)
		case 5:
			err = fields(b, func(field int, v uint64, _ []byte) error {
				if field == 8 {
					s.space = int64(v)
				}
				return nil
			})
		}
		return err
	})
	return s, err
}

// parseLiteral returns the first s32 of a LiteralProto, or 0.
func parseLiteral(msg []byte) (v int64, err error) {
	err = fields(msg, func(field int, n uint64, b []byte) error {
		if field != 4 {
			return nil
		}
		all, err := numbers(nil, n, b)
		if len(all) > 0 {
			v = all[0]
		}
		return err
	})
	return v, err
}

func parseInstruction(msg []byte) (*instruction, error) {
	i := &instruction{}
	err := fields(msg, func(field int, v uint64, b []byte) (err error) {
		switch field {
		case 1:
			i.name = string(b)
		case 2:
			i.opcode = string(b)
		case 3:
			i.shape, err = parseShape(b, 0)
		case 8:
			i.value, err = parseLiteral(b)
		case 9:
			i.parameter = int64(v)
		case 28:
			i.target = string(b)
		case 35:
			i.id = int64(v)
		case 36:
			i.operands, err = numbers(i.operands, v, b)
		case 38:
			i.called, err = numbers(i.called, v, b)
		case 43:
			i.config = b
		}
		return err
	})
	return i, err
}

func parseComputation(msg []byte) (*computation, error) {
	c := &computation{byID: map[int64]*instruction{}}
	err := fields(msg, func(field int, v uint64, b []byte) error {
		switch field {
		case 2:
			i, err := parseInstruction(b)
			if err != nil {
				return err
			}
			c.instructions = append(c.instructions, i)
			c.byID[i.id] = i
		case 5:
			c.id = int64(v)
		case 6:
			c.root = int64(v)
		}
		return nil
	})
	return c, err
}

// parse reads HloModuleProtoWithConfig, whose first field is the module.
func parse(msg []byte) (*module, error) {
	m := &module{computations: map[int64]*computation{}}
	err := fields(msg, func(field int, _ uint64, b []byte) error {
		if field != 1 {
			return nil
		}
		return fields(b, func(field int, v uint64, b []byte) error {
			switch field {
			case 3:
				c, err := parseComputation(b)
				if err != nil {
					return err
				}
				m.computations[c.id] = c
			case 6:
				m.entry = int64(v)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if m.computations[m.entry] == nil {
		return nil, fmt.Errorf("%w: it has no entry", errProto)
	}
	return m, nil
}
