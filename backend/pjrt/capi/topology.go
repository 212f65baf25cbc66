package capi

import (
	"errors"
	"runtime"
)

// Topology describes devices that a program can be compiled for without owning them.
type Topology struct {
	handle
	borrowed bool
}

// NewTopology names devices in the plugin's way, such as "v6e:2x2" for libtpu.
func (p *Plugin) NewTopology(name string, options map[string]any) (*Topology, error) {
	if name == "" && len(options) == 0 {
		return nil, errors.New("a topology needs a name") // libtpu would make up one of its own
	}
	o, err := newNamed(options)
	if err != nil {
		return nil, err
	}
	n := append([]byte(name), 0)
	a := &topologyCreateArgs{name: first(n), nameSize: uintptr(len(name)), options: first(o.values), numOptions: uintptr(len(o.values))}
	err = call(p, slotTopologyCreate, a)
	runtime.KeepAlive(o)
	if err != nil {
		return nil, err
	}
	t := &Topology{}
	t.set(p, a.topology)
	return t, nil
}

// LoadTopology reads what Serialize gave.
func (p *Plugin) LoadTopology(data []byte) (*Topology, error) {
	a := &topologyDeserializeArgs{data: first(data), size: uintptr(len(data))}
	if err := call(p, slotTopologyDeserialize, a); err != nil {
		return nil, err
	}
	t := &Topology{}
	t.set(p, a.topology)
	return t, nil
}

// Compile compiles a program for the topology. It can't be interrupted, and a compiler may abort the process.
func (t *Topology) Compile(code []byte, format string, o CompileOptions) (*Executable, error) {
	h, err := t.get(slotCompile)
	if err != nil {
		return nil, err
	}
	options := o.Encode()
	a := &compileArgs{topology: h, program: newProgram(code, format), options: first(options), optionsSize: uintptr(len(options))}
	if err := call(t.p, slotCompile, a); err != nil {
		return nil, err
	}
	e := &Executable{}
	e.set(t.p, a.exe)
	return e, nil
}

// Devices describes the topology's devices; the descriptions belong to it.
func (t *Topology) Devices() ([]*DeviceDescription, error) {
	h, err := t.get(slotTopologyDescriptions)
	if err != nil {
		return nil, err
	}
	hs, err := t.p.callList(slotTopologyDescriptions, h)
	ds := make([]*DeviceDescription, len(hs))
	for i, h := range hs {
		ds[i] = &DeviceDescription{t.p, h}
	}
	return ds, err
}

func (t *Topology) str(s slot) (string, error) {
	h, err := t.get(s)
	if err != nil {
		return "", err
	}
	return t.p.callString(s, h)
}

// PlatformName returns for instance "tpu".
func (t *Topology) PlatformName() (string, error) { return t.str(slotTopologyPlatformName) }

// PlatformVersion returns the compiler's version; may have several lines.
func (t *Topology) PlatformVersion() (string, error) { return t.str(slotTopologyPlatformVersion) }

// Attributes returns what the plugin says of the topology.
func (t *Topology) Attributes() (map[string]any, error) {
	h, err := t.get(slotTopologyAttributes)
	if err != nil {
		return nil, err
	}
	a := &listArgs{h: h}
	if err := call(t.p, slotTopologyAttributes, a); err != nil {
		return nil, err
	}
	return readNamed(a.p, a.n), nil
}

// Serialize returns the topology as bytes that LoadTopology takes.
func (t *Topology) Serialize() ([]byte, error) {
	h, err := t.get(slotTopologySerialize)
	if err != nil {
		return nil, err
	}
	return t.p.serialize(slotTopologySerialize, h)
}

// Close frees the topology, unless it belongs to a client.
func (t *Topology) Close() error {
	if t.borrowed {
		return nil
	}
	return t.close(slotTopologyDestroy)
}
