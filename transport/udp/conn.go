package udp

import (
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// Conn is a UDP socket. It implements [transport.Conn].
type Conn struct {
	// Immutable.
	socket  *mmsg.Socket
	local   netip.AddrPort
	v6      bool
	mtu     int  // of IP packets
	fixed   bool // and asked for
	gro     bool
	buffers Buffers

	gso     atomic.Bool                    // cleared when a device refuses
	focused atomic.Pointer[transport.Addr] // the one peer, if the socket is connected

	receiving
	sending

	sendDrops, truncated, foreign atomic.Uint64
}

// overhead is what the headers take of an IP packet.
func (c *Conn) overhead() int {
	if c.v6 {
		return 40 + udpHeader + prefix
	}
	return 20 + udpHeader + prefix
}

func (c *Conn) makeRoom() {
	c.receiving.init(c)
	c.sending.init()
}

// Caps implements [transport.Conn].
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{MTU: c.mtu - c.overhead(), Headroom: prefix, Batch: c.receiving.capacity, Blocks: true}
}

// MTUTo implements [transport.Router]: the room for a frame on the way to a
// peer.
func (c *Conn) MTUTo(to transport.Addr) int {
	if c.fixed {
		return c.mtu - c.overhead()
	}
	ap := to.AddrPort()
	if to.Kind() != transport.KindUDP || ap.Addr().Is4() == c.v6 {
		return c.mtu - c.overhead()
	}
	return min(c.mtu, routeMTU(c.local, ap, c.mtu)) - c.overhead()
}

// Focus implements [transport.Focuser]. A connected socket looks for no route:
// without offload that is a sixth of what sending costs.
func (c *Conn) Focus(peer transport.Addr) {
	c.socket.Control(func(fd int) error {
		if c.focused.Swap(nil) != nil {
			// What is being sent without an address fails from now on, as loss.
			dissolve(fd)
		}
		if ap := peer.AddrPort(); peer.Kind() == transport.KindUDP && ap.Addr().Is6() == c.v6 && unix.Connect(fd, sockaddr(ap)) == nil {
			c.focused.Store(&peer)
		}
		return nil
	})
}

// routeMTU asks the kernel for the MTU of a route, if it says.
func routeMTU(from, to netip.AddrPort, unknown int) int {
	fd, err := open(to.Addr().Is6())
	if err != nil {
		return unknown
	}
	defer unix.Close(fd)
	if unix.Bind(fd, sockaddr(netip.AddrPortFrom(from.Addr(), 0))) != nil || unix.Connect(fd, sockaddr(to)) != nil {
		return unknown
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if to.Addr().Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil || mtu < leastMTU {
		return unknown
	}
	return mtu
}

// LocalAddr implements [transport.Conn].
func (c *Conn) LocalAddr() transport.Addr { return transport.UDPAddr(c.local) }

// Buffers returns what the kernel granted.
func (c *Conn) Buffers() Buffers { return c.buffers }

// Offload reports whether runs of frames are sent and received as one.
func (c *Conn) Offload() (gso, gro bool) { return c.gso.Load(), c.gro }

// Close implements [transport.Conn].
func (c *Conn) Close() error { return c.socket.Close() }

// Stats implements [transport.Counter].
func (c *Conn) Stats() transport.Stats {
	s := transport.Stats{SendDrops: c.sendDrops.Load(), Truncated: c.truncated.Load(), Foreign: c.foreign.Load()}
	c.socket.Control(func(fd int) error {
		s.KernelDrops = mmsg.Drops(fd)
		return nil
	})
	return s
}
