package capi

// Device is a device of a client. It belongs to the client.
type Device struct {
	p *Plugin
	h uintptr
}

// DeviceDescription is what is known of a device without owning it. It belongs to a client or a topology.
type DeviceDescription struct {
	p *Plugin
	h uintptr
}

// Memory is a memory space of devices. It belongs to the client.
type Memory struct {
	p *Plugin
	h uintptr
}

func wrapDevices(p *Plugin, hs []uintptr) []*Device {
	ds := make([]*Device, len(hs))
	for i, h := range hs {
		ds[i] = &Device{p, h}
	}
	return ds
}

func wrapMemories(p *Plugin, hs []uintptr) []*Memory {
	ms := make([]*Memory, len(hs))
	for i, h := range hs {
		ms[i] = &Memory{p, h}
	}
	return ms
}

// Description returns what the device is.
func (d *Device) Description() (*DeviceDescription, error) {
	h, err := d.p.callWord(slotDeviceGetDescription, d.h)
	if err != nil {
		return nil, err
	}
	return &DeviceDescription{d.p, h}, nil
}

// LocalHardwareID returns the device's number on this host.
func (d *Device) LocalHardwareID() (int, error) { return d.p.callInt(slotDeviceLocalHardwareID, d.h) }

// Memories returns the memory spaces that the device can use.
func (d *Device) Memories() ([]*Memory, error) {
	hs, err := d.p.callList(slotDeviceAddressableMemories, d.h)
	return wrapMemories(d.p, hs), err
}

// DefaultMemory returns the space in which buffers lie when nothing else is said.
func (d *Device) DefaultMemory() (*Memory, error) {
	h, err := d.p.callWord(slotDeviceDefaultMemory, d.h)
	if err != nil {
		return nil, err
	}
	return &Memory{d.p, h}, nil
}

// DeviceMemoryStats is in bytes, but for Allocations; what a plugin doesn't tell is -1.
type DeviceMemoryStats struct {
	InUse, PeakInUse, Allocations, LargestAllocation, Limit int64
	Reserved, PeakReserved, ReservableLimit                 int64
	LargestFreeBlock, Pool, PeakPool                        int64
}

// MemoryStats returns the state of the device's allocator.
func (d *Device) MemoryStats() (DeviceMemoryStats, error) {
	a := &deviceStatsArgs{device: d.h}
	if err := call(d.p, slotDeviceMemoryStats, a); err != nil {
		return DeviceMemoryStats{}, err
	}
	s := DeviceMemoryStats{InUse: a.bytesInUse}
	for i, f := range []*int64{
		&s.PeakInUse, &s.Allocations, &s.LargestAllocation, &s.Limit, &s.Reserved, &s.PeakReserved, &s.ReservableLimit,
		&s.LargestFreeBlock, &s.Pool, &s.PeakPool,
	} {
		if *f = -1; a.optional[i].set {
			*f = a.optional[i].value
		}
	}
	return s, nil
}

// ID returns the device's number, unique among all processes.
func (d *DeviceDescription) ID() (int, error) { return d.p.callInt(slotDescriptionID, d.h) }

// ProcessIndex returns the process that owns the device.
func (d *DeviceDescription) ProcessIndex() (int, error) {
	return d.p.callInt(slotDescriptionProcessIndex, d.h)
}

// Kind returns the vendor's name, such as "TPU v6 lite".
func (d *DeviceDescription) Kind() (string, error) { return d.p.callString(slotDescriptionKind, d.h) }

// String describes the device for people.
func (d *DeviceDescription) String() string {
	s, err := d.p.callString(slotDescriptionToString, d.h)
	if err != nil {
		return err.Error()
	}
	return s
}

// Attributes returns what the plugin says of the device, such as coords or device_memory_bytes_limit.
func (d *DeviceDescription) Attributes() (map[string]any, error) {
	a := &countFirstArgs{h: d.h}
	if err := call(d.p, slotDescriptionAttributes, a); err != nil {
		return nil, err
	}
	return readNamed(a.p, a.n), nil
}

// ID returns the memory space's number.
func (m *Memory) ID() (int, error) { return m.p.callInt(slotMemoryID, m.h) }

// Kind returns for instance "device", "pinned_host" or "unpinned_host".
func (m *Memory) Kind() (string, error) { return m.p.callString(slotMemoryKind, m.h) }

// Devices returns the devices that can use the space.
func (m *Memory) Devices() ([]*Device, error) {
	hs, err := m.p.callList(slotMemoryDevices, m.h)
	return wrapDevices(m.p, hs), err
}
