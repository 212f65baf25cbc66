// Package tensor holds what every layer of the house agrees on: element types, shapes and host arrays.
//
// The main type is [Array], a dense row-major array in host memory:
//
//	a := tensor.FromFloat32([]float32{1, 2, 3, 4}, 2, 2)
//	b, err := a.Convert(tensor.BF16)
//
// The package imports nothing of the project.
package tensor

import (
	"fmt"
	"strings"
)

// DType is the type of one element. The zero value is Invalid.
type DType uint8

// The element types. Values of a graph have one of the first nine; the others occur only in files, and are converted
// when a parameter is placed.
const (
	Invalid DType = iota
	F32           // IEEE 754 binary32
	BF16          // bfloat16: the upper half of a binary32
	F16           // IEEE 754 binary16
	F64           // IEEE 754 binary64
	I32
	I64
	U8
	I8
	Bool    // one byte, 0 or 1
	I16     // storage only
	F8E4M3  // storage only: OCP E4M3 with no infinities (torch.float8_e4m3fn)
	F8E5M2  // storage only: OCP E5M2
	numType // count
)

type typeInfo struct {
	name  string // Gesso's and StableHLO's short name
	size  int    // bytes
	float bool
	alias []string
}

var types = [numType]typeInfo{
	Invalid: {name: "invalid"},
	F32:     {"f32", 4, true, []string{"float32", "fp32", "float"}},
	BF16:    {"bf16", 2, true, []string{"bfloat16"}},
	F16:     {"f16", 2, true, []string{"float16", "fp16", "half"}},
	F64:     {"f64", 8, true, []string{"float64", "double"}},
	I32:     {"i32", 4, false, []string{"int32"}},
	I64:     {"i64", 8, false, []string{"int64"}},
	U8:      {"u8", 1, false, []string{"uint8"}},
	I8:      {"i8", 1, false, []string{"int8"}},
	Bool:    {"bool", 1, false, nil},
	I16:     {"i16", 2, false, []string{"int16"}},
	F8E4M3:  {"f8e4m3", 1, true, []string{"f8_e4m3", "float8_e4m3fn"}},
	F8E5M2:  {"f8e5m2", 1, true, []string{"f8_e5m2", "float8_e5m2"}},
}

// String returns the short name, such as "bf16".
func (d DType) String() string {
	if d < numType {
		return types[d].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size returns the bytes of one element.
func (d DType) Size() int {
	if d < numType {
		return types[d].size
	}
	return 0
}

// IsFloat reports whether d is a floating-point type.
func (d DType) IsFloat() bool { return d < numType && types[d].float }

// IsHalf reports whether d is one of the 16-bit floating-point types.
func (d DType) IsHalf() bool { return d == BF16 || d == F16 }

// IsInt reports whether d is an integer type; Bool is not.
func (d DType) IsInt() bool {
	return d == I32 || d == I64 || d == U8 || d == I8 || d == I16
}

// ParseDType accepts Gesso's names (f32, bf16, f16 …), PyTorch's (float32, torch.bfloat16 …) and safetensors' (F8_E4M3 …).
func ParseDType(name string) (DType, error) {
	s := strings.ToLower(strings.TrimPrefix(name, "torch."))
	for d := F32; d < numType; d++ {
		if s == types[d].name {
			return d, nil
		}
		for _, a := range types[d].alias {
			if s == a {
				return d, nil
			}
		}
	}
	return Invalid, fmt.Errorf("unknown dtype %q (known: f32, bf16, f16, f64, i32, i64, i16, i8, u8, bool, f8e4m3, f8e5m2)", name)
}
