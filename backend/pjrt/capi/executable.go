package capi

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Executable is a compiled program, not necessarily for devices of this machine.
type Executable struct{ handle }

// LoadedExecutable is a program on a client's devices.
type LoadedExecutable struct {
	handle
	exe     *Executable
	outputs int
	devices []*Device
}

func newLoaded(p *Plugin, h uintptr) (*LoadedExecutable, error) {
	l := &LoadedExecutable{exe: &Executable{}}
	l.set(p, h)
	exe, err := p.callWord(slotLoadedGetExecutable, h)
	if err != nil {
		l.Close()
		return nil, err
	}
	l.exe.set(p, exe)
	devices, err := p.callList(slotLoadedAddressableDevices, h)
	if err == nil {
		l.devices = wrapDevices(p, devices)
		l.outputs, err = l.exe.NumOutputs()
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Executable returns the program; it belongs to l.
func (l *LoadedExecutable) Executable() *Executable { return l.exe }

// AddressableDevices returns the devices of this process that the program runs on, in the order of Execute's arguments.
func (l *LoadedExecutable) AddressableDevices() []*Device { return l.devices }

// Close unloads the program. Executions should have ended.
func (l *LoadedExecutable) Close() error {
	err := l.exe.Close()
	if cerr := l.close(slotLoadedDestroy); err == nil {
		err = cerr
	}
	return err
}

// ExecuteOptions for Execute. The zero value is what most programs need.
type ExecuteOptions struct {
	LaunchID     int
	NonDonatable []int64 // arguments that the program may not take over although it was compiled to
	Device       *Device // for a program compiled without devices: where to run; then there is one row of arguments
}

// Execute starts the program: args holds one row for each of the program's devices, and so do the outputs. It returns
// before the program has run; the events, one for each device, are ready afterwards.
func (l *LoadedExecutable) Execute(args [][]*Buffer, o ExecuteOptions) (outputs [][]*Buffer, done []*Event, err error) {
	h, err := l.get(slotLoadedExecute)
	if err != nil {
		return nil, nil, err
	}
	n, numArgs := len(args), 0
	if n > 0 {
		numArgs = len(args[0])
	}
	// One block holds every list: rows of argument handles, rows of output handles, events.
	words := make([]uintptr, n*(numArgs+l.outputs+1))
	rows := make([]unsafe.Pointer, 2*n+1) // never empty
	for d, row := range args {
		if len(row) != numArgs {
			return nil, nil, &Error{slotLoadedExecute.name, InvalidArgument, "the devices' rows of arguments differ in length"}
		}
		for i, b := range row {
			if words[d*numArgs+i], err = b.get(slotLoadedExecute); err != nil {
				return nil, nil, err
			}
		}
		rows[d] = first(words[d*numArgs:])
		rows[n+d] = first(words[n*numArgs+d*l.outputs:])
	}
	events := words[n*(numArgs+l.outputs):]
	call1 := &struct {
		args    executeArgs
		options executeOptions
	}{}
	a, opt := &call1.args, &call1.options
	opt.size = unsafe.Sizeof(*opt)
	opt.launchID = int32(o.LaunchID)
	opt.nonDonatable, opt.numNonDonatable = first(o.NonDonatable), uintptr(len(o.NonDonatable))
	a.exe, a.options = h, opt
	a.args, a.outputs, a.events = unsafe.Pointer(&rows[0]), unsafe.Pointer(&rows[n]), first(events)
	a.numDevices, a.numArgs = uintptr(n), uintptr(numArgs)
	if o.Device != nil {
		a.device = o.Device.h
	}
	if err := call(l.p, slotLoadedExecute, a); err != nil {
		return nil, nil, err
	}
	runtime.KeepAlive(words)
	outputs, done = make([][]*Buffer, n), make([]*Event, n)
	for d := range n {
		row := make([]*Buffer, l.outputs)
		made := make([]Buffer, l.outputs)
		for i := range row {
			made[i].set(l.p, words[n*numArgs+d*l.outputs+i])
			row[i] = &made[i]
		}
		outputs[d], done[d] = row, newEvent(l.p, events[d])
	}
	return outputs, done, nil
}

func (e *Executable) word(s slot) (uintptr, error) {
	h, err := e.get(s)
	if err != nil {
		return 0, err
	}
	return e.p.callWord(s, h)
}

// NumOutputs returns how many results one device gives.
func (e *Executable) NumOutputs() (int, error) {
	n, err := e.word(slotExecutableNumOutputs)
	return int(n), err
}

// NumReplicas returns how many copies of the program run together.
func (e *Executable) NumReplicas() (int, error) {
	n, err := e.word(slotExecutableNumReplicas)
	return int(n), err
}

// NumPartitions returns into how many parts each copy is split.
func (e *Executable) NumPartitions() (int, error) {
	n, err := e.word(slotExecutableNumPartitions)
	return int(n), err
}

// CodeSize returns the bytes of machine code.
func (e *Executable) CodeSize() (int64, error) {
	n, err := e.word(slotExecutableCodeSize)
	return int64(n), err
}

func (e *Executable) str(s slot) (string, error) {
	h, err := e.get(s)
	if err != nil {
		return "", err
	}
	return e.p.callString(s, h)
}

// Name returns the module's name.
func (e *Executable) Name() (string, error) { return e.str(slotExecutableName) }

// Fingerprint returns bytes that are equal for equal programs compiled by equal compilers.
func (e *Executable) Fingerprint() (string, error) { return e.str(slotExecutableFingerprint) }

// OutputTypes returns the element types of the outputs.
func (e *Executable) OutputTypes() ([]ElementType, error) {
	h, err := e.get(slotExecutableOutputTypes)
	if err != nil {
		return nil, err
	}
	a := &listArgs{h: h}
	if err := call(e.p, slotExecutableOutputTypes, a); err != nil {
		return nil, err
	}
	return copied[ElementType](a.p, a.n), nil
}

// OutputDims returns the shapes of the outputs.
func (e *Executable) OutputDims() ([][]int64, error) {
	h, err := e.get(slotExecutableOutputDims)
	if err != nil {
		return nil, err
	}
	a := &outputDimsArgs{exe: h}
	if err := call(e.p, slotExecutableOutputDims, a); err != nil {
		return nil, err
	}
	shapes := make([][]int64, 0, a.num)
	at := a.dims
	for _, rank := range foreign[uintptr](a.dimSizes, a.num) {
		shapes = append(shapes, copied[int64](at, rank))
		at += 8 * rank
	}
	return shapes, nil
}

// Serialize returns the program as bytes that Client.Load takes, in another process too.
func (e *Executable) Serialize() ([]byte, error) {
	h, err := e.get(slotExecutableSerialize)
	if err != nil {
		return nil, err
	}
	return e.p.serialize(slotExecutableSerialize, h)
}

func (p *Plugin) serialize(s slot, h uintptr) ([]byte, error) {
	a := &serializeArgs{h: h}
	if err := call(p, s, a); err != nil {
		return nil, err
	}
	b := copied[byte](a.p, a.n)
	if a.deleter != 0 {
		purego.SyscallN(a.deleter, a.backing)
	}
	return b, nil
}

// OptimizedProgram returns the program as the compiler left it, and its format.
func (e *Executable) OptimizedProgram() (code []byte, format string, err error) {
	h, err := e.get(slotExecutableOptimizedProgram)
	if err != nil {
		return nil, "", err
	}
	prog := &programArgs{}
	prog.size = unsafe.Sizeof(*prog)
	a := &optimizedProgramArgs{exe: h, program: prog}
	if err := call(e.p, slotExecutableOptimizedProgram, a); err != nil { // asks for the size
		return nil, "", err
	}
	code = make([]byte, prog.codeSize)
	prog.code = first(code)
	if err := call(e.p, slotExecutableOptimizedProgram, a); err != nil {
		return nil, "", err
	}
	return code, text(uintptr(prog.format), prog.formatSize), nil
}

// Close frees the executable. That of a LoadedExecutable is closed with it.
func (e *Executable) Close() error { return e.close(slotExecutableDestroy) }
