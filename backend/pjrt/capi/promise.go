package capi

// Promise is a buffer whose value is still to be given: for what another component will produce.
type Promise struct {
	c       *Client
	buffer  *Buffer
	fulfill uintptr
}

// NewPromise returns a buffer in memory m that Fulfill will make an alias of another one. Not all plugins can.
func (c *Client) NewPromise(t ElementType, dims []int64, m *Memory) (*Buffer, *Promise, error) {
	h, err := c.get(slotClientCreateAliasBuffer)
	if err != nil {
		return nil, nil, err
	}
	a := &createAliasArgs{client: h, memory: m.h, dims: first(dims), numDims: uintptr(len(dims)), typ: int32(t), layout: rowMajor(len(dims))}
	if err := call(c.p, slotClientCreateAliasBuffer, a); err != nil {
		return nil, nil, err
	}
	b := newBuffer(c.p, a.buffer)
	return b, &Promise{c: c, buffer: b, fulfill: a.fulfill}, nil
}

// Fulfill makes the promised buffer an alias of b. Once.
func (p *Promise) Fulfill(b *Buffer) error {
	h, err := b.get(slotClientFulfillAliasBuffer)
	if err != nil {
		return err
	}
	return call(p.c.p, slotClientFulfillAliasBuffer, &fulfillAliasArgs{client: p.c.h.Load(), buffer: h, fulfill: p.fulfill})
}

// Fail makes the promised buffer, and all that is computed from it, fail. Once.
func (p *Promise) Fail(code Code, message string) error {
	m := append([]byte(message), 0)
	err := call(p.c.p, slotClientFulfillAliasBuffer, &fulfillAliasArgs{
		client: p.c.h.Load(), code: int32(code), message: first(m), messageSize: uintptr(len(message)), fulfill: p.fulfill,
	})
	if CodeOf(err) == code { // XLA returns the error that it has been given
		return nil
	}
	return err
}
