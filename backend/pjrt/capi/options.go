package capi

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// CompileOptions are the parts of xla.CompileOptionsProto that Gesso needs. The zero value compiles for one device.
type CompileOptions struct {
	Replicas   int // 0 means 1
	Partitions int // 0 means 1
	SPMD       bool
	Shardy     bool           // the program has sdy annotations
	Devices    []int          // ids, one row of partitions for each replica; nil leaves them to the plugin
	Effort     float32        // of the compiler to make the program fast, from -1 to 1; 0 is its default
	Flags      map[string]any // XLA's debug options by name, such as xla_allow_excess_precision: string, bool, int or float64
}

// Encode returns the message in protobuf's wire format, always the same bytes for the same options.
func (o CompileOptions) Encode() []byte {
	replicas, partitions := max(o.Replicas, 1), max(o.Partitions, 1)
	var build []byte               // ExecutableBuildOptionsProto
	build = protoInt(build, 1, -1) // device_ordinal: unset
	build = protoInt(build, 4, int64(replicas))
	build = protoInt(build, 5, int64(partitions))
	if o.SPMD {
		build = protoInt(build, 6, 1) // use_spmd_partitioning
	}
	if len(o.Devices) == replicas*partitions {
		// DeviceAssignmentProto: replica_count, computation_count, for each partition its replicas' device ids
		assignment := protoInt(protoInt(nil, 1, int64(replicas)), 2, int64(partitions))
		for p := range partitions {
			var ids []byte
			for r := range replicas {
				ids = binary.AppendUvarint(ids, uint64(o.Devices[r*partitions+p]))
			}
			assignment = protoBytes(assignment, 3, protoBytes(nil, 1, ids))
		}
		build = protoBytes(build, 9, assignment)
	}
	if o.Shardy {
		build = protoInt(build, 19, 1) // use_shardy_partitioner
	}
	if o.Effort != 0 { // exec_time_optimization_effort; field 20, 32 bits
		build = binary.LittleEndian.AppendUint32(binary.AppendUvarint(build, 20<<3|5), math.Float32bits(o.Effort))
	}
	b := protoBytes(nil, 3, build)
	for _, name := range slices.Sorted(maps.Keys(o.Flags)) {
		b = protoBytes(b, 7, protoBytes(protoBytes(nil, 1, []byte(name)), 2, protoOverride(o.Flags[name])))
	}
	return b
}

// protoOverride is an OptionOverrideProto. What is none of its types goes as text, which XLA takes for every option.
func protoOverride(v any) []byte {
	switch x := v.(type) {
	case bool:
		if x {
			return protoInt(nil, 2, 1)
		}
		return protoInt(nil, 2, 0)
	case int:
		return protoInt(nil, 3, int64(x))
	case float64:
		return binary.LittleEndian.AppendUint64([]byte{4<<3 | 1}, math.Float64bits(x))
	}
	return protoBytes(nil, 1, fmt.Append(nil, v))
}

func protoInt(b []byte, field int, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), uint64(v))
}

func protoBytes(b []byte, field int, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}
