package ether

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// findInterface returns the interface with the name, or the address, or both,
// and its address.
func findInterface(name string, mac *[6]byte) (*net.Interface, [6]byte, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, [6]byte{}, err
	}
	var found []*net.Interface
	for i := range all {
		ifi := &all[i]
		if name != "" && ifi.Name != name {
			continue
		}
		own, ok := addressOf(ifi)
		switch {
		case name != "" && !ok:
			return nil, own, fmt.Errorf("interface %s is not an Ethernet interface", name)
		case name != "" && mac != nil && own != *mac:
			return nil, own, fmt.Errorf("interface %s has the address %v, not %v", name, net.HardwareAddr(own[:]), net.HardwareAddr(mac[:]))
		case name == "" && (!ok || own != *mac):
			continue
		}
		found = append(found, ifi)
	}
	switch len(found) {
	case 0:
		what := "no interface " + name
		if name == "" {
			what = fmt.Sprintf("no interface with the address %v", net.HardwareAddr(mac[:]))
		}
		return nil, [6]byte{}, errors.New(what + "; there are " + list(all))
	case 1:
		own, _ := addressOf(found[0])
		return found[0], own, nil
	}
	// A VLAN has its parent's address, a bond that of its members.
	var names []string
	for _, ifi := range found {
		names = append(names, ifi.Name)
	}
	return nil, [6]byte{}, fmt.Errorf("the address %v is that of %s: name one of them", net.HardwareAddr(mac[:]), strings.Join(names, ", "))
}

// addressOf returns the address of an Ethernet interface, or of the loopback
// interface, which has zeros.
func addressOf(ifi *net.Interface) (mac [6]byte, ok bool) {
	copy(mac[:], ifi.HardwareAddr)
	return mac, len(ifi.HardwareAddr) == len(mac) || len(ifi.HardwareAddr) == 0 && ifi.Flags&net.FlagLoopback != 0
}

func list(all []net.Interface) string {
	var out []string
	for i := range all {
		ifi := &all[i]
		if _, ok := addressOf(ifi); !ok {
			continue
		}
		s := ifi.Name
		if len(ifi.HardwareAddr) > 0 {
			s += " (" + ifi.HardwareAddr.String() + ")"
		}
		out = append(out, s)
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}
