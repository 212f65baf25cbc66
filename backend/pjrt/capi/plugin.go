package capi

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// MinMinor is the oldest minor version of PJRT (0.MinMinor) that is accepted.
const MinMinor = 81

// tableOffset is where the functions start in PJRT_Api; maxTable bounds what is believed of a struct size.
const (
	tableOffset = 40
	minTable    = tableOffset + 8*118 // 0.81
	maxTable    = 1 << 16
)

// Plugin is a loaded PJRT plugin.
type Plugin struct {
	path         string
	base         uintptr // PJRT_Api
	size         uintptr
	major, minor int
}

// Load loads the shared library at path. The error tells a library that can't be loaded, one that is no plugin and one
// that is too old apart. A plugin that crashes takes the process with it: probe unknown ones in a child.
func Load(path string) (*Plugin, error) {
	get, err := openLibrary(path, "GetPjrtApi")
	if err != nil {
		return nil, err
	}
	base, _, _ := purego.SyscallN(get)
	if base == 0 {
		return nil, fmt.Errorf("%s: GetPjrtApi returned nothing", path)
	}
	return newPlugin(path, base)
}

// newPlugin checks the version of the table at base.
func newPlugin(path string, base uintptr) (*Plugin, error) {
	version := word(base + 32) // two ints
	p := &Plugin{path: path, base: base, size: word(base), major: int(int32(version)), minor: int(int32(version >> 32))}
	switch {
	case p.major != 0:
		return nil, fmt.Errorf("%s: PJRT %d.%d, expected major version 0", path, p.major, p.minor)
	case p.minor < MinMinor:
		return nil, fmt.Errorf("%s: PJRT 0.%d is too old, expected 0.%d or later", path, p.minor, MinMinor)
	case p.size < minTable || p.size > maxTable:
		return nil, fmt.Errorf("%s: PJRT 0.%d with a table of %d bytes, expected %d or more", path, p.minor, p.size, minTable)
	}
	return p, nil
}

// Path returns where the plugin was loaded from.
func (p *Plugin) Path() string { return p.path }

// Version returns the version of the C API that the plugin was built with.
func (p *Plugin) Version() (major, minor int) { return p.major, p.minor }

// Initialize sets the plugin up; once, before anything else.
func (p *Plugin) Initialize() error { return call(p, slotPluginInitialize, &emptyArgs{}) }

// Attributes returns what the plugin says of itself, such as stablehlo_current_version ([]int64).
func (p *Plugin) Attributes() (map[string]any, error) {
	a := &attributesArgs{}
	if err := call(p, slotPluginAttributes, a); err != nil {
		return nil, err
	}
	return readNamed(a.p, a.n), nil
}

// Extensions lists the types of the plugin's extensions, numbered as in pjrt_c_api.h.
func (p *Plugin) Extensions() []int {
	var types []int
	for e := word(p.base + 8); e != 0; e = word(e + 16) { // struct_size, type, next
		types = append(types, int(int32(word(e+8))))
	}
	return types
}

func (p *Plugin) function(s slot) uintptr {
	off := uintptr(tableOffset + 8*s.index)
	if off+8 > p.size {
		return 0
	}
	return word(p.base + off)
}

// args is a pointer to one of the argument structs.
type args[T any] interface {
	*T
	hdr() *header
}

// call fills in the struct's size and calls the function. The struct, and all it points to, stays alive until it returns.
func call[T any, P args[T]](p *Plugin, s slot, a P) error {
	if r := invoke[T](p, s, a); r != 0 {
		return p.takeError(s.name, r)
	}
	return nil
}

// invoke is call without turning the PJRT_Error into an error.
func invoke[T any, P args[T]](p *Plugin, s slot, a P) uintptr {
	f := p.function(s)
	if f == 0 {
		return absent
	}
	return invokeAt[T](f, a)
}

// invokeAt calls the function at f.
func invokeAt[T any, P args[T]](f uintptr, a P) uintptr {
	a.hdr().size = unsafe.Sizeof(*a)
	r, _, _ := purego.SyscallN(f, uintptr(unsafe.Pointer(a)))
	return r
}

// absent stands for the error of a function that the plugin lacks.
const absent = ^uintptr(0)

// takeError reads and frees a PJRT_Error.
func (p *Plugin) takeError(name string, h uintptr) error {
	switch h {
	case 0:
		return nil
	case absent:
		return &Error{Call: name, Code: Unimplemented, Message: fmt.Sprintf("the plugin's PJRT 0.%d has no such function", p.minor)}
	}
	e := &Error{Call: name, Code: Unknown}
	m := &listArgs{h: h}
	invoke(p, slotErrorMessage, m)
	e.Message = text(m.p, m.n)
	c := &intArgs{h: h}
	if r := invoke(p, slotErrorGetCode, c); r == 0 {
		e.Code = Code(c.out)
	}
	invoke(p, slotErrorDestroy, &handleArgs{h: h})
	return e
}

// Shapes of calls that many functions share.

func (p *Plugin) callWord(s slot, h uintptr) (uintptr, error) {
	a := &wordArgs{h: h}
	err := call(p, s, a)
	return a.out, err
}

func (p *Plugin) callInt(s slot, h uintptr) (int, error) {
	a := &intArgs{h: h}
	err := call(p, s, a)
	return int(a.out), err
}

func (p *Plugin) callBool(s slot, h uintptr) (bool, error) {
	a := &boolArgs{h: h}
	err := call(p, s, a)
	return a.out, err
}

func (p *Plugin) callString(s slot, h uintptr) (string, error) {
	a := &listArgs{h: h}
	if err := call(p, s, a); err != nil {
		return "", err
	}
	return text(a.p, a.n), nil
}

func (p *Plugin) callList(s slot, h uintptr) ([]uintptr, error) {
	a := &listArgs{h: h}
	if err := call(p, s, a); err != nil {
		return nil, err
	}
	return copied[uintptr](a.p, a.n), nil
}
