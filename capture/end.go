package capture

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// End is where packets come from or go to: an IP address with or without port, or
// a hardware address.
type End struct {
	ip      netip.Addr
	port    uint16
	anyPort bool
	mac     [6]byte
}

// ParseEnd reads "10.0.0.1", "10.0.0.1:7100", "fd00::1", "[fd00::1]:7100" or
// "02:00:00:00:00:01".
func ParseEnd(s string) (End, error) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return End{ip: plain(ap.Addr()), port: ap.Port()}, nil
	}
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return End{ip: plain(ip), anyPort: true}, nil
	}
	if mac, err := net.ParseMAC(s); err == nil && len(mac) == 6 {
		return End{mac: [6]byte(mac)}, nil
	}
	return End{}, fmt.Errorf("%q is no address, and names are not looked up: need an IP address, one with port, or a hardware address", s)
}

// plain is an address as packets have it: they know no zones.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// Is reports whether a is that end.
func (e End) Is(a Addr) bool {
	if !a.UDP.IsValid() {
		return !e.ip.IsValid() && e.mac == a.MAC
	}
	return e.ip.IsValid() && e.ip == a.UDP.Addr().Unmap() && (e.anyPort || e.port == a.UDP.Port())
}
