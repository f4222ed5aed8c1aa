package ether

import (
	"net"

	"github.com/dgrdma/dgrdma/transport"
)

// sending is what Send keeps. It belongs to the goroutine that sends.
type sending struct {
	way   way
	calls calls
	xdp   *xdp   // nil: it was not wanted, or not to be had at first
	known uint32 // of binding.returns
}

// way is one of the two ways in which frames leave: [calls] or [xdp].
type way interface {
	// transmit takes frames from the first on, as many as it likes, and returns how many it sent, or
	// gave up and counted. 0 without an error: the first has no Ethernet address.
	transmit(batch []transport.Outgoing) (int, error)
}

// Send implements [transport.Conn].
func (c *Conn) Send(batch []transport.Outgoing) (int, error) {
	if c.away.Load() {
		if err := c.comeBack(); err != nil {
			return 0, err
		}
	}
	if n := c.returns.Load(); n != c.sending.known {
		if !c.socket.Hold() {
			return 0, net.ErrClosed
		}
		c.sending.known = n
		c.chooseWay()
		c.socket.Release()
	}
	for done := 0; done < len(batch); {
		n, err := c.sending.way.transmit(batch[done:])
		if done += n; err != nil {
			return done, err
		}
		if n == 0 {
			c.sendDrops.Add(1) // no Ethernet address
			done++
		}
	}
	return len(batch), nil
}

// chooseWay has frames leave by an AF_XDP socket where one is wanted and to be had. Only within
// Hold, or before there are others.
func (c *Conn) chooseWay() {
	s := &c.sending
	s.way = &s.calls
	if s.xdp != nil && s.xdp.open() == nil {
		s.way = s.xdp
	}
}
