package weights

import "github.com/gesso-go/gesso/tensor"

// dtypeNames are safetensors' names, in the order in which the reference writer lays tensors out: by falling rank of its
// Dtype enumeration, which puts wide types first so that every tensor is aligned.
var dtypeNames = [...]struct {
	name  string
	dtype tensor.DType
}{
	{"I64", tensor.I64},
	{"F64", tensor.F64},
	{"F32", tensor.F32},
	{"I32", tensor.I32},
	{"BF16", tensor.BF16},
	{"F16", tensor.F16},
	{"I16", tensor.I16},
	{"F8_E4M3", tensor.F8E4M3},
	{"F8_E5M2", tensor.F8E5M2},
	{"I8", tensor.I8},
	{"U8", tensor.U8},
	{"BOOL", tensor.Bool},
}

// knownDTypes lists the names for error messages.
const knownDTypes = "F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL F8_E4M3 F8_E5M2"

func parseDType(name []byte) (tensor.DType, bool) {
	for _, d := range dtypeNames {
		if string(name) == d.name {
			return d.dtype, true
		}
	}
	return tensor.Invalid, false
}

// rank returns the position of d in dtypeNames, or -1.
func rank(d tensor.DType) int {
	for i := range dtypeNames {
		if dtypeNames[i].dtype == d {
			return i
		}
	}
	return -1
}
