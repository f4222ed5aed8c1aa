package dgrdma

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// Dial connects to the peer that an endpoint string names. With a complete string it does not
// wait for the peer to be there, only for the name of its host to be looked up, 10 s at most, and if
// that has several addresses for an answer from one of them, 3 s at most.
// Without size and id, udp:10.0.0.2:7100, it is asked for them: see [Endpoint.LookupPeer].
func (e *Endpoint) Dial(peerURL string) (*Conn, error) {
	ctx, cancel := forLookUp()
	defer cancel()
	return e.DialContext(ctx, peerURL)
}

// DialContext is Dial with a context that bounds looking up the name of the peer's host, and
// asking for its id. It has no effect on the connection.
func (e *Endpoint) DialContext(ctx context.Context, peerURL string) (*Conn, error) {
	p, err := e.LookupPeer(ctx, peerURL)
	if err != nil {
		return nil, err
	}
	return e.Connect(p)
}

// LookupPeer reads the endpoint string of a peer, as [ParsePeer] does, and looks up the name of
// the host in it, if it has one. Of several addresses it asks those that this endpoint can send to, IPv4
// before IPv6, the next one every 250 ms while no answer comes, and takes the one from which the answer comes first (as
// RFC 8305, Happy Eyeballs, has it): see [Endpoint.Find]. If none comes it takes the first of them for a peer whose
// string is complete: it may be there later, or be of a kind that does not answer. What it returns is for Connect.
//
// A string of UDP may end after the port: the endpoint that has that port, in any process and
// after any restart, is asked for its id and the size of its memory. That takes a round trip, after which a connection
// to it that is made within a second need not wait for another one: where nothing is sealed the answer has begun its session.
// Without an answer for 3 s or Config.GiveUp the error is [ErrPeerDown]. Peers of our own kind answer
// that accept peers, or are connected to this endpoint; for others the string has to be complete.
func (e *Endpoint) LookupPeer(ctx context.Context, peerURL string) (Peer, error) {
	p, more, err := lookUpPeer(ctx, peerURL, e.Reaches)
	switch {
	case err != nil:
		return Peer{}, err
	case p.ID == 0:
		return e.Find(ctx, p, more...)
	case len(more) > 0:
		// Without an answer it may come later, or be one that gives none.
		if found, err := e.Find(ctx, p, more...); err == nil {
			p.Addr = found.Addr
		}
	}
	return p, nil
}

// URL returns the complete endpoint string that peers connect to. It is empty
// for endpoints that were not opened by a string. Of an endpoint that has neither memory
// nor services it is the address alone, without size and id: there is nothing to write
// to, and what is posted fails with [ErrNoService].
func (e *Endpoint) URL() string {
	if e.url == (url.Endpoint{}) {
		return ""
	}
	u := e.url
	u.Size = max(u.Size, e.Size()) // services may have come since
	return u.String()
}

// URLTo returns URL as the peer of a connection knows it: at the address from which it is sent to.
func (e *Endpoint) URLTo(c *Conn) string {
	u, err := url.Parse(e.URL())
	if ip := c.Peer().Addr.Local(); err == nil && ip.IsValid() {
		u.Addr = netip.AddrPortFrom(ip, u.Addr.Port())
		return u.String()
	}
	return e.URL()
}

// URLs returns the endpoint strings by which peers reach the endpoint: URL, and where it is at
// all addresses of this machine, the same with each of the others that there are now, IPv4 before
// IPv6 and loopback last. IPv6 addresses of a link, fe80::1, do too, but only a peer knows
// by which interface.
func (e *Endpoint) URLs() (all []string) {
	u, err := url.Parse(e.URL())
	if err != nil {
		return nil
	}
	all = append(all, e.URL())
	for _, ip := range udp.Addresses(e.LocalAddr().AddrPort().Addr()) {
		if u.Scheme == url.UDP && ip != u.Addr.Addr() {
			u.Addr = netip.AddrPortFrom(ip, u.Addr.Port())
			all = append(all, u.String())
		}
	}
	return all
}

// String returns the endpoint string, or else where the endpoint is.
func (e *Endpoint) String() string {
	if e.url != (url.Endpoint{}) {
		return e.URL()
	}
	return fmt.Sprintf("endpoint %d at %v", e.ID(), e.LocalAddr())
}
