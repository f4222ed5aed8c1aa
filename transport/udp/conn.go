package udp

import (
	"net/netip"
	"sync/atomic"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

// Conn is a UDP socket. It implements [transport.Conn].
type Conn struct {
	// Immutable.
	socket  *mmsg.Socket
	local   netip.AddrPort
	every   bool // local stands for all addresses of this machine
	v6      bool // the socket is one of IPv6, and of IPv4 too if every
	mtu     int  // of IP packets
	fixed   bool // and asked for
	gro     bool
	ecn     bool // marks are sent, and told
	buffers Buffers
	wanted  int // as Config.Buffer says

	gso     atomic.Bool           // cleared when a device refuses
	focused atomic.Pointer[focus] // the one peer, if there is a socket that is connected to it
	routes  *rtnl.Socket          // nil where the system does not let us ask

	focusing focusing
	receiving
	sending

	sendDrops, truncated, foreign atomic.Uint64
}

// overhead is what the headers take of an IP packet.
func overhead(v6 bool) int {
	if v6 {
		return 40 + udpHeader + prefix
	}
	return 20 + udpHeader + prefix
}

func (c *Conn) makeRoom() {
	c.receiving.init(c)
	c.sending.init(c)
}

// Caps implements [transport.Conn].
func (c *Conn) Caps() transport.Caps {
	return transport.Caps{MTU: c.mtu - overhead(c.v6 && !c.every), Headroom: prefix, Batch: c.receiving.capacity, ECN: c.ecn, Blocks: true}
}

// MTU implements [transport.Conn]: the room for a frame on the way to a peer, as
// those configured it who look after this machine.
func (c *Conn) MTU(to transport.Addr) int {
	if !c.LocalAddr().Sends(to) {
		return c.Caps().MTU
	}
	mtu := c.mtu
	if !c.fixed {
		mtu = min(mtu, c.wayMTU(to))
	}
	return mtu - overhead(to.AddrPort().Addr().Is6())
}

// MayNarrow implements [transport.Conn]: on the way to another machine there may be routers, or switches
// with other settings than ours. What was asked for is taken at its word.
func (c *Conn) MayNarrow(to transport.Addr) bool { return !c.fixed && !c.isHere(to) }

// IsNear implements [transport.Conn]. An interface on which nobody is looked for leads through a tunnel, or to one other machine, anywhere.
func (c *Conn) IsNear(to transport.Addr) bool {
	if c.isHere(to) {
		return true
	}
	if c.routes == nil {
		return false
	}
	ip := to.AddrPort().Addr()
	way, err := c.routes.WayTo(c.from(&to), ip)
	return err == nil && way.IsNeighbour(ip)
}

// isHere reports whether an address is one of this machine.
func (c *Conn) isHere(to transport.Addr) bool {
	ip := to.AddrPort().Addr()
	if ip.IsLoopback() || c.routes == nil {
		return ip.IsLoopback()
	}
	here, err := c.routes.IsLocal(ip)
	return err == nil && here
}

// usualMTU is what nearly every interface carries.
const usualMTU = 1500

// wayMTU returns what the way to a peer carries, as far as that is known.
func (c *Conn) wayMTU(to transport.Addr) int {
	if c.routes != nil {
		way, err := c.routes.WayTo(c.from(&to), to.AddrPort().Addr())
		if err == nil && way.MTU >= transport.LeastMTU {
			return way.MTU
		}
	}
	if c.every {
		return usualMTU
	}
	return c.mtu
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
	err := c.socket.Close()
	c.focusing.close()
	return err
}

// Select implements [transport.Conn]: the port alone selects.
func (c *Conn) Select(uint16) error { return nil }

// Stats implements [transport.Conn].
func (c *Conn) Stats() transport.Stats {
	return transport.Stats{SendDrops: c.sendDrops.Load(), KernelDrops: c.drops(), Truncated: c.truncated.Load(), Foreign: c.foreign.Load()}
}
