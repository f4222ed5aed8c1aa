package ether

import (
	"net"
	"time"

	"github.com/dgrdma/dgrdma/transport"
)

// sending is what Send keeps. It belongs to the goroutine that sends.
type sending struct {
	way   way
	calls calls
	xdp   *xdp   // nil: it is not wanted
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
	s := &c.sending
	if n := c.returns.Load(); n != s.known || s.xdp != nil && s.xdp.isDue() {
		if !c.socket.Hold() {
			return 0, net.ErrClosed
		}
		s.known = n
		c.chooseWay(0) // there is another way until a queue is free
		c.socket.Release()
		if s.xdp != nil {
			s.xdp.say()
		}
	}
	for done := 0; done < len(batch); {
		n, err := s.way.transmit(batch[done:])
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
// Hold, or before there are others. within is as for [xdp.open].
func (c *Conn) chooseWay(within time.Duration) {
	s := &c.sending
	s.way = &s.calls
	if s.xdp != nil && s.xdp.open(within) == nil {
		s.way = s.xdp
	}
}
