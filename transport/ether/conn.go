package ether

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// Conn is an Ethernet interface. It implements [transport.Conn].
type Conn struct {
	// Immutable.
	socket    *mmsg.Socket
	name      string // of the interface
	mac       [6]byte
	mtu       int
	etherType uint16
	claim     *held
	buffers   mmsg.Buffers

	transport.Indifferent // to Focus
	binding

	receiving
	ring *ring // nil: frames are received by system calls
	sending

	sendDrops, truncated, foreign, kernelDrops atomic.Uint64
}

// Caps implements [transport.Conn].
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{MTU: c.mtu, Batch: messages, Blocks: true}
}

// MTU implements [transport.Conn]: the same for everyone on the wire.
func (c *Conn) MTU(transport.Addr) int { return c.mtu }

// LocalAddr implements [transport.Conn].
func (c *Conn) LocalAddr() transport.Addr { return transport.EtherAddr(c.mac) }

// Interface returns the name of the interface, as it was when it was opened.
func (c *Conn) Interface() string { return c.name }

// Buffers returns what the kernel granted.
func (c *Conn) Buffers() mmsg.Buffers { return c.buffers }

// Close implements [transport.Conn].
func (c *Conn) Close() error {
	if c.links != nil {
		c.links.Close()
	}
	c.mu.Lock() // nobody attaches another filter
	defer c.mu.Unlock()
	if c.ring != nil {
		// The socket stays while frames are lent, and the kernel would fill the ring.
		c.socket.Control(func(fd int) error { return attach(fd, nothing) })
	}
	err := c.socket.Close()
	c.claim.release()
	return err
}

// Stats implements [transport.Conn].
func (c *Conn) Stats() transport.Stats {
	c.socket.Control(func(fd int) error {
		// Reading resets it.
		if s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			c.kernelDrops.Add(uint64(s.Drops))
		}
		return nil
	})
	return transport.Stats{
		SendDrops: c.sendDrops.Load(), KernelDrops: c.kernelDrops.Load(),
		Truncated: c.truncated.Load(), Foreign: c.foreign.Load(),
	}
}
