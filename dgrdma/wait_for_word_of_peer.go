package dgrdma

import (
	"context"
	"errors"
)

// errNoRegion is why nothing can be waited for.
var errNoRegion = errors.New("dgrdma: this connection's memory is no Region, whose words can be waited for: name one in Config.Memory")

// Wait blocks until ready says yes to the word at addr of the memory that this peer writes
// into, a Region, and returns that word. It looks at once and after every write of the word,
// and drives the endpoint in that time, as [Endpoint.Await] does. A word that is ready wins over
// all else.
//
// It ends with the connection, too, and returns why: when the peer disconnects, or is given
// up, or when this side closes it. A peer that is killed is given up when something was posted
// to it, or by [Config.KeepAlive].
func (c *Conn) Wait(ctx context.Context, addr uint32, ready func(word uint32) bool) (uint32, error) {
	r := c.region()
	if r == nil {
		return 0, errNoRegion
	}
	w, err := r.watched(addr, ready)
	if err != nil {
		return 0, err
	}
	defer w.over()
	for {
		if c.ep.Await(ctx, w.waiter, w.look, nil, c.Done()) {
			return w.word, nil
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err := c.Err(); err != nil {
			return 0, err
		}
		if err := c.ep.Err(); err != nil {
			return 0, err
		}
		// Reset began another life.
	}
}

// WaitFor blocks until the word at addr is value, or until Wait ends otherwise.
func (c *Conn) WaitFor(ctx context.Context, addr, value uint32) error {
	_, err := c.Wait(ctx, addr, func(v uint32) bool { return v == value })
	return err
}

// region returns the memory that the peer writes into, if a goroutine can wait on it.
func (c *Conn) region() *Region {
	for _, m := range []Memory{c.Memory(), c.cfg.Memory} {
		if m, ok := m.(interface{ region() *Region }); ok {
			return m.region()
		}
	}
	return nil
}
