package udp

import (
	"net"
	"net/netip"
	"slices"
)

// Addresses returns the addresses by which peers reach a socket at that address, at least one:
// for one that stands for all, those of this machine of the same kind, IPv4 before IPv6 and
// loopback last, and before others the one on the way to where the default route leads. IPv6 addresses of a
// link are left out: which of a peer's interfaces is on it only the peer knows.
func Addresses(at netip.Addr) []netip.Addr {
	if !at.IsUnspecified() {
		return []netip.Addr{at}
	}
	kinds := []kind{{far: far4, loopback: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}
	if at.Is6() {
		kinds = append(kinds, kind{far: far6, loopback: netip.IPv6Loopback()})
	}
	have := addresses()
	var list, loopbacks []netip.Addr
	for _, k := range kinds {
		list = append(list, k.of(have)...)
		if slices.Contains(have, k.loopback) {
			loopbacks = append(loopbacks, k.loopback)
		}
	}
	if list = append(list, loopbacks...); len(list) == 0 {
		return []netip.Addr{kinds[0].loopback}
	}
	return list
}

// kind is a version of IP.
type kind struct{ far, loopback netip.Addr }

// far4 and far6 are addresses of no network (RFC 1112, section 4: class E; RFC 3701: the end of
// the 6bone): the way to them is the default route.
var far4, far6 = netip.AddrFrom4([4]byte{240, 0, 0, 1}), netip.AddrFrom16([16]byte{0: 0x3f, 1: 0xfe, 15: 1})

// of returns those addresses of a version that others can reach, the main one first.
func (k kind) of(all []netip.Addr) (list []netip.Addr) {
	for _, ip := range all {
		if ip.Is4() == k.far.Is4() && ip.IsGlobalUnicast() {
			list = append(list, ip)
		}
	}
	main, err := addrTowards(netip.AddrPortFrom(k.far, 9))
	if i := slices.Index(list, main); err == nil && i > 0 {
		list = slices.Insert(slices.Delete(list, i, i+1), 0, main)
	}
	return list
}

// addresses returns those of all interfaces that are up.
func addresses() (all []netip.Addr) {
	ifs, _ := net.Interfaces()
	for _, ifi := range ifs {
		if ifi.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, _ := ifi.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				all = append(all, p.Addr().Unmap())
			}
		}
	}
	return all
}
