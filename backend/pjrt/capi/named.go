package capi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unsafe"
)

// Kinds of PJRT_NamedValue.
const (
	kindString = iota
	kindInt64
	kindInt64List
	kindFloat
	kindBool
)

// named is a list of PJRT_NamedValue for C, with the memory that it points to.
type named struct {
	values []namedValue
	keep   []any // the union hides pointers from the collector
}

// newNamed encodes options in the order of their names. Values are string, int, int64, []int64, float32 or bool.
func newNamed(options map[string]any) (*named, error) {
	n := &named{values: make([]namedValue, 0, len(options))}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		v := namedValue{name: first(append([]byte(name), 0)), nameSize: uintptr(len(name)), count: 1}
		v.size = unsafe.Sizeof(v)
		switch x := options[name].(type) {
		case string:
			b := append([]byte(x), 0)
			n.keep = append(n.keep, b)
			v.kind, v.value, v.count = kindString, uint64(uintptr(first(b))), uintptr(len(x))
		case int:
			v.kind, v.value = kindInt64, uint64(x)
		case int64:
			v.kind, v.value = kindInt64, uint64(x)
		case []int64:
			b := append(slices.Clone(x), 0)
			n.keep = append(n.keep, b)
			v.kind, v.value, v.count = kindInt64List, uint64(uintptr(first(b))), uintptr(len(x))
		case float32:
			v.kind, v.value = kindFloat, uint64(math.Float32bits(x))
		case bool:
			v.kind = kindBool
			if x {
				v.value = 1
			}
		default:
			return nil, fmt.Errorf("option %s is a %T, expected string, int64, []int64, float32 or bool", name, x)
		}
		n.values = append(n.values, v)
	}
	return n, nil
}

// readNamed copies a list of the plugin's.
func readNamed(p, n uintptr) map[string]any {
	out := make(map[string]any, n)
	for _, v := range foreign[namedValue](p, n) {
		name := text(uintptr(v.name), v.nameSize)
		switch v.kind {
		case kindString:
			out[name] = text(uintptr(v.value), v.count)
		case kindInt64:
			out[name] = int64(v.value)
		case kindInt64List:
			out[name] = copied[int64](uintptr(v.value), v.count)
		case kindFloat:
			out[name] = math.Float32frombits(uint32(v.value))
		case kindBool:
			out[name] = v.value&0xff != 0
		}
	}
	return out
}
