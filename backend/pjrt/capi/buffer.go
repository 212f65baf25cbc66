package capi

import (
	"runtime"
	"unsafe"
)

// ElementType is PJRT_Buffer_Type.
type ElementType int32

// The element types that Gesso's dtypes correspond to.
const (
	InvalidType ElementType = 0
	Pred        ElementType = 1
	S8          ElementType = 2
	S16         ElementType = 3
	S32         ElementType = 4
	S64         ElementType = 5
	U8          ElementType = 6
	F16         ElementType = 10
	F32         ElementType = 11
	F64         ElementType = 12
	BF16        ElementType = 13
	F8E5M2      ElementType = 16
	F8E4M3FN    ElementType = 17
)

// Semantics says what a plugin may do with host memory that becomes a buffer.
type Semantics int32

// The semantics. Memory is used until the event of BufferFromHost is ready.
const (
	CopyDuringCall   Semantics = iota // the memory is free when the call returns
	UntilTransferred                  // the memory must not change until the transfer has ended
	ZeroCopy                          // as long as the buffer lives, the memory may be the buffer
	MutableZeroCopy                   // as ZeroCopy, and programs may write to it
)

// HostBuffer is a value in host memory, on its way to a device.
type HostBuffer struct {
	Data        []byte
	Type        ElementType
	Dims        []int64
	ByteStrides []int64 // nil means dense, row-major
	Semantics   Semantics
	Device      *Device
	Memory      *Memory // nil means the device's default
}

// Buffer is a value on a device.
type Buffer struct{ handle }

func newBuffer(p *Plugin, h uintptr) *Buffer {
	b := &Buffer{}
	b.set(p, h)
	return b
}

// BufferFromHost starts a transfer to a device. The host memory is kept alive until the event is ready, whether or not
// the caller closes the event.
func (c *Client) BufferFromHost(b HostBuffer) (*Buffer, *Event, error) {
	h, err := c.get(slotClientBufferFromHost)
	if err != nil {
		return nil, nil, err
	}
	a := &bufferFromHostArgs{
		client: h, data: first(b.Data), typ: int32(b.Type), dims: first(b.Dims), numDims: uintptr(len(b.Dims)),
		strides: first(b.ByteStrides), numStrides: uintptr(len(b.ByteStrides)), semantics: int32(b.Semantics),
	}
	if len(b.Data) == 0 {
		a.data = unsafe.Pointer(&noData[0]) // an empty value too has an address
	}
	if b.Device != nil {
		a.device = b.Device.h
	}
	if b.Memory != nil {
		a.memory = b.Memory.h
	}
	if err := call(c.p, slotClientBufferFromHost, a); err != nil {
		return nil, nil, err
	}
	if b.Semantics != CopyDuringCall {
		c.p.hold(a.done, b.Data)
	}
	runtime.KeepAlive(b.Data)
	return newBuffer(c.p, a.buffer), newEvent(c.p, a.done), nil
}

var noData [64]byte

// ToHost starts a transfer of the dense, row-major value into dst, which must have its size and is kept alive until the
// event is ready.
func (b *Buffer) ToHost(dst []byte) (*Event, error) {
	h, err := b.get(slotBufferToHost)
	if err != nil {
		return nil, err
	}
	dims, err := b.Dims()
	if err != nil {
		return nil, err
	}
	// Without a layout the device's own would come, which need not be row-major.
	layout := rowMajor(len(dims))
	a := &toHostArgs{src: h, layout: layout, dst: first(dst), dstSize: uintptr(len(dst))}
	if len(dst) == 0 {
		a.dst = unsafe.Pointer(&noData[0])
	}
	if err := call(b.p, slotBufferToHost, a); err != nil {
		return nil, err
	}
	b.p.hold(a.event, dst)
	return newEvent(b.p, a.event), nil
}

// rowMajor is a PJRT_Buffer_MemoryLayout with the last axis fastest.
func rowMajor(rank int) *layoutArgs {
	order := make([]int64, rank)
	for i := range order {
		order[i] = int64(rank - 1 - i)
	}
	l := &layoutArgs{}
	l.size, l.tiled.size = unsafe.Sizeof(*l), unsafe.Sizeof(l.tiled)
	l.tiled.minorToMajor, l.tiled.minorToMajorSize = first(order), uintptr(rank)
	return l
}

// ElementType returns the type of the elements.
func (b *Buffer) ElementType() (ElementType, error) {
	h, err := b.get(slotBufferElementType)
	if err != nil {
		return InvalidType, err
	}
	t, err := b.p.callInt(slotBufferElementType, h)
	return ElementType(t), err
}

// Dims returns the shape.
func (b *Buffer) Dims() ([]int64, error) {
	h, err := b.get(slotBufferDimensions)
	if err != nil {
		return nil, err
	}
	a := &listArgs{h: h}
	if err := call(b.p, slotBufferDimensions, a); err != nil {
		return nil, err
	}
	return copied[int64](a.p, a.n), nil
}

// OnDeviceSize returns the bytes that the value takes on the device, padding included.
func (b *Buffer) OnDeviceSize() (int64, error) {
	h, err := b.get(slotBufferOnDeviceSize)
	if err != nil {
		return 0, err
	}
	n, err := b.p.callWord(slotBufferOnDeviceSize, h)
	return int64(n), err
}

// Device returns where the value lies.
func (b *Buffer) Device() (*Device, error) {
	h, err := b.get(slotBufferDevice)
	if err != nil {
		return nil, err
	}
	d, err := b.p.callWord(slotBufferDevice, h)
	return &Device{b.p, d}, err
}

// Memory returns the memory space in which the value lies.
func (b *Buffer) Memory() (*Memory, error) {
	h, err := b.get(slotBufferMemory)
	if err != nil {
		return nil, err
	}
	m, err := b.p.callWord(slotBufferMemory, h)
	return &Memory{b.p, m}, err
}

// ReadyEvent returns an event that is ready when the value is, with the error of the execution that should have made it.
func (b *Buffer) ReadyEvent() (*Event, error) {
	h, err := b.get(slotBufferReadyEvent)
	if err != nil {
		return nil, err
	}
	e, err := b.p.callWord(slotBufferReadyEvent, h)
	if err != nil {
		return nil, err
	}
	return newEvent(b.p, e), nil
}

// CopyToDevice starts a copy to another device.
func (b *Buffer) CopyToDevice(d *Device) (*Buffer, error) { return b.copy(slotBufferCopyToDevice, d.h) }

// CopyToMemory starts a copy to another memory space.
func (b *Buffer) CopyToMemory(m *Memory) (*Buffer, error) { return b.copy(slotBufferCopyToMemory, m.h) }

func (b *Buffer) copy(s slot, to uintptr) (*Buffer, error) {
	h, err := b.get(s)
	if err != nil {
		return nil, err
	}
	a := &pairArgs{h: h, to: to}
	if err := call(b.p, s, a); err != nil {
		return nil, err
	}
	return newBuffer(b.p, a.out), nil
}

// IsDeleted reports whether the memory is gone: by Delete, or because a program took it over.
func (b *Buffer) IsDeleted() (bool, error) {
	h, err := b.get(slotBufferIsDeleted)
	if err != nil {
		return false, err
	}
	return b.p.callBool(slotBufferIsDeleted, h)
}

// IsOnCPU reports whether the value lies in memory of the host.
func (b *Buffer) IsOnCPU() (bool, error) {
	h, err := b.get(slotBufferIsOnCPU)
	if err != nil {
		return false, err
	}
	return b.p.callBool(slotBufferIsOnCPU, h)
}

// Delete frees the memory when the programs issued before have used it. The buffer must be closed nevertheless.
func (b *Buffer) Delete() error {
	h, err := b.get(slotBufferDelete)
	if err != nil {
		return err
	}
	return call(b.p, slotBufferDelete, &handleArgs{h: h})
}

// Close frees the buffer and its memory when the programs issued before have used it.
func (b *Buffer) Close() error { return b.close(slotBufferDestroy) }
