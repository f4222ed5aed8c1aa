package udp

import (
	"net"
	"net/netip"

	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/internal/rtnl"
)

// WayTo returns the interface by which this machine reaches an address, and how long packets may be on the way. From says which
// address they come from; an invalid or unspecified one leaves that to the kernel. What the kernel has learned about the address is
// not looked at: a report of a narrower path may be forged.
func WayTo(from, to netip.Addr) (ifi *net.Interface, mtu int, err error) {
	routes, err := rtnl.Open()
	if err != nil {
		return nil, 0, err
	}
	defer routes.Close()
	way, err := routes.WayTo(from, to.Unmap())
	if err != nil {
		return nil, 0, err
	}
	ifi, err = net.InterfaceByIndex(way.Interface)
	return ifi, min(way.MTU, transport.MostMTU), err
}
