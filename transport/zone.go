package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// Receives reports why nobody receives what this machine sends to an address: it is not one
// endpoint's, or its interface is missing.
func Receives(a Addr) error {
	if a.kind != KindUDP {
		return nil
	}
	if a.port == 0 {
		return errors.New("the UDP port 0 is nobody's")
	}
	return cmp.Or(OneHost(a.ip), Usable(a.ip))
}

// Usable reports why an address cannot be used on this machine: an IPv6 address of a link
// needs the interface that the link is at, which its zone names.
func Usable(ip netip.Addr) error {
	if ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "" {
		return fmt.Errorf("%v is an address of one link, and the interface that is on it is missing: name it behind a %%, as in [%v%%eth0]", ip, ip)
	}
	_, err := Scope(ip.Zone())
	return err
}

var everyone = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// OneHost reports why an address is none that a single machine has.
func OneHost(ip netip.Addr) error {
	if others := standsFor(ip); others != "" {
		return fmt.Errorf("%v %s", ip, others)
	}
	return nil
}

// standsFor says what an address is that no single machine has; "": one machine has it.
func standsFor(ip netip.Addr) string {
	switch {
	case ip.IsUnspecified():
		return "stands for all addresses of a machine, and is none"
	case ip.IsMulticast():
		return "is a group's address"
	case ip == everyone:
		return "is every machine's address"
	}
	return ""
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
