package capi

import (
	"bytes"
	"testing"
	"unsafe"
)

// The sizes are those that a C compiler gives for pjrt_c_api.h 0.81; ours may be larger by padding and by fields appended
// since, never smaller.
func TestLayout(t *testing.T) {
	for _, s := range []struct {
		name    string
		got, c  uintptr
		newer   uintptr // bytes of fields that 0.81 doesn't have
		padding uintptr
	}{
		{"NamedValue", unsafe.Sizeof(namedValue{}), 56, 0, 0},
		{"Client_Create_Args", unsafe.Sizeof(clientCreateArgs{}), 88, 0, 0},
		{"Program", unsafe.Sizeof(programArgs{}), 48, 0, 0},
		{"Client_Compile_Args", unsafe.Sizeof(clientCompileArgs{}), 56, 0, 0},
		{"Compile_Args", unsafe.Sizeof(compileArgs{}), 64, 0, 0},
		{"Client_DefaultDeviceAssignment_Args", unsafe.Sizeof(assignmentArgs{}), 48, 0, 0},
		{"Client_BufferFromHostBuffer_Args", unsafe.Sizeof(bufferFromHostArgs{}), 120, 0, 0},
		{"Buffer_MemoryLayout", unsafe.Sizeof(layoutArgs{}), 76, 0, 4},
		{"Buffer_MemoryLayout_Tiled", unsafe.Sizeof(layoutArgs{}.tiled), 56, 0, 0},
		{"Buffer_ToHostBuffer_Args", unsafe.Sizeof(toHostArgs{}), 56, 0, 0},
		{"ExecuteOptions", unsafe.Sizeof(executeOptions{}), 112, 32, 0},
		{"LoadedExecutable_Execute_Args", unsafe.Sizeof(executeArgs{}), 80, 0, 0},
		{"Executable_GetCompiledMemoryStats_Args", unsafe.Sizeof(memoryStatsArgs{}), 112, 32, 0},
		{"Device_MemoryStats_Args", unsafe.Sizeof(deviceStatsArgs{}), 185, 0, 7},
		{"Executable_Serialize_Args", unsafe.Sizeof(serializeArgs{}), 56, 0, 0},
		{"Executable_DeserializeAndLoad_Args", unsafe.Sizeof(deserializeArgs{}), 64, 0, 0},
		{"Executable_OutputDimensions_Args", unsafe.Sizeof(outputDimsArgs{}), 48, 0, 0},
		{"Executable_OptimizedProgram_Args", unsafe.Sizeof(optimizedProgramArgs{}), 32, 0, 0},
		{"TopologyDescription_Create_Args", unsafe.Sizeof(topologyCreateArgs{}), 56, 0, 0},
		{"TopologyDescription_Deserialize_Args", unsafe.Sizeof(topologyDeserializeArgs{}), 40, 0, 0},
		{"Client_CreateAliasBuffer_Args", unsafe.Sizeof(createAliasArgs{}), 80, 0, 0},
		{"Client_FulfillAliasBuffer_Args", unsafe.Sizeof(fulfillAliasArgs{}), 64, 0, 0},
		{"KeyValueGetCallback_Args", unsafe.Sizeof(keyValueGetArgs{}), 80, 0, 0},
		{"KeyValueTryGetCallback_Args", unsafe.Sizeof(keyValueTryGetArgs{}), 72, 0, 0},
		{"KeyValuePutCallback_Args", unsafe.Sizeof(keyValuePutArgs{}), 64, 0, 0},
		{"Event_OnReady_Args", unsafe.Sizeof(onReadyArgs{}), 40, 0, 0},
		{"Buffer_CopyToDevice_Args", unsafe.Sizeof(pairArgs{}), 40, 0, 0},
		{"Executable_GetCostAnalysis_Args", unsafe.Sizeof(countFirstArgs{}), 40, 0, 0},
		{"Plugin_Attributes_Args", unsafe.Sizeof(attributesArgs{}), 32, 0, 0},
		{"Event_IsReady_Args", unsafe.Sizeof(boolArgs{}), 25, 0, 7},
		{"DeviceDescription_Id_Args", unsafe.Sizeof(intArgs{}), 28, 0, 4},
		{"Client_PlatformName_Args", unsafe.Sizeof(listArgs{}), 40, 0, 0},
		{"Executable_NumOutputs_Args", unsafe.Sizeof(wordArgs{}), 32, 0, 0},
		{"Event_Destroy_Args", unsafe.Sizeof(handleArgs{}), 24, 0, 0},
	} {
		if s.got != s.c+s.newer+s.padding {
			t.Errorf("PJRT_%s: %d bytes, expected %d", s.name, s.got, s.c+s.newer+s.padding)
		}
	}
	for _, o := range []struct {
		name   string
		got, c uintptr
	}{
		{"Device_MemoryStats_Args.peak_bytes_in_use", unsafe.Offsetof(deviceStatsArgs{}.optional), 32},
		{"Buffer_MemoryLayout.type", unsafe.Offsetof(layoutArgs{}.kind), 72},
		{"Client_BufferFromHostBuffer_Args.device", unsafe.Offsetof(bufferFromHostArgs{}.device), 80},
	} {
		if o.got != o.c {
			t.Errorf("PJRT_%s is at %d, expected %d", o.name, o.got, o.c)
		}
	}
}

// table is a PJRT_Api of a plugin that doesn't exist.
func table(size, major, minor int) uintptr {
	words := make([]uint64, maxTable/8)
	words[0] = uint64(size)
	words[4] = uint64(uint32(major)) | uint64(minor)<<32
	fakeTables = append(fakeTables, words)
	return uintptr(unsafe.Pointer(&words[0]))
}

var fakeTables [][]uint64

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		size, major, minor int
		want               string // empty: accepted
	}{
		{minTable, 0, MinMinor, ""},
		{1144, 0, 117, ""},
		{2000, 0, 400, ""},
		{minTable, 1, 0, "PJRT 1.0, expected major version 0"},
		{976, 0, 54, "PJRT 0.54 is too old, expected 0.81 or later"},
		{minTable - 8, 0, 81, "PJRT 0.81 with a table of 976 bytes, expected 984 or more"},
		{0, 0, 90, "PJRT 0.90 with a table of 0 bytes, expected 984 or more"},
	} {
		p, err := newPlugin("x.so", table(c.size, c.major, c.minor))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("PJRT %d.%d, %d bytes: %v", c.major, c.minor, c.size, err)
		case c.want != "" && (err == nil || err.Error() != "x.so: "+c.want):
			t.Errorf("PJRT %d.%d, %d bytes: got %v, expected %q", c.major, c.minor, c.size, err, c.want)
		case err == nil:
			// Nothing of this table may be called, within it (no such function) or beyond.
			for _, s := range []slot{slotErrorMessage, slotClientFulfillAliasBuffer, {5000, "PJRT_Far"}} {
				if err := call(p, s, &emptyArgs{}); CodeOf(err) != Unimplemented {
					t.Errorf("%s of an empty table: %v, expected %s", s.name, err, Unimplemented)
				}
			}
		}
	}
}

// The bytes were accepted by plugins from 0.81 to 0.117.
func TestCompileOptions(t *testing.T) {
	minusOne := []byte{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	for _, c := range []struct {
		name string
		o    CompileOptions
		want []byte
	}{
		{"zero", CompileOptions{}, append(append([]byte{0x1a, 15}, minusOne...), 0x20, 1, 0x28, 1)},
		{"device", CompileOptions{Devices: []int{3}},
			append(append([]byte{0x1a, 26}, minusOne...), 0x20, 1, 0x28, 1, 0x4a, 9, 0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 3)},
		{"partitions", CompileOptions{Partitions: 2, SPMD: true, Shardy: true, Devices: []int{0, 1}},
			append(append([]byte{0x1a, 36}, minusOne...), 0x20, 1, 0x28, 2, 0x30, 1, 0x4a, 14, 0x08, 1, 0x10, 2, 0x1a, 3, 0x0a, 1, 0, 0x1a, 3, 0x0a, 1, 1, 0x98, 1, 1)},
		{"flags", CompileOptions{Flags: map[string]any{"b": "2", "a": true}},
			append(append(append([]byte{0x1a, 15}, minusOne...), 0x20, 1, 0x28, 1), 0x3a, 7, 0x0a, 1, 'a', 0x12, 2, 0x10, 1, 0x3a, 8, 0x0a, 1, 'b', 0x12, 3, 0x0a, 1, '2')},
	} {
		if got := c.o.Encode(); !bytes.Equal(got, c.want) {
			t.Errorf("%s:\n  % x\nexpected\n  % x", c.name, got, c.want)
		}
	}
}
