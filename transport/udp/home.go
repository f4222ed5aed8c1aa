package udp

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/internal/refused"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// home is an address of this machine as the kernel tells it: a struct in6_pktinfo, in which
// IPv4 addresses are mapped. The interface is that of an IPv6 address of a link, else 0.
type home [unix.SizeofInet6Pktinfo]byte

// Where the structs have their fields.
const (
	offInterface   = 16 // of in6_pktinfo, behind the address
	offSource      = 4  // of in_pktinfo: what an answer leaves from (ipi_spec_dst)
	offDestination = 8
)

// told is what the kernel says beside a datagram.
type told struct {
	segment int  // the length of those that came as one; 0: it is one
	asked   home // if ours
	ours    bool // it was sent to asked, which nobody else has
	ecn     transport.ECN
}

// read reads control messages.
func (t *told) read(control []byte) {
	*t = told{}
	for len(control) > 0 {
		c, rest, ok := mmsg.NextControl(control)
		if !ok {
			return
		}
		control = rest
		switch {
		case c.Level == unix.SOL_UDP && c.Kind == unix.UDP_GRO && len(c.Content) >= 4:
			t.segment = max(0, int(int32(binary.NativeEndian.Uint32(c.Content))))
		case (c.Level == unix.IPPROTO_IP && c.Kind == unix.IP_TOS || c.Level == unix.IPPROTO_IPV6 && c.Kind == unix.IPV6_TCLASS) && len(c.Content) > 0:
			t.ecn = readECN(c.Content)
		case c.Level == unix.IPPROTO_IP && c.Kind == unix.IP_PKTINFO && len(c.Content) >= unix.SizeofInet4Pktinfo:
			t.readIPv4(c.Content)
		case c.Level == unix.IPPROTO_IPV6 && c.Kind == unix.IPV6_PKTINFO && len(c.Content) >= unix.SizeofInet6Pktinfo:
			t.readIPv6(c.Content)
		}
	}
}

// readIPv4 reads a struct in_pktinfo. What was sent to a group or by broadcast is answered from
// another address.
func (t *told) readIPv4(b []byte) {
	to := netip.AddrFrom4([4]byte(b[offDestination:]))
	if to != netip.AddrFrom4([4]byte(b[offSource:])) || to.IsMulticast() || to.IsUnspecified() {
		return
	}
	ip := to.As16()
	copy(t.asked[:], ip[:])
	t.ours = true
}

// readIPv6 reads a struct in6_pktinfo. An IPv4 address is in one, too, where nothing says
// whether it is one of broadcast.
func (t *told) readIPv6(b []byte) {
	ip := netip.AddrFrom16([16]byte(b))
	if ip.Is4In6() || ip.IsMulticast() || ip.IsUnspecified() {
		return
	}
	copy(t.asked[:], b[:offInterface])
	if ip.IsLinkLocalUnicast() {
		copy(t.asked[offInterface:], b[offInterface:])
	}
	t.ours = true
}

// address returns the address in h.
func (z *zones) address(h *home) netip.Addr {
	ip := netip.AddrFrom16([16]byte(h[:])).Unmap()
	if n := binary.NativeEndian.Uint32(h[offInterface:]); n != 0 {
		ip = ip.WithZone(z.name(n))
	}
	return ip
}

// appendHome appends the content of a control message by which a datagram leaves from ip, of a
// socket of IPv6 or of IPv4 alone; nothing if the kernel is to choose.
func (z *zones) appendHome(b []byte, ip netip.Addr, v6 bool) []byte {
	switch {
	case !ip.IsValid():
		return b
	case v6: // of both kinds
		to := ip.As16()
		return binary.NativeEndian.AppendUint32(append(b, to[:]...), z.scope(ip.Zone()))
	}
	var info [unix.SizeofInet4Pktinfo]byte
	from := ip.As4()
	copy(info[offSource:], from[:])
	return append(b, info[:]...)
}

// leaveFrom has the message at hand leave from where content says.
func (c *Conn) leaveFrom(content []byte) {
	if c.v6 {
		c.sending.out.AddControl(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, content)
		return
	}
	c.sending.out.AddControl(unix.IPPROTO_IP, unix.IP_PKTINFO, content)
}

// from returns the address that what is sent to a peer leaves from; unspecified: the kernel
// chooses.
func (c *Conn) from(to *transport.Addr) netip.Addr {
	if c.every && to.Local().IsValid() {
		return to.Local()
	}
	return c.local.Addr()
}

// gone reports whether an address is none of this machine any more, as far as we know.
func (c *Conn) gone(ip netip.Addr) bool {
	if c.routes == nil {
		return false
	}
	is, err := c.routes.IsLocal(ip)
	return err == nil && !is
}

// Towards implements [transport.Conn]: what is sent to a peer always leaves from the address that
// the system has on the way there now.
func (c *Conn) Towards(peer transport.Addr) (transport.Addr, error) {
	if !c.every || !c.LocalAddr().Sends(peer) {
		return peer, nil
	}
	if local := peer.Local(); local.IsValid() {
		if c.gone(local) {
			return peer, fmt.Errorf("%v, from which it is sent to, is no address of this machine any more", local)
		}
		return peer, nil
	}
	ip, err := c.sourceTo(peer.AddrPort())
	if err != nil {
		return peer, refused.Way(err)
	}
	return peer.WithLocal(ip), nil
}

// sourceTo asks the system for its own address on the way to a peer, in the socket's namespace
// if it lets us.
func (c *Conn) sourceTo(peer netip.AddrPort) (netip.Addr, error) {
	if c.routes == nil {
		return addrTowards(peer)
	}
	ip, ifi, err := c.routes.SourceTo(peer.Addr())
	if err == nil && ip.IsLinkLocalUnicast() && ip.Is6() {
		// To an address of this machine itself the way leads by loopback.
		if ip = ip.WithZone(peer.Addr().Zone()); ip.Zone() == "" {
			ip = ip.WithZone(new(zones).name(uint32(ifi)))
		}
	}
	return ip, err
}

// addrTowards asks the system for its own address on the way to a peer. Nothing is sent.
func addrTowards(peer netip.AddrPort) (netip.Addr, error) {
	v6 := peer.Addr().Is6()
	fd, err := open(v6)
	if err != nil {
		return netip.Addr{}, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sockaddr(peer, v6)); err != nil {
		return netip.Addr{}, os.NewSyscallError("connect", err)
	}
	at, err := boundTo(fd)
	return at.Addr(), err
}
