package ether

// Away reports whether the interface is away, as far as c knows.
func (c *Conn) Away() bool { return c.away.Load() }
