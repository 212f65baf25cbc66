package capi

import (
	"fmt"
	"runtime"

	"github.com/ebitengine/purego"
)

// Types of extensions, as in pjrt_c_api.h.
const (
	extensionProfiler = 1
	extensionLayouts  = 4
)

// The functions of the layouts extension lie behind its head; like PJRT_Api, it only grows.
var (
	layoutDestroy       = slot{24, "PJRT_Layouts_MemoryLayout_Destroy"}
	layoutSerialize     = slot{32, "PJRT_Layouts_MemoryLayout_Serialize"}
	layoutClientDefault = slot{40, "PJRT_Layouts_PJRT_Client_GetDefaultLayout"}
	layoutOfBuffer      = slot{48, "PJRT_Layouts_PJRT_Buffer_MemoryLayout"}
)

// extension returns the plugin's extension of a type, 0 if it has none.
func (p *Plugin) extension(kind int) uintptr {
	for e := word(p.base + 8); e != 0; e = word(e + 16) { // struct_size, type, next
		if int(int32(word(e+8))) == kind {
			return e
		}
	}
	return 0
}

// extend calls a function of an extension, whose slot holds its offset.
func extend[T any, P args[T]](p *Plugin, kind int, s slot, a P) error {
	e := p.extension(kind)
	if e == 0 || uintptr(s.index)+8 > word(e) || word(e+uintptr(s.index)) == 0 {
		return &Error{Call: s.name, Code: Unimplemented, Message: fmt.Sprintf("the plugin has no extension %d with this function", kind)}
	}
	if r := invokeAt[T](word(e+uintptr(s.index)), a); r != 0 {
		return p.takeError(s.name, r)
	}
	return nil
}

// Layout returns how the value lies in the device's memory, in the plugin's words, such as "{1,0:T(8,128)}". Plugins
// without the layouts extension answer Unimplemented.
func (b *Buffer) Layout() (string, error) {
	h, err := b.get(layoutOfBuffer)
	if err != nil {
		return "", err
	}
	a := &wordArgs{h: h}
	if err := extend(b.p, extensionLayouts, layoutOfBuffer, a); err != nil {
		return "", err
	}
	return b.p.takeLayout(a.out)
}

// DefaultLayout returns how a value of the type would lie in a device's memory.
func (c *Client) DefaultLayout(t ElementType, dims []int64) (string, error) {
	h, err := c.get(layoutClientDefault)
	if err != nil {
		return "", err
	}
	a := &defaultLayoutArgs{client: h, typ: int32(t), dims: first(dims), numDims: uintptr(len(dims))}
	if err := extend(c.p, extensionLayouts, layoutClientDefault, a); err != nil {
		return "", err
	}
	runtime.KeepAlive(dims)
	return c.p.takeLayout(a.layout)
}

// takeLayout writes a layout as text and frees it.
func (p *Plugin) takeLayout(h uintptr) (string, error) {
	a := &serializeLayoutArgs{layout: h}
	err := extend(p, extensionLayouts, layoutSerialize, a)
	layout := ""
	if err == nil {
		layout = text(a.p, a.n)
		if a.deleter != 0 {
			purego.SyscallN(a.deleter, a.backing)
		}
	}
	if derr := extend(p, extensionLayouts, layoutDestroy, &handleArgs{h: h}); err == nil {
		err = derr
	}
	return layout, err
}
