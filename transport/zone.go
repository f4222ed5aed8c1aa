package transport

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Reaches reports why an address cannot be used on this machine: an IPv6 address of a link
// needs the interface that the link is at, which its zone names.
func Reaches(ip netip.Addr) error {
	if ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" {
		return fmt.Errorf("%v is an address of one link, and the interface that is on it is missing: name it behind a %%, as in [%v%%eth0]", ip, ip)
	}
	_, err := Scope(ip.Zone())
	return err
}

// Scope returns the number of the interface that the zone of an IPv6 address names, by its
// name or its number; 0: there is no zone. With an error the number is what it would be.
func Scope(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if ifi, err := net.InterfaceByName(zone); err == nil {
		return uint32(ifi.Index), nil
	}
	n, err := strconv.ParseUint(zone, 10, 31)
	if err == nil {
		_, err = net.InterfaceByIndex(int(n))
	}
	if err != nil {
		return uint32(n), fmt.Errorf("no interface %s here: the part behind %% names an interface of this machine", zone)
	}
	return uint32(n), nil
}
