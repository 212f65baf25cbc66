package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/edsrzf/mmap-go"
	"github.com/gesso-go/gesso/internal/outfile"
)

// File is one open safetensors file, with its tensors as a [Set].
type File struct {
	Set
	path     string
	data     []byte // the whole file
	mapped   mmap.MMap
	metadata map[string]string
	closed   atomic.Bool
	read     atomic.Int64
}

// OpenFile maps a safetensors file and validates its header; no tensor is read. The error is one line that names the
// file, the key where there is one, and what was expected; it wraps fs.ErrNotExist where the file is missing.
//
// Views of the file are invalid after Close, so a File is not closed when it becomes unreachable.
func OpenFile(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if target, linkErr := os.Readlink(path); linkErr == nil {
			return nil, fmt.Errorf("%s: links to %s, which is missing: pull the model again: %w", path, target, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, outfile.Cause(err))
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a folder, expected a safetensors file", path)
	case !info.Mode().IsRegular(): // opening a pipe could wait for ever
		return nil, fmt.Errorf("%s: is not a regular file", path)
	case info.Size() == 0: // cannot be mapped
		return Parse(path, nil)
	case info.Size() > math.MaxInt:
		return nil, fmt.Errorf("%s: %d bytes are too large for this machine", path, info.Size())
	}
	h, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, outfile.Cause(err))
	}
	defer h.Close() // the mapping stays
	m, err := mmap.MapRegion(h, int(info.Size()), mmap.RDONLY, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: map %d bytes: %w", path, info.Size(), err)
	}
	f := &File{path: path, data: m, mapped: m}
	if err := f.parse(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.release(0, len(f.data)) // a large header is not needed again
	return f, nil
}

// Parse is OpenFile over the contents of a file in memory, which it keeps and doesn't copy. path is for error messages.
func Parse(path string, data []byte) (*File, error) {
	f := &File{path: path, data: data}
	if err := f.parse(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) parse() error {
	var h *header
	var err error
	if fault := f.guard(func() { h, err = parseHeader(f.data) }); fault != nil {
		err = fault
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	for i := range h.tensors {
		h.tensors[i].file = f
	}
	f.Set = Set{source: f.path, tensors: h.tensors}
	f.metadata = h.metadata
	return nil
}

var errFault = errors.New("cannot be read any more: the file was truncated while open, or the disk failed")

// guard runs read, which reads the mapping, and returns an error where the system cannot deliver the bytes: the disk
// fails, or the file has become shorter. Without it that is a signal that ends the program.
func (f *File) guard(read func()) (err error) {
	if f.mapped == nil {
		read()
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if fault, ok := p.(interface{ Addr() uintptr }); !ok || !within(f.data, fault.Addr()) {
			panic(p)
		}
		err = errFault
	}()
	read()
	return nil
}

// within reports whether addr lies in b.
func within(b []byte, addr uintptr) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return addr >= start && addr-start < uintptr(len(b))
}

// Path returns the path the file was opened with.
func (f *File) Path() string { return f.path }

// Metadata returns a copy of the file's __metadata__, such as {"format": "pt"}; it is nil where there is none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// BytesRead returns how many bytes of tensors have been handed out or copied so far; bytes asked for twice count twice.
func (f *File) BytesRead() int64 { return f.read.Load() }

// Release is [Tensor.Release] for all tensors.
func (f *File) Release() { f.release(0, len(f.data)) }

// release gives back the pages that hold data[lo:hi].
func (f *File) release(lo, hi int) {
	if f.mapped == nil || f.closed.Load() || lo >= hi { // memory that is no mapping would be zeroed
		return
	}
	lo -= lo % os.Getpagesize()
	dontNeed(f.data[lo:hi])
}

// Close unmaps the file. All views of it become invalid; a second Close does nothing.
func (f *File) Close() error {
	if f.closed.Swap(true) || f.mapped == nil {
		return nil
	}
	m := f.mapped
	if err := m.Unmap(); err != nil {
		return fmt.Errorf("%s: unmap: %w", f.path, err)
	}
	return nil
}
