package cpu

// Mapped returns how many bytes the client has ever taken from the system for values and programs.
func (c *Client) Mapped() int {
	c.mem.mu.Lock()
	defer c.mem.mu.Unlock()
	return c.mem.mapped
}
