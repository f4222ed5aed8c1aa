package udp

import (
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
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
	routes  *rtnl.Socket                   // nil where the system does not let us ask

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

// MTU implements [transport.Conn]: the room for a frame on the way to a peer, as
// those configured it who look after this machine.
func (c *Conn) MTU(to transport.Addr) int {
	ap := to.AddrPort()
	if c.fixed || c.routes == nil || to.Kind() != transport.KindUDP || ap.Addr().Is6() != c.v6 {
		return c.mtu - c.overhead()
	}
	way, err := c.routes.WayTo(c.local.Addr(), ap.Addr())
	if err != nil || way.MTU < transport.LeastMTU {
		return c.mtu - c.overhead()
	}
	return min(c.mtu, way.MTU) - c.overhead()
}

// Focus implements [transport.Conn]. A connected socket looks for no route:
// without offload that is a sixth of what sending costs. One of IPv6 would hear nobody at
// another address when it is connected no more: the kernel keeps that of the peer
// (__udp_disconnect leaves sk_v6_daddr alone, and the lookup asks it).
func (c *Conn) Focus(peer transport.Addr) {
	if c.v6 {
		return
	}
	c.socket.Control(func(fd int) error {
		if c.focused.Swap(nil) != nil {
			// What is being sent without an address fails from now on, as loss.
			dissolve(fd)
		}
		if ap := peer.AddrPort(); peer.Kind() == transport.KindUDP && ap.Addr().Is4() && unix.Connect(fd, sockaddr(ap)) == nil {
			c.focused.Store(&peer)
		}
		return nil
	})
}

// LocalAddr implements [transport.Conn].
func (c *Conn) LocalAddr() transport.Addr { return transport.UDPAddr(c.local) }

// Buffers returns what the kernel granted.
func (c *Conn) Buffers() Buffers { return c.buffers }

// Offload reports whether runs of frames are sent and received as one.
func (c *Conn) Offload() (gso, gro bool) { return c.gso.Load(), c.gro }

// Close implements [transport.Conn].
func (c *Conn) Close() error {
	if c.routes != nil {
		c.routes.Close()
	}
	return c.socket.Close()
}

// Select implements [transport.Conn]: the port alone selects.
func (c *Conn) Select(uint16) error { return nil }

// Stats implements [transport.Conn].
func (c *Conn) Stats() transport.Stats {
	s := transport.Stats{SendDrops: c.sendDrops.Load(), Truncated: c.truncated.Load(), Foreign: c.foreign.Load()}
	c.socket.Control(func(fd int) error {
		s.KernelDrops = mmsg.Drops(fd)
		return nil
	})
	return s
}
