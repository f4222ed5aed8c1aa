package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/mmsg"
)

// sockaddr returns an address for a socket of IPv6, or of IPv4 alone.
func sockaddr(ap netip.AddrPort, v6 bool) unix.Sockaddr {
	if !v6 {
		return &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16(), ZoneId: scope(ap.Addr().Zone())}
}

// boundTo returns where a socket is.
func boundTo(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(sa.Addr).Unmap()
		if ip.Is6() {
			ip = ip.WithZone(new(zones).name(sa.ZoneId))
		}
		return netip.AddrPortFrom(ip, uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, os.NewSyscallError("getsockname", err)
}

// scope returns the number of an IPv6 zone: an interface, by name or number.
func scope(zone string) uint32 {
	n, _ := transport.Scope(zone)
	return n
}

// AsReceived returns an address as that of datagrams from there is returned: with the name
// of the interface where one may have its number, and without where none is needed.
func AsReceived(ap netip.AddrPort) netip.AddrPort {
	ip := ap.Addr()
	switch zone := ip.Zone(); {
	case zone == "":
	case !ip.IsLinkLocalUnicast():
		ip = ip.WithZone("")
	default:
		if n := scope(zone); n != 0 {
			ip = ip.WithZone(new(zones).name(n))
		}
	}
	return netip.AddrPortFrom(ip, ap.Port())
}

// Socket addresses as the kernel has them.
const (
	offPort  = 2 // network byte order, in both
	offIPv4  = 4
	offIPv6  = 8
	offScope = 24
	lenInet4 = unix.SizeofSockaddrInet4
	lenInet6 = unix.SizeofSockaddrInet6
	// zoneTable is how many zones are remembered: more interfaces than machines have,
	// since to look one up takes the kernel's whole list, perhaps for every datagram.
	zoneTable = 4096
)

// zones translates IPv6 scopes, which the kernel numbers and addresses name.
type zones struct {
	names  map[uint32]string
	scopes map[string]uint32
	since  time.Time // of the oldest of scopes
}

// zonesStay is how long the numbers of interfaces are remembered at least: to look one up takes the
// kernel's whole list.
const zonesStay = 50 * time.Millisecond

func (z *zones) name(scope uint32) string {
	if scope == 0 {
		return ""
	}
	if s, ok := z.names[scope]; ok {
		return s
	}
	s := strconv.FormatUint(uint64(scope), 10)
	if ifi, err := net.InterfaceByIndex(int(scope)); err == nil {
		s = ifi.Name
	}
	if z.names == nil || len(z.names) >= zoneTable {
		z.names = make(map[uint32]string)
	}
	z.names[scope] = s
	return s
}

func (z *zones) scope(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if n, ok := z.scopes[zone]; ok {
		return n
	}
	n := scope(zone)
	if z.scopes == nil || len(z.scopes) >= zoneTable {
		z.scopes, z.since = make(map[string]uint32), time.Now()
	}
	z.scopes[zone] = n
	return n
}

// doubt has the numbers of interfaces looked up again, and reports it: something could not be sent, and
// an interface that was made again under its name has another one.
func (z *zones) doubt() bool {
	if z.scopes == nil || time.Since(z.since) < zonesStay {
		return false
	}
	z.scopes = nil
	return true
}

// portless reports whether n has the port 0: nobody is there, and nothing can be sent to it. Who
// made the datagram wants no answer (RFC 768), or wants one to fail.
func portless(n *mmsg.Name) bool { return n[offPort] == 0 && n[offPort+1] == 0 }

// read returns the address in n.
func (z *zones) read(n *mmsg.Name, v6 bool) transport.Addr {
	port := binary.BigEndian.Uint16(n[offPort:])
	if !v6 {
		return transport.UDPAddr(netip.AddrPortFrom(netip.AddrFrom4([4]byte(n[offIPv4:])), port))
	}
	ip := netip.AddrFrom16([16]byte(n[offIPv6:]))
	if s := binary.NativeEndian.Uint32(n[offScope:]); s != 0 {
		ip = ip.WithZone(z.name(s))
	}
	return transport.UDPAddr(netip.AddrPortFrom(ip, port))
}

// write puts a into n.
func (z *zones) write(n *mmsg.Name, a transport.Addr, v6 bool) {
	ap := a.AddrPort()
	*n = mmsg.Name{}
	binary.BigEndian.PutUint16(n[offPort:], ap.Port())
	if !v6 {
		binary.NativeEndian.PutUint16(n[0:], unix.AF_INET)
		ip := ap.Addr().As4()
		copy(n[offIPv4:], ip[:])
		return
	}
	binary.NativeEndian.PutUint16(n[0:], unix.AF_INET6)
	ip := ap.Addr().As16()
	copy(n[offIPv6:], ip[:])
	binary.NativeEndian.PutUint32(n[offScope:], z.scope(ap.Addr().Zone()))
}
