package capi

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The profiler's table, PLUGIN_Profiler_Api: its size, a private word, then functions. Their arguments have no
// extensions, and its errors are of a kind of their own.
const (
	profilerErrorDestroy = 16 + 8*iota
	profilerErrorMessage
	profilerErrorCode
	profilerCreate
	profilerDestroy
	profilerStart
	profilerStop
	profilerCollect
)

// Profiler records what a plugin's devices do, as the vendor's tools show it. Start, Stop, Collect, Close.
type Profiler struct {
	p *Plugin
	h uintptr
}

type profilerArgs struct {
	size uintptr
	a    uintptr // the profiler, or the options
	b    uintptr // the options' length, or the buffer
	c    uintptr // the new profiler, or the buffer's length
}

type profilerErrorArgs struct {
	size, priv, err uintptr
	a, b            uintptr // the message, or the code
}

// NewProfiler starts a session. options is a serialised tensorflow.ProfileOptions, or nil for the plugin's own choice.
// Plugins without the profiler extension answer Unimplemented.
func (p *Plugin) NewProfiler(options []byte) (*Profiler, error) {
	a := &profilerArgs{b: uintptr(len(options))}
	var pin runtime.Pinner
	defer pin.Unpin()
	if len(options) > 0 {
		pin.Pin(&options[0])
		a.a = uintptr(unsafe.Pointer(&options[0]))
	}
	if err := p.profile("PLUGIN_Profiler_Create", profilerCreate, a, unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	return &Profiler{p, a.c}, nil
}

// Start begins recording.
func (r *Profiler) Start() error { return r.do("PLUGIN_Profiler_Start", profilerStart) }

// Stop ends recording.
func (r *Profiler) Stop() error { return r.do("PLUGIN_Profiler_Stop", profilerStop) }

// Collect returns what was recorded: a serialised XSpace, as TensorBoard's profile plugin and XProf read it.
func (r *Profiler) Collect() ([]byte, error) {
	const name = "PLUGIN_Profiler_CollectData"
	a := &profilerArgs{a: r.h}
	if err := r.p.profile(name, profilerCollect, a, unsafe.Sizeof(*a)); err != nil {
		return nil, err
	}
	if a.b != 0 { // the plugin's own memory
		return copied[byte](a.b, a.c), nil
	}
	data := make([]byte, a.c)
	if len(data) == 0 {
		return nil, nil
	}
	a.b = uintptr(unsafe.Pointer(&data[0]))
	err := r.p.profile(name, profilerCollect, a, unsafe.Sizeof(*a))
	runtime.KeepAlive(data)
	return data, err
}

// Close ends the session. It may be called twice.
func (r *Profiler) Close() error {
	if r.h == 0 {
		return nil
	}
	err := r.do("PLUGIN_Profiler_Destroy", profilerDestroy)
	r.h = 0
	return err
}

func (r *Profiler) do(name string, offset uintptr) error {
	a := &profilerArgs{a: r.h}
	return r.p.profile(name, offset, a, 16) // the profiler alone
}

// profile calls a function of the profiler's table. What the arguments point to must be kept alive by the caller; size
// is that of the function's arguments, which are the front of a.
func (p *Plugin) profile(name string, offset uintptr, a *profilerArgs, size uintptr) error {
	e := p.extension(extensionProfiler)
	var table uintptr
	if e != 0 && word(e) >= 32 {
		table = word(e + 24)
	}
	if table == 0 || offset+8 > word(table) || word(table+offset) == 0 {
		return &Error{Call: name, Code: Unimplemented, Message: "the plugin has no profiler"}
	}
	a.size = size
	r, _, _ := purego.SyscallN(word(table+offset), uintptr(unsafe.Pointer(a)))
	if r == 0 {
		return nil
	}
	err := &Error{Call: name, Code: Unknown}
	m := &profilerErrorArgs{err: r}
	m.size = unsafe.Sizeof(*m)
	purego.SyscallN(word(table+profilerErrorMessage), uintptr(unsafe.Pointer(m)))
	err.Message = text(m.a, m.b)
	c := &profilerErrorArgs{err: r}
	c.size = 28
	if s, _, _ := purego.SyscallN(word(table+profilerErrorCode), uintptr(unsafe.Pointer(c))); s == 0 {
		err.Code = Code(int32(c.a))
	}
	d := &profilerErrorArgs{err: r}
	d.size = 24
	purego.SyscallN(word(table+profilerErrorDestroy), uintptr(unsafe.Pointer(d)))
	if err.Message == "" {
		err.Message = fmt.Sprintf("error %d", err.Code)
	}
	return err
}
