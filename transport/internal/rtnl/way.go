package rtnl

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Way is how an address is reached.
type Way struct {
	Interface int        // number of the interface by which one leaves
	Next      netip.Addr // who takes it from there: a router, or the address itself
	// MTU is what the route, or else the interface, is said to carry by those who
	// configured them. What packets from the network claim is not in it.
	MTU    int
	direct bool // nobody is looked for on that interface
}

// IsNeighbour reports whether the way leads to that address without a router, on an interface on which others are looked for.
func (w *Way) IsNeighbour(to netip.Addr) bool { return !w.direct && w.Next == to.WithZone("") }

// WayTo returns the way from a local address to another one; from an unspecified one, it is
// from that which the kernel chooses.
func (s *Socket) WayTo(from, to netip.Addr) (w Way, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scope, err := s.scope(to)
	if err != nil {
		return w, err
	}
	from, to = from.WithZone(""), to.WithZone("")
	_, route, err := s.route(from, to, scope, 0)
	if err != nil {
		return w, err
	}
	w = Way{Interface: number(route, unix.RTA_OIF), Next: to}
	if via, ok := netip.AddrFromSlice(attribute(route, unix.RTA_GATEWAY)); ok {
		w.Next = via
	} else if v := attribute(route, unix.RTA_VIA); len(v) > 2 { // an IPv6 router of IPv4 addresses
		if via, ok := netip.AddrFromSlice(v[2:]); ok {
			w.Next = via
		}
	}
	if w.Interface == 0 {
		return w, errors.New("the route has no interface")
	}
	fixed, attributes, err := s.link(w.Interface, "")
	if err != nil {
		return w, err
	}
	w.MTU = interfaceMTU(attributes, to.Is6())
	w.direct = binary.NativeEndian.Uint32(fixed[offFlags:])&(unix.IFF_NOARP|unix.IFF_LOOPBACK) != 0
	// The entry of the table, without what the kernel has learned about the
	// address: that includes reports of the path's MTU, which anyone can forge.
	if _, entry, err := s.route(from, to, scope, unix.RTM_F_FIB_MATCH); err == nil {
		if mtu := number(attribute(entry, unix.RTA_METRICS), unix.RTAX_MTU); mtu > 0 {
			w.MTU = min(w.MTU, mtu)
		}
	}
	return w, nil
}

// SourceTo returns the address that the kernel sends from to another one, if who sends names
// none, and the number of the interface that it is sent by.
func (s *Socket) SourceTo(to netip.Addr) (from netip.Addr, ifi int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scope, err := s.scope(to)
	if err != nil {
		return from, 0, err
	}
	kind, route, err := s.route(netip.Addr{}, to.WithZone(""), scope, 0)
	if err != nil {
		return from, 0, err
	}
	from, ok := netip.AddrFromSlice(attribute(route, unix.RTA_PREFSRC))
	if !ok || kind != unix.RTN_UNICAST && kind != unix.RTN_LOCAL {
		return from, 0, unix.EADDRNOTAVAIL // a group, or everybody
	}
	return from, number(route, unix.RTA_OIF), nil
}

// IsLocal reports whether an address is one of this machine.
func (s *Socket) IsLocal(ip netip.Addr) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scope, err := s.scope(ip)
	if err != nil {
		return false, err
	}
	kind, _, err := s.route(netip.Addr{}, ip.WithZone(""), scope, 0)
	if err == unix.ENETUNREACH || err == unix.EHOSTUNREACH {
		return false, nil
	}
	return kind == unix.RTN_LOCAL, err
}

// scope returns the number of the interface that an address names, or 0.
func (s *Socket) scope(ip netip.Addr) (int, error) {
	if ip.Zone() == "" {
		return 0, nil
	}
	return s.index(ip.Zone())
}

// route returns the kind and the attributes of the route to an address.
func (s *Socket) route(from, to netip.Addr, scope int, flags uint32) (kind byte, attributes []byte, err error) {
	bits := byte(to.BitLen())
	fixed := [unix.SizeofRtMsg]byte{0: family(to), 1: bits, 2: bits}
	binary.NativeEndian.PutUint32(fixed[8:], flags)
	s.request(unix.RTM_GETROUTE, fixed[:]...)
	s.with(unix.RTA_DST, to.AsSlice())
	if from.IsValid() && !from.IsUnspecified() {
		s.with(unix.RTA_SRC, from.AsSlice())
	}
	if scope != 0 {
		s.with(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(scope)))
	}
	b, err := s.ask()
	if err != nil {
		return 0, nil, err
	}
	if len(b) < unix.SizeofRtMsg {
		return 0, nil, errors.New("the answer about a route is too short")
	}
	const offType = 7 // of struct rtmsg
	return b[offType], b[unix.SizeofRtMsg:], nil
}

// interfaceMTU returns what an interface carries; of IPv6, that is what routers
// announced on it, if it is less.
func interfaceMTU(attributes []byte, v6 bool) int {
	mtu := number(attributes, unix.IFLA_MTU)
	if v6 {
		const mtu6 = 2 // DEVCONF_MTU6, of an array of 32-bit numbers
		six := attribute(attribute(attributes, unix.IFLA_AF_SPEC), unix.AF_INET6)
		if conf := attribute(six, unix.IFLA_INET6_CONF); len(conf) >= 4*(mtu6+1) {
			mtu = min(mtu, int(binary.NativeEndian.Uint32(conf[4*mtu6:])))
		}
	}
	return mtu
}

// Neighbour is what the kernel knows of the next one on a way.
type Neighbour uint8

const (
	Unknown Neighbour = iota // nothing: the next packet has the kernel look for him
	Sought                   // packets wait until he answers, or for some seconds
	Found                    // packets leave
)

// Neighbour returns what the kernel knows of the next one on the way.
func (s *Socket) Neighbour(w Way) Neighbour {
	if w.direct {
		return Found
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var fixed [unix.SizeofNdMsg]byte
	fixed[0] = family(w.Next)
	binary.NativeEndian.PutUint32(fixed[4:], uint32(w.Interface))
	s.request(unix.RTM_GETNEIGH, fixed[:]...)
	s.with(unix.NDA_DST, w.Next.AsSlice())
	b, err := s.ask()
	if err != nil || len(b) < unix.SizeofNdMsg {
		return Unknown
	}
	const offState = 8 // of struct ndmsg
	switch state := binary.NativeEndian.Uint16(b[offState:]); {
	case state&unix.NUD_INCOMPLETE != 0:
		return Sought
	case state == unix.NUD_NONE || state&unix.NUD_FAILED != 0:
		return Unknown
	}
	return Found
}
