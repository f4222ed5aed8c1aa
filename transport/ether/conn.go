package ether

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/net/bpf"
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
	ifindex   int
	etherType uint16
	buffers   mmsg.Buffers

	selecting sync.Mutex
	low, high uint16 // ids that pass the filter

	receiving
	ring *ring // received from, if there is one, instead of with recvmmsg
	sending

	sendDrops, truncated, foreign, kernelDrops atomic.Uint64
}

// Caps implements [transport.Conn].
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{MTU: c.mtu, Batch: messages, Blocks: true}
}

// LocalAddr implements [transport.Conn].
func (c *Conn) LocalAddr() transport.Addr { return transport.EtherAddr(c.mac) }

// Interface returns the name of the interface, as it was when it was opened.
func (c *Conn) Interface() string { return c.name }

// Buffers returns what the kernel granted.
func (c *Conn) Buffers() mmsg.Buffers { return c.buffers }

// Close implements [transport.Conn].
func (c *Conn) Close() error { return c.socket.Close() }

// Select implements [transport.Selector].
func (c *Conn) Select(id uint16) error {
	c.selecting.Lock()
	defer c.selecting.Unlock()
	if c.low == 0 || c.low <= id && id <= c.high {
		return nil
	}
	low, high := min(c.low, id), max(c.high, id)
	program, err := filter(c.ifindex, low, high)
	if err != nil {
		return err
	}
	if err := c.socket.Control(func(fd int) error { return attach(fd, program) }); err != nil {
		return fmt.Errorf("set the filter of interface %s: %w", c.name, err)
	}
	c.low, c.high = low, high
	return nil
}

// attach replaces a socket's filter.
func attach(fd int, program []bpf.RawInstruction) error {
	raw := make([]unix.SockFilter, len(program))
	for i, in := range program {
		raw[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]})
	return os.NewSyscallError("setsockopt", err)
}

// Stats implements [transport.Counter].
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
