package udp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/dgrdma/dgrdma/transport"
)

// place is where a test has its sockets, and where they reach each other.
type place struct {
	at string
	ip netip.Addr
}

// places are those of one address and those of all.
func places() (all []place) {
	for _, p := range [][2]string{{"127.0.0.1", "127.0.0.1"}, {"::1", "::1"}, {"::", "127.0.0.1"}, {"::", "::1"}, {"0.0.0.0", "127.0.0.1"}} {
		all = append(all, place{p[0], netip.MustParseAddr(p[1])})
	}
	return all
}

// of returns a socket's address for others.
func (p place) of(c *Conn) transport.Addr {
	return transport.UDPAddr(netip.AddrPortFrom(p.ip, c.LocalAddr().AddrPort().Port()))
}

// seen returns a socket's address as another one at the same place sees it.
func (p place) seen(t testing.TB, c, from *Conn) transport.Addr {
	t.Helper()
	a, err := from.Towards(p.of(c))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type variant struct {
	place
	cfg Config
}

func variants() map[string]variant {
	m := make(map[string]variant)
	for _, p := range places() {
		for _, mtu := range []int{0, 1500, 9000} {
			for _, off := range []Config{{}, {NoGSO: true}, {NoGRO: true}, {NoGSO: true, NoGRO: true}} {
				off.MTU = mtu
				m[fmt.Sprintf("%s at %s mtu=%d gso=%v gro=%v", p.at, p.ip, mtu, !off.NoGSO, !off.NoGRO)] = variant{p, off}
			}
		}
	}
	return m
}
