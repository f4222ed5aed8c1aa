package dgrdma

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/dgrdma/dgrdma/endpoint"
	"github.com/dgrdma/dgrdma/transport/udp"
	"github.com/dgrdma/dgrdma/url"
)

// Endpoint is a block of memory on a network, and the connections to the peers
// that write into it. All methods may be called at the same time.
type Endpoint struct {
	engine *endpoint.Endpoint
	url    url.Endpoint
}

// New starts an endpoint on a transport, which it owns from then on and closes.
func New(tc Transport, cfg *Config) (*Endpoint, error) {
	e, err := endpoint.New(tc, cfg.engine())
	if err != nil {
		return nil, err
	}
	return &Endpoint{engine: e}, nil
}

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
// before IPv6, the next one every 250 ms while nobody answers, and takes the one from which the answer comes first (as
// RFC 8305, Happy Eyeballs, has it): see [Endpoint.Find]. If none comes it takes the first of them for a peer whose
// string is complete: it may be there later, or be of a kind that does not answer. What it returns is for Connect.
//
// A string of UDP may end behind the port: who has that port, in any process and after any
// restart, is asked for its id and the size of its memory. That takes a round trip, or until
// nobody answered for 3 s or Config.GiveUp, which is [ErrPeerDown]. Peers of our own kind answer
// that accept peers, or are connected to this endpoint; for others the string has to be complete.
func (e *Endpoint) LookupPeer(ctx context.Context, peerURL string) (Peer, error) {
	p, more, err := lookUpPeer(ctx, peerURL, e.engine.Reaches)
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

// Find asks over UDP which endpoint is at p's address, and returns p with its id and the size of its
// memory, for Connect: what LookupPeer does with a string that has neither. A host may have more addresses: the one that answers
// first counts, and if p has an id, only the endpoint that has it.
func (e *Endpoint) Find(ctx context.Context, p Peer, more ...Addr) (Peer, error) {
	return e.engine.Find(ctx, p, more...)
}

// Reaches reports why nothing can be sent from here to an address, as far as this machine knows
// now: no way leads there, or it is none of one endpoint. Nothing is sent.
func (e *Endpoint) Reaches(to Addr) error { return e.engine.Reaches(to) }

// Connect makes the connection to a peer, as Dial does for a peer that a string
// names. Transactions can be posted at once. A peer that was learned already
// keeps its connection, which is returned. An IPv6 address of a link, fe80::1, needs the
// interface of this machine that is on it as its zone, fe80::1%eth0. The id 0 is nobody's:
// LookupPeer finds out which one there is. If a peer of our own kind is at the address that has
// another id, the connection fails with [ErrWrongID], an [*IDError].
func (e *Endpoint) Connect(p Peer) (*Conn, error) {
	c, err := e.engine.Connect(p)
	return (*Conn)(c), err
}

// Conns returns the connections, learned ones included.
func (e *Endpoint) Conns() (all []*Conn) {
	for _, c := range e.engine.Conns() {
		all = append(all, (*Conn)(c))
	}
	return all
}

// AcceptAny changes [Config.AcceptAny]: whether peers are learned from what they
// send, and may write into the memory.
func (e *Endpoint) AcceptAny(on bool) { e.engine.AcceptAny(on) }

// Welcome has peers learned from what they send that may not write into the memory,
// unless AcceptAny lets them: for services, which admit what they know. Each call with on
// is taken back by one without.
func (e *Endpoint) Welcome(on bool) { e.engine.Welcome(on) }

// URL returns the complete endpoint string that peers connect to. It is empty
// for endpoints that were not opened by a string. Of an endpoint that has neither memory
// nor services it is the address alone, without size and id: there is nothing to write
// to, and what is posted fails with [ErrNoService].
func (e *Endpoint) URL() string {
	if e.url == (url.Endpoint{}) {
		return ""
	}
	u := e.url
	u.Size = max(u.Size, e.engine.Size()) // services may have come since
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

// ID returns the endpoint's id.
func (e *Endpoint) ID() EndpointID { return e.engine.ID() }

// Done returns a channel that is closed when the endpoint carries nothing any more: it has
// failed, or Close was called. [Endpoint.Err] says which.
func (e *Endpoint) Done() <-chan struct{} { return e.engine.Done() }

// Err returns why the endpoint carries nothing any more: what the transport or a callback
// failed with, [ErrClosed] after Close, or nil.
func (e *Endpoint) Err() error { return e.engine.Err() }

// LocalAddr returns the transport's address.
func (e *Endpoint) LocalAddr() Addr { return e.engine.LocalAddr() }

// Serve adds a service: see [Service]; an endpoint has eight at most, its memory among
// them. It stays as long as the endpoint. Peers that are connected are told, which takes a
// round trip: what they post to it before fails with [ErrNoService], and may be posted
// again. Serve returns where the service's window begins; [Endpoint.Size] and
// [Endpoint.URL] grow by it.
func (e *Endpoint) Serve(s Service) (base uint32, err error) {
	return e.engine.Serve(service{s})
}

// Size returns how many addresses the endpoint's memory and services take: what peers
// may write to lies below.
func (e *Endpoint) Size() uint64 { return e.engine.Size() }

// Manual reports whether the endpoint has no goroutines: see [Config.Manual].
func (e *Endpoint) Manual() bool { return e.engine.Manual() }

// Memory returns what peers write into.
func (e *Endpoint) Memory() Memory { return ourMemory(e.engine.Memory()) }

// GiveUp returns how long a peer may show no progress before it counts as dead.
func (e *Endpoint) GiveUp() time.Duration { return e.engine.GiveUp() }

// Stats returns a snapshot of all counters.
func (e *Endpoint) Stats() Stats { return e.engine.Stats() }

// Inspect returns a snapshot of all counters, and of each connection at the same
// moment: those of closed connections are the difference.
func (e *Endpoint) Inspect() (Stats, []ConnStats) { return e.engine.Inspect() }

// Progress drives the endpoint: it takes the datagrams that have come, for the first of
// which it waits no longer than wait, acts on them and on what is due, sends, and calls
// Done. It returns how many datagrams it found at first: none if another goroutine
// received all the while, as one of the endpoint's own does without [Config.Manual], for
// whose turn it waits as long. With [Forever] it returns when something was done. After Close it
// returns [ErrClosed].
func (e *Endpoint) Progress(wait time.Duration) (int, error) { return e.engine.Progress(wait) }

// Shutdown refuses new transactions, waits until those that are posted are done
// or the context is, and closes the endpoint. In a callback it does not wait, as Close
// does not: another goroutine does, which is then done with the context.
func (e *Endpoint) Shutdown(ctx context.Context) error { return e.engine.Shutdown(ctx) }

// Close ends the endpoint: everything pending fails with [ErrClosed], the
// transport is closed, and when Close returns no goroutine of the endpoint and no
// callback runs any more. It waits for callbacks that run, and calls Done itself.
//
// In a callback, of this endpoint or another one, it cannot wait: from then on nothing
// can be posted, another goroutine does the rest, and Close returns nil at once. Who
// has to know when it is over calls Close again elsewhere.
func (e *Endpoint) Close() error { return e.engine.Close() }

// AfterBatch is for layers above that take memory back from a peer: it calls f,
// which must not block, when nothing that Admit allowed before this call is still
// to be placed.
func (e *Endpoint) AfterBatch(f func()) { e.engine.AfterBatch(f) }

// Await is for layers above whose callers wait: it waits until ready says yes, the
// context is done, or one of two channels, which may be nil, is closed or has something.
// It drives the endpoint meanwhile, where nobody else does ([Config.Manual]) or where
// that pays. It asks ready at first, whenever the waiter is roused, and while it drives
// after every batch of datagrams; it reports what ready said last: no, too, if the
// endpoint was closed, or failed with nobody to drive it.
func (e *Endpoint) Await(ctx context.Context, w *Waiter, ready func() bool, over, gone <-chan struct{}) bool {
	return e.engine.Await(ctx, (*endpoint.Waiter)(w), ready, over, gone)
}

// Ahead returns how many bytes are worth posting before what was posted earlier is in
// frames: more only waits in the queue. See [Transaction.Packed].
func (e *Endpoint) Ahead() int { return e.engine.Ahead() }
