package stablehlo

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// listed is the number of elements up to which a constant is written element by element; longer ones are one hexadecimal
// string of their bytes.
const listed = 16

// Constant writes a constant, once per function for small ones. Every bit of it survives, NaN payloads included.
func (w *Writer) Constant(a *tensor.Array) Value {
	t := graph.Type{DType: a.DType, Shape: a.Shape}
	write := func() Value {
		literal, comment := dense(a)
		if comment != "" {
			comment = " // " + comment
		}
		return w.Op(t, "stablehlo.constant dense<%s> : %s%s", literal, typeText(t), comment)
	}
	if len(a.Data) > 8*listed {
		return write()
	}
	return w.once("constant "+t.String()+string(a.Data), write)
}

// Scalar writes v, rounded to d, as a constant without axes.
func (w *Writer) Scalar(d tensor.DType, v float64) Value {
	a, err := tensor.FromFloat64([]float64{v}).Convert(d)
	if err != nil {
		panic("stablehlo: " + err.Error()) // only a dtype that no graph has
	}
	return w.Constant(a)
}

// dense writes what stands between dense< and >, and a comment for people where the literal is hexadecimal.
func dense(a *tensor.Array) (literal, comment string) {
	n, size := a.Shape.Size(), a.DType.Size()
	if n == 0 {
		return "", ""
	}
	element := func(i int) string { return literalOf(a, i) }
	if uniform(a.Data[:n*size], size) {
		literal = element(0)
		if strings.HasPrefix(literal, "0x") {
			comment = strconv.FormatFloat(a.Float64s()[0], 'g', -1, 32)
		}
		return literal, comment
	}
	// A string of bool would be packed eight to a byte; a list is as good.
	if n > listed && a.DType != tensor.Bool {
		return `"0x` + strings.ToUpper(hex.EncodeToString(a.Data[:n*size])) + `"`, ""
	}
	next := 0
	return nested(a.Shape, func() string { next++; return element(next - 1) }), ""
}

func nested(shape tensor.Shape, next func() string) string {
	if len(shape) == 0 {
		return next()
	}
	parts := make([]string, shape[0])
	for i := range parts {
		parts[i] = nested(shape[1:], next)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// uniform reports whether all elements are the same bytes.
func uniform(b []byte, size int) bool {
	for i := size; i < len(b); i++ {
		if b[i] != b[i-size] {
			return false
		}
	}
	return true
}

// literalOf writes element i: integers in decimal, floats in decimal where few digits say them exactly, otherwise as their
// bits.
func literalOf(a *tensor.Array, i int) string {
	switch d := a.DType; d {
	case tensor.Bool:
		return strconv.FormatBool(a.Data[i] != 0)
	case tensor.F64:
		b := binary.LittleEndian.Uint64(a.Data[8*i:])
		return floatLiteral(math.Float64frombits(b), b, 16)
	case tensor.F32:
		b := binary.LittleEndian.Uint32(a.Data[4*i:])
		return floatLiteral(float64(math.Float32frombits(b)), uint64(b), 8)
	case tensor.BF16:
		b := binary.LittleEndian.Uint16(a.Data[2*i:])
		return floatLiteral(float64(tensor.BF16ToFloat32(b)), uint64(b), 4)
	case tensor.F16:
		b := binary.LittleEndian.Uint16(a.Data[2*i:])
		return floatLiteral(float64(tensor.F16ToFloat32(b)), uint64(b), 4)
	}
	size := a.DType.Size()
	one := &tensor.Array{DType: a.DType, Shape: tensor.Shape{}, Data: a.Data[i*size : (i+1)*size]}
	return strconv.FormatInt(one.Int64s()[0], 10)
}

// floatLiteral writes v, or its bits in the given number of hexadecimal digits.
func floatLiteral(v float64, bits uint64, digits int) string {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		if s := strconv.FormatFloat(v, 'f', -1, 64); len(s) <= 8 {
			if !strings.Contains(s, ".") {
				s += ".0"
			}
			return s
		}
	}
	return fmt.Sprintf("0x%0*X", digits, bits)
}
