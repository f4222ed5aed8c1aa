package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/dgrdma/dgrdma/settings"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// way is what datagrams of an endpoint take, as far as the system knows it.
type way struct {
	device string // the interface; "": not known
	mtu    int    // of IP packets, or payloads of Ethernet; 0: not known
}

// wayTo returns the way from an endpoint of ours to a peer.
func wayTo(local, peer url.Endpoint) way {
	if local.Scheme == url.Ether {
		return wayFrom(local)
	}
	ifi, mtu, err := udp.WayTo(local.Addr.Addr(), peer.Addr.Addr())
	if err != nil {
		return way{}
	}
	w := way{mtu: mtu}
	// It is named if it is what bounds the way: else the route does.
	if ifi.MTU == mtu {
		w.device = ifi.Name
	}
	return w
}

// wayFrom returns the way to whoever reaches an endpoint of ours at its address: not known where
// it is at all addresses.
func wayFrom(local url.Endpoint) way {
	var ifi *net.Interface
	switch {
	case local.Scheme != url.Ether:
		ifi = interfaceAt(local.Addr.Addr())
	case local.Interface != "":
		ifi, _ = net.InterfaceByName(local.Interface)
	default:
		ifi = interfaceOf(local.MAC.As6())
	}
	if ifi == nil {
		return way{}
	}
	return way{ifi.Name, min(ifi.MTU, transport.MostMTU)}
}

// interfaceAt returns the interface that has an address, or nil.
func interfaceAt(ip netip.Addr) *net.Interface {
	all, _ := net.Interfaces()
	for _, ifi := range all {
		addrs, _ := ifi.Addrs()
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || ip.Zone() != "" && ip.Zone() != ifi.Name {
				continue
			}
			// All of 127.0.0.0/8 is local.
			if p.Addr() == ip.WithZone("") || ip.IsLoopback() && p.Contains(ip) {
				return &ifi
			}
		}
	}
	return nil
}

// interfaceOf returns the interface that has an Ethernet address, or nil.
func interfaceOf(mac [6]byte) *net.Interface {
	all, _ := net.Interfaces()
	for _, ifi := range all {
		if string(ifi.HardwareAddr) == string(mac[:]) {
			return &ifi
		}
	}
	return nil
}

// mtuTo returns how large packets to a peer are: as large as was asked for, or as the way carries.
func mtuTo(local, peer url.Endpoint) int {
	if asked, given := local.Options.Get(settings.MTU.Option); given {
		mtu, _ := strconv.Atoi(asked) // which the endpoint took
		return mtu
	}
	return wayTo(local, peer).mtu
}

// mtuText is what a report says of an MTU, after a comma: nothing where the system did not tell it.
func mtuText(mtu int) string {
	if mtu == 0 {
		return ""
	}
	return fmt.Sprintf(", MTU %d", mtu)
}

// fitsWay refuses packets that are larger than the way to a peer carries: all would be lost.
func fitsWay(local, peer url.Endpoint) error {
	return wayTo(local, peer).carries(local, fmt.Sprintf(", by which %v is reached,", peer.Addr.Addr()))
}

// fitsHere refuses packets that are larger than the interface carries at which an endpoint is.
func fitsHere(local url.Endpoint) error { return wayFrom(local).carries(local, "") }

// carries refuses what an endpoint would send that the way does not carry; which says what the
// interface has to do with it.
func (w way) carries(local url.Endpoint, which string) error {
	asked, given := local.Options.Get(settings.MTU.Option)
	mtu, err := strconv.Atoi(asked)
	switch {
	case !given || err != nil || w.mtu == 0 || mtu <= w.mtu || local.Scheme == url.Ether: // which refuses it itself
		return nil
	case w.device == "":
		return badUsage("MTU %d: the way to the peer carries %d: give no more", mtu, w.mtu)
	}
	return badUsage("MTU %d: interface %s%s has MTU %d: give no more, or raise it at both ends with: ip link set %s mtu %d",
		mtu, w.device, which, w.mtu, w.device, mtu)
}
