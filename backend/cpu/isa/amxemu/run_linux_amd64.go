package amxemu

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// flag comes before the byte of package isa that makes AMX available.
const flag = "gesso: amx is emulated if a 1 follows:"

// Result is how a program ended.
type Result struct {
	ExitCode     int
	Instructions int // carried out by the emulator
}

// Run runs a program of this module with AMX emulated, and waits for it. Programs that it
// starts in turn are not emulated. The error is one of the emulation, such as tiles that a thread has never released; the
// program's own is its exit code.
func Run(path string, args []string, attr *os.ProcAttr) (Result, error) {
	runtime.LockOSThread() // a tracee belongs to a thread
	defer runtime.UnlockOSThread()
	addr, err := flagAddress(path)
	if err != nil {
		return Result{}, err
	}
	a := *attr
	if a.Sys == nil {
		a.Sys = &unix.SysProcAttr{}
	}
	a.Sys.Ptrace = true
	p, err := os.StartProcess(path, append([]string{path}, args...), &a)
	if err != nil {
		return Result{}, err
	}
	t := &tracer{pid: p.Pid, threads: map[int]*Machine{}}
	res, err := t.run(addr)
	if err != nil {
		_ = unix.Kill(t.pid, unix.SIGKILL)
		t.reap()
	}
	_ = p.Release()
	held := 0
	for _, m := range t.threads {
		res.Instructions += m.Count
		if m.configured {
			held++
		}
	}
	if err == nil && res.ExitCode == 0 && held > 0 {
		err = fmt.Errorf("%d threads have ended with tiles configured", held)
	}
	return res, err
}

func flagAddress(path string) (uint64, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if f.Type != elf.ET_EXEC {
		return 0, fmt.Errorf("%s: position-independent, expected an ordinary executable", path)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&elf.SHF_WRITE == 0 {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		if i := bytes.Index(data, []byte(flag)); i >= 0 {
			return s.Addr + uint64(i+len(flag)), nil
		}
	}
	return 0, fmt.Errorf("%s: no program with package isa", path)
}

type tracer struct {
	pid     int
	threads map[int]*Machine
}

func (t *tracer) run(flag uint64) (Result, error) {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(t.pid, &ws, unix.WALL, nil); err != nil {
		return Result{}, err
	}
	const exitKill = 0x100000
	if err := unix.PtraceSetOptions(t.pid, unix.PTRACE_O_TRACECLONE|exitKill); err != nil {
		return Result{}, fmt.Errorf("ptrace: %w", err)
	}
	if err := (memory{t.pid}).Write(flag, []byte{1}); err != nil {
		return Result{}, err
	}
	t.threads[t.pid] = &Machine{}
	if err := unix.PtraceCont(t.pid, 0); err != nil {
		return Result{}, err
	}
	for {
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return Result{}, err
		case ws.Exited() && tid == t.pid:
			return Result{ExitCode: ws.ExitStatus()}, nil
		case ws.Signaled() && tid == t.pid:
			return Result{}, fmt.Errorf("ended by %v", ws.Signal())
		case !ws.Stopped():
			continue
		}
		signal, err := t.stopped(tid, &ws)
		if err != nil {
			return Result{}, err
		}
		if err := unix.PtraceCont(tid, int(signal)); err != nil && !errors.Is(err, unix.ESRCH) {
			return Result{}, fmt.Errorf("ptrace: %w", err)
		}
	}
}

// reap waits for the end of a program that was killed: the system tells that of its first thread after all others'.
func (t *tracer) reap() {
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		if err != nil && !errors.Is(err, unix.EINTR) || tid == t.pid && (ws.Exited() || ws.Signaled()) {
			return
		}
	}
}

// stopped returns the signal that the thread goes on with, 0 for none.
func (t *tracer) stopped(tid int, ws *unix.WaitStatus) (unix.Signal, error) {
	m, known := t.threads[tid]
	if !known {
		m = &Machine{}
		t.threads[tid] = m
	}
	switch s := ws.StopSignal(); {
	case s == unix.SIGTRAP, s == unix.SIGSTOP && !known: // a new thread, or the news of one
		return 0, nil
	case s == unix.SIGILL:
		ok, err := m.illegal(tid)
		if ok || err != nil {
			return 0, err
		}
		return s, nil
	default:
		return s, nil
	}
}

// illegal carries out the AMX instructions that the thread stands at, and reports whether there was one.
func (m *Machine) illegal(tid int) (bool, error) {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return false, err
	}
	general := []*uint64{&regs.Rax, &regs.Rcx, &regs.Rdx, &regs.Rbx, &regs.Rsp, &regs.Rbp, &regs.Rsi, &regs.Rdi,
		&regs.R8, &regs.R9, &regs.R10, &regs.R11, &regs.R12, &regs.R13, &regs.R14, &regs.R15}
	mem := memory{tid}
	for first := true; ; first = false {
		var code [16]byte
		if err := mem.Read(regs.Rip, code[:]); err != nil {
			return false, err
		}
		n, err := m.Step(code[:], func(i int) uint64 { return *general[i] }, mem)
		if errors.Is(err, ErrNotAMX) {
			if first {
				return false, nil
			}
			return true, unix.PtraceSetRegs(tid, &regs)
		}
		if err != nil {
			return false, fmt.Errorf("at %#x: %w", regs.Rip, err)
		}
		regs.Rip += uint64(n)
	}
}

// memory is that of a stopped thread's process.
type memory struct{ pid int }

func (m memory) Read(addr uint64, dst []byte) error {
	local := []unix.Iovec{{Base: &dst[0], Len: uint64(len(dst))}}
	n, err := unix.ProcessVMReadv(m.pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(dst)}}, 0)
	return transfer("read", addr, n, len(dst), err)
}

func (m memory) Write(addr uint64, src []byte) error {
	local := []unix.Iovec{{Base: &src[0], Len: uint64(len(src))}}
	n, err := unix.ProcessVMWritev(m.pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(src)}}, 0)
	return transfer("write", addr, n, len(src), err)
}

func transfer(what string, addr uint64, n, want int, err error) error {
	if err == nil && n != want {
		err = unix.EFAULT
	}
	if err != nil {
		return fmt.Errorf("%s %d bytes at %#x: %w", what, want, addr, err)
	}
	return nil
}
