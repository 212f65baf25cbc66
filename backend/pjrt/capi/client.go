package capi

import (
	"runtime"
	"unsafe"
)

// ClientOptions for NewClient.
type ClientOptions struct {
	Options map[string]any // the plugin's own: string, int64, []int64, float32 or bool
	Store   KeyValueStore  // shared by the processes of one job; nil for a single process
}

// Client is a plugin's runtime with its devices.
type Client struct {
	handle
	devices  []*Device
	memories []*Memory
	store    uintptr
}

// NewClient starts the runtime.
func (p *Plugin) NewClient(o ClientOptions) (*Client, error) {
	options, err := newNamed(o.Options)
	if err != nil {
		return nil, err
	}
	a := &clientCreateArgs{options: first(options.values), numOptions: uintptr(len(options.values))}
	c := &Client{}
	if o.Store != nil {
		c.store = stores.add(&storeEntry{p: p, store: o.Store})
		cb := storeCallbacks()
		a.get, a.put, a.tryGet = cb.get, cb.put, cb.tryGet
		a.getUser, a.putUser, a.tryGetUser = c.store, c.store, c.store
	}
	err = call(p, slotClientCreate, a)
	runtime.KeepAlive(options)
	if err != nil {
		stores.take(c.store)
		return nil, err
	}
	c.set(p, a.client)
	devices, err := p.callList(slotClientAddressableDevices, a.client)
	if err != nil {
		c.Close()
		return nil, err
	}
	memories, err := p.callList(slotClientAddressableMemories, a.client)
	if err != nil {
		c.Close()
		return nil, err
	}
	c.devices, c.memories = wrapDevices(p, devices), wrapMemories(p, memories)
	return c, nil
}

// Close ends the runtime. Everything that came from the client must be closed before.
func (c *Client) Close() error {
	err := c.close(slotClientDestroy)
	stores.take(c.store)
	return err
}

// Plugin returns the client's plugin.
func (c *Client) Plugin() *Plugin { return c.p }

// AddressableDevices returns the devices of this process.
func (c *Client) AddressableDevices() []*Device { return c.devices }

// AddressableMemories returns the memory spaces of this process.
func (c *Client) AddressableMemories() []*Memory { return c.memories }

// Devices returns the devices of all processes.
func (c *Client) Devices() ([]*Device, error) {
	h, err := c.get(slotClientDevices)
	if err != nil {
		return nil, err
	}
	hs, err := c.p.callList(slotClientDevices, h)
	return wrapDevices(c.p, hs), err
}

// PlatformName returns for instance "cpu" or "tpu".
func (c *Client) PlatformName() (string, error) { return c.str(slotClientPlatformName) }

// PlatformVersion returns what the plugin says of its version; may have several lines.
func (c *Client) PlatformVersion() (string, error) { return c.str(slotClientPlatformVersion) }

func (c *Client) str(s slot) (string, error) {
	h, err := c.get(s)
	if err != nil {
		return "", err
	}
	return c.p.callString(s, h)
}

// ProcessIndex returns this process's number among those of the job.
func (c *Client) ProcessIndex() (int, error) {
	h, err := c.get(slotClientProcessIndex)
	if err != nil {
		return 0, err
	}
	return c.p.callInt(slotClientProcessIndex, h)
}

// DefaultAssignment returns device ids, one row of partitions for each replica.
func (c *Client) DefaultAssignment(replicas, partitions int) ([]int32, error) {
	h, err := c.get(slotClientDefaultAssignment)
	if err != nil {
		return nil, err
	}
	ids := make([]int32, replicas*partitions)
	a := &assignmentArgs{client: h, replicas: int32(replicas), partitions: int32(partitions), size: uintptr(len(ids)), ids: first(ids)}
	return ids, call(c.p, slotClientDefaultAssignment, a)
}

// Topology returns the client's devices as something to compile for. It belongs to the client: its Close does nothing.
func (c *Client) Topology() (*Topology, error) {
	h, err := c.get(slotClientTopology)
	if err != nil {
		return nil, err
	}
	t, err := c.p.callWord(slotClientTopology, h)
	if err != nil {
		return nil, err
	}
	topology := &Topology{borrowed: true}
	topology.set(c.p, t)
	return topology, nil
}

// FormatMLIR is StableHLO as MLIR text or bytecode, FormatHLO a serialised HloModuleProto.
const (
	FormatMLIR = "mlir"
	FormatHLO  = "hlo"
)

func newProgram(code []byte, format string) *programArgs {
	f := append([]byte(format), 0)
	a := &programArgs{code: first(code), codeSize: uintptr(len(code)), format: first(f), formatSize: uintptr(len(format))}
	a.size = unsafe.Sizeof(*a)
	return a
}

// Compile compiles a program for the client's devices, and loads it. It can't be interrupted.
func (c *Client) Compile(code []byte, format string, o CompileOptions) (*LoadedExecutable, error) {
	h, err := c.get(slotClientCompile)
	if err != nil {
		return nil, err
	}
	options := o.Encode()
	a := &clientCompileArgs{client: h, program: newProgram(code, format), options: first(options), optionsSize: uintptr(len(options))}
	if err := call(c.p, slotClientCompile, a); err != nil {
		return nil, err
	}
	return newLoaded(c.p, a.exe)
}

// Load loads what Executable.Serialize gave, for the client's devices. o, if not nil, replaces the options stored in it.
func (c *Client) Load(data []byte, o *CompileOptions) (*LoadedExecutable, error) {
	h, err := c.get(slotDeserializeAndLoad)
	if err != nil {
		return nil, err
	}
	a := &deserializeArgs{client: h, data: first(data), size: uintptr(len(data))}
	if o != nil {
		options := o.Encode()
		a.options, a.optionsSize = first(options), uintptr(len(options))
	}
	if err := call(c.p, slotDeserializeAndLoad, a); err != nil {
		return nil, err
	}
	return newLoaded(c.p, a.exe)
}
