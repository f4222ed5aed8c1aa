package netconn

import (
	"fmt"
	"strings"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
	"github.com/dgrdma/dgrdma/url"
)

// Network is the name of the network of connections.
const Network = "dgrdma"

// Addr is where one end of a connection or a listener is.
type Addr struct {
	// Endpoint is the endpoint string. For a peer that only dials it may end after its address: such a
	// peer has no memory to name.
	Endpoint string
	// Port is the name of the port that is listened on. At the end that dialed it is the number of the
	// link in its host.
	Port string
}

// Network implements [net.Addr].
func (Addr) Network() string { return Network }

// String returns the address of a listener as [Dialer.Dial] takes it.
func (a Addr) String() string { return a.Endpoint + ":" + a.Port }

// split divides an address. Endpoint strings have colons, names of ports have none here.
func split(address string) (Addr, error) {
	i := strings.LastIndexByte(address, ':')
	if i <= 0 || i == len(address)-1 {
		return Addr{}, fmt.Errorf("address %q: want an endpoint string or a name, a colon, and a port, "+
			"as in ocpi-udp-rdma:10.0.0.2;7100;75497472.9.65535:http", address)
	}
	return Addr{Endpoint: address[:i], Port: address[i+1:]}, nil
}

// checkPort refuses ports that no address could name.
func checkPort(port string) error {
	if strings.Contains(port, ":") {
		return fmt.Errorf("port %q has a colon, which comes between endpoint string and port in an address: choose another name", port)
	}
	return nil
}

// here returns the endpoint string of a host.
func here(h *link.Host) string {
	if u := h.URL(); u != "" {
		return u
	}
	ep := h.Endpoint()
	return endpointString(dgrdma.PeerName{ID: ep.ID(), Addr: ep.LocalAddr()}, ep.Size())
}

// hereTo returns the endpoint string of a host as the peer of a connection knows it: with the address
// from which the peer is sent to.
func hereTo(h *link.Host, c *dgrdma.Conn) string {
	if h.URL() == "" {
		return here(h)
	}
	return h.Endpoint().URLTo(c)
}

// there returns the endpoint string of a peer, as far as it is known.
func there(c *dgrdma.Conn) string { return endpointString(c.Name(), c.Peer().Size) }

func endpointString(n dgrdma.PeerName, size uint64) string {
	u := url.Endpoint{Scheme: url.Ether, MAC: url.MACFrom6(n.Addr.MAC()), Size: size, ID: uint16(n.ID)}
	if ap := n.Addr.AddrPort(); ap.IsValid() {
		u.Scheme, u.Addr = url.UDP, ap
	}
	return u.String()
}
