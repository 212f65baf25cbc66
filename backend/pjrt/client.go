package pjrt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/diskcache"
	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// Options for New. The zero value takes the plugin as it is.
type Options struct {
	Name     string             // what Platform returns; empty takes the plugin's own name
	Client   map[string]any     // the plugin's options for its client, see capi.ClientOptions
	Store    capi.KeyValueStore // shared by the processes of one job; nil for a single process
	Flags    map[string]any     // XLA's debug options for every program, beside those that Gesso sets
	HostCopy bool               // never use host memory in place, even where the device is the host
	InFlight int64              // bytes of results of executions that have not ended; 0 means 1 GiB
	Text     stablehlo.Options  // how graphs become StableHLO
	Cache    *diskcache.Cache   // of compiled programs; nil compiles all in this process

	// Adapt, if set, changes Text and Flags when the kind of the devices is known.
	Adapt func(o *Options, kind string)
}

// Client is a plugin's client with its devices.
type Client struct {
	o       Options
	c       *capi.Client
	devices []device
	version string
	family  string      // the plugin's own name for its devices
	target  string      // the devices that programs are compiled for, as part of a key
	onHost  bool        // the devices' memory is the host's
	unkept  atomic.Bool // the plugin can't serialise programs
	streams []*stream
	janitor *janitor
	mem     meter

	mu     sync.Mutex // guards what follows
	closed bool
	values list
	exes   map[*Executable]struct{}
}

// device is one of the client's, with its description read once.
type device struct {
	d    *capi.Device
	id   int
	info backend.Device
}

var _ backend.Client = (*Client)(nil)

// plugins are the libraries of this process by path: a library is loaded and initialised once.
var plugins sync.Map

type loading struct {
	once sync.Once
	p    *capi.Plugin
	err  error
}

// Load loads and initialises a plugin, or returns it if this process has done so before.
func Load(path string) (*capi.Plugin, error) {
	v, _ := plugins.LoadOrStore(path, &loading{})
	l := v.(*loading)
	l.once.Do(func() {
		if l.p, l.err = capi.Load(path); l.err == nil {
			if err := l.p.Initialize(); err != nil {
				l.err = fmt.Errorf("plugin %s: %w", path, err)
			}
		}
	})
	return l.p, l.err
}

// New starts a client of the plugin at path.
func New(path string, o Options) (*Client, error) {
	p, err := Load(path)
	if err != nil {
		return nil, err
	}
	cc, err := p.NewClient(capi.ClientOptions{Options: o.Client, Store: o.Store})
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	c := &Client{o: o, c: cc, exes: map[*Executable]struct{}{}}
	if err := c.describe(p); err != nil {
		cc.Close()
		return nil, fmt.Errorf("plugin %s: %w", path, err)
	}
	if c.o.Adapt != nil {
		c.o.Adapt(&c.o, c.devices[0].info.Kind)
	}
	if c.o.InFlight == 0 {
		c.o.InFlight = 1 << 30
	}
	c.mem.init()
	c.janitor = newJanitor()
	for range c.devices {
		c.streams = append(c.streams, newStream(c.o.InFlight))
	}
	return c, nil
}

// describe reads what doesn't change.
func (c *Client) describe(p *capi.Plugin) error {
	name, err := c.c.PlatformName()
	if err != nil {
		return err
	}
	c.family = name
	if name == "cpu" {
		c.o.Flags = withDefaults(c.o.Flags, cpuFlags)
		if _, minor := p.Version(); minor < exactErf {
			c.o.Text.ErfInPrimitives = true
		}
	}
	c.onHost = name == "cpu" && !c.o.HostCopy
	if c.o.Name == "" {
		c.o.Name = name
	}
	version, err := c.c.PlatformVersion()
	if err != nil {
		return err
	}
	detail := Version(p)
	c.version = CompilerVersion(p, version)
	var kinds []string
	for _, d := range c.c.AddressableDevices() {
		desc, err := d.Description()
		if err != nil {
			return err
		}
		id, err := desc.ID()
		if err != nil {
			return err
		}
		kind, err := desc.Kind()
		if err != nil {
			return err
		}
		info := backend.Device{Kind: kind, Detail: detail}
		if s, err := d.MemoryStats(); err == nil && s.Limit > 0 {
			info.Memory = s.Limit
		} else if a, err := desc.Attributes(); err == nil {
			info.Memory, _ = a["device_memory_bytes_limit"].(int64)
		}
		c.devices = append(c.devices, device{d, id, info})
		kinds = append(kinds, kind)
	}
	if len(c.devices) == 0 {
		return errors.New("it has no device")
	}
	c.target = Target(kinds)
	if t, err := c.c.Topology(); err == nil && c.family == "cpu" {
		if b, err := t.Serialize(); err == nil { // names the processor's features, which machine code depends on
			c.target += fmt.Sprintf(", %x", sha256.Sum256(b))[:18]
		}
	}
	return nil
}

// Platform returns the name in Options, or the plugin's.
func (c *Client) Platform() string { return c.o.Name }

// Version tells builds of the plugin apart, and the options that change results.
func (c *Client) Version() string { return c.version }

// Devices lists the devices of this process.
func (c *Client) Devices() []backend.Device {
	ds := make([]backend.Device, len(c.devices))
	for i, d := range c.devices {
		ds[i] = d.info
	}
	return ds
}

var errClosed = errors.New("the client is closed")

// check refuses devices that don't exist and clients that are closed.
func (c *Client) check(device int) error {
	if device < 0 || device >= len(c.devices) {
		return fmt.Errorf("%s: no device %d, there are %d", c.o.Name, device, len(c.devices))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("%s: %w", c.o.Name, errClosed)
	}
	return nil
}

// Compile compiles g for one device. The plugin can't be interrupted: when ctx ends first, the program is thrown away as
// soon as it is there.
func (c *Client) Compile(ctx context.Context, g *graph.Graph, device int) (backend.Executable, error) {
	if err := c.check(device); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: compile %s: %w", c.o.Name, g.Name, err)
	}
	p, err := c.o.Program(g, c.devices[device].id)
	if err != nil {
		return nil, fmt.Errorf("%s: compile %s: %w", c.o.Name, g.Name, err)
	}
	type result struct {
		e   *Executable
		err error
	}
	compiled := make(chan result, 1)
	go func() {
		e, err := c.compile(ctx, g, p, device)
		compiled <- result{e, err}
	}()
	select {
	case r := <-compiled:
		if r.err != nil {
			if oom := c.outOfMemory(r.err, "compile", g, -1, device); oom != r.err {
				return nil, oom
			}
			return nil, fmt.Errorf("%s: compile %s: %w", c.o.Name, g.Name, r.err)
		}
		return r.e, nil
	case <-ctx.Done():
		go func() {
			if r := <-compiled; r.e != nil {
				r.e.Close()
			}
		}()
		return nil, fmt.Errorf("%s: compile %s: %w", c.o.Name, g.Name, ctx.Err())
	}
}

// Upload makes a host array available. Large arrays are used in place where the device is the host.
func (c *Client) Upload(a *tensor.Array, device int) (backend.Buffer, error) {
	if err := c.check(device); err != nil {
		return nil, err
	}
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("%s: upload: %w", c.o.Name, err)
	}
	t := graph.Type{DType: a.DType, Shape: a.Shape.Clone()}
	et, ok := elementTypes[a.DType]
	if !ok {
		return nil, fmt.Errorf("%s: upload %s: %w", c.o.Name, t, backend.ErrUnsupported)
	}
	h := capi.HostBuffer{Data: a.Data, Type: et, Dims: dims(t.Shape), Device: c.devices[device].d}
	switch {
	case len(a.Data) <= copyLimit:
		h.Semantics = capi.CopyDuringCall
	case c.onHost:
		h.Semantics = capi.ZeroCopy
	default:
		h.Semantics = capi.UntilTransferred
	}
	b, done, err := c.c.BufferFromHost(h)
	if err != nil && capi.CodeOf(err) == capi.ResourceExhausted { // there may be garbage
		c.collect()
		b, done, err = c.c.BufferFromHost(h)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: upload %s: %w", c.o.Name, t, c.outOfMemory(err, "upload", nil, int64(t.Bytes()), device))
	}
	done.Close()
	v := &value{c: c, typ: t, buf: b, device: device, host: h.Semantics == capi.ZeroCopy}
	c.adopt(v, 1)
	return newBuffer(v), nil
}

// copyLimit is the size up to which copying is cheaper than telling the plugin when it may let go.
const copyLimit = 64 << 10

// Sync waits for everything issued to the device so far.
func (c *Client) Sync(device int) error {
	if err := c.check(device); err != nil {
		return err
	}
	return c.streams[device].sync()
}

// MemoryInUse returns the bytes of results that are alive; uploads are not counted.
func (c *Client) MemoryInUse() int64 { return c.mem.live.Load() }

// Close waits for what was issued and frees everything.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	for _, s := range c.streams {
		s.stop()
	}
	c.mu.Lock()
	values := c.values.drain()
	exes := c.exes
	c.exes = nil
	c.mu.Unlock()
	c.janitor.stop()
	for _, v := range values {
		if v.buf != nil {
			v.buf.Close()
		}
	}
	for e := range exes {
		e.loaded.Close()
	}
	return c.c.Close()
}

// adopt counts a value among those that Close frees.
func (c *Client) adopt(v *value, refs int32) {
	v.refs.Store(refs)
	c.mu.Lock()
	c.values.add(v)
	c.mu.Unlock()
}

// meter counts the bytes of living results and says when a collection is due.
type meter struct {
	live    atomic.Int64
	mu      sync.Mutex
	floor   int64  // the lowest live since the last collection
	collect func() // runtime.GC, or a test's
}
